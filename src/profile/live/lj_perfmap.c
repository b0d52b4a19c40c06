/*
** Map of compiled code for perf: traces, and code that they share.
** Context: VM thread, between two bytecodes.
*/

#define lj_perfmap_c
#define LUA_CORE

#include <stdio.h>

#include "lj_obj.h"
#include "lj_debug.h"
#include "lj_dispatch.h"
#include "lj_jit.h"
#include "lj_target.h"
#include "profile/live/lj_perfmap.h"
#include "profile/lua/lj_jitmap.h"
#include "profile/output/lj_text.h"

#if LJ_HASJIT

/* Write one line. kind: the name, or what stands before it. pt: the function in whose code a trace
** begins, at line; or NULL.
*/
static void put_line(FILE *f, uintptr_t addr, size_t size, const char *kind, TraceNo number,
		     const GCproto *pt, BCLine line)
{
  const char *s;
  fprintf(f, "%lx %lx %s", (unsigned long)addr, (unsigned long)size, kind);
  if (number) fprintf(f, " %u", (unsigned)number);
  if (pt) {
    fputc(' ', f);
    s = proto_chunknamestr(pt);
    if (*s == '@' || *s == '=') s++;
    for (; *s; s++) fputc((unsigned char)*s < ' ' || *s == 127 ? '?' : *s, f);
    if (line > 0) fprintf(f, ":%d", (int)line);
  }
  fputc('\n', f);
}

static void put_trace(FILE *f, const TraceSaved *ts, TraceNo number)
{
  const TraceBlock *b = ts->block;
  GCproto *pt = b && b->nseg && b->nnode ? (GCproto *)b->node[b->seg[0].node].pt : NULL;
  put_line(f, ts->mcode, ts->szmcode, "trace", number, pt,
	   pt && b->seg[0].pos < pt->sizebc ? lj_debug_line(pt, b->seg[0].pos) : 0);
}

/* Code that all traces use to leave. */
static void put_exits(FILE *f, const jit_State *J)
{
#ifdef EXITSTUBS_PER_GROUP
  int i;
  for (i = 0; i < LJ_MAX_EXITSTUBGR && J->exitstubgroup[i]; i++)
    put_line(f, (uintptr_t)J->exitstubgroup[i], EXITSTUBS_PER_GROUP * EXITSTUB_SPACING,
	     "exits of traces", 0, NULL, 0);
#endif
}

static void put_map(FILE *f, void *what)
{
  lua_State *L = (lua_State *)what;
  const JitMap *jm = L2GG(L)->tracepos;
  uint32_t i;
  put_exits(f, L2J(L));
  for (i = 0; jm && i < jm->nsaved; i++)
    if (jm->saved[i].mcode) put_trace(f, &jm->saved[i], i);
}

#else

static void put_map(FILE *f, void *what)
{
  UNUSED(f);
  UNUSED(what);
}

#endif

int lj_perfmap_text(lua_State *L, char **text, size_t *len)
{
  return lj_text_make(put_map, L, text, len);
}
