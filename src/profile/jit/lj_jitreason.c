/*
** Reasons of the compiler's events: LuaJIT's own words, each with an id.
** Context: ordinary code of the thread that runs the VM.
*/

#define lj_jitreason_c
#define LUA_CORE

#include <stdio.h>
#include <string.h>

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_ff.h"
#include "lj_frame.h"
#include "lj_ir.h"
#include "lj_jit.h"
#include "lj_trace.h"
#include "profile/jit/lj_jitreason.h"
#include "profile/symbols/lj_symrecords.h"

#if LJ_HASJIT

/* clang-format off */
static const char *const errors[] = {
#define TREDEF(name, msg) msg,
#include "lj_traceerr.h"
};

#define BC_TEXT(name, ma, mb, mc, mt) #name,
static const char *const bytecodes[] = { BCDEF(BC_TEXT) };

#define IR_TEXT(name, mode, left, right) #name,
static const char *const instructions[] = { IRDEF(IR_TEXT) };

/* As jit.util.traceinfo names them. */
static const char *const links[] = {
  "none", "root", "loop", "tail-recursion", "up-recursion", "down-recursion", "interpreter",
  "return", "stitch"
};
/* clang-format on */

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

LJ_STATIC_ASSERT(COUNT(errors) == LJ_TRERR__MAX);
LJ_STATIC_ASSERT(COUNT(links) == LJ_TRLINK_STITCH + 1);

static uint32_t find(JitReasons *jr, const char *s, size_t len)
{
  uint32_t i;
  JitReason *r = jr->text;
  if (len > JITREASON_LEN) len = JITREASON_LEN;
  for (i = 0; i < jr->n; i++, r++)
    if (r->len == len && memcmp(r->s, s, len) == 0) return i;
  if (jr->n == JITREASON_MAX) return JITREASON_MAX - 1;
  if (jr->n == JITREASON_MAX - 1) {
    s = "[other reasons]";
    len = strlen(s);
  }
  r->len = (uint8_t)len;
  memcpy(r->s, s, len);
  return jr->n++;
}

uint32_t lj_jitreason_text(JitReasons *jr, const char *s)
{
  return find(jr, s, strlen(s));
}

/* Write the place of a Lua function, or the name of another one. */
static void func_text(const GCfunc *fn, char *to, size_t size)
{
  if (isluafunc(fn)) {
    const GCstr *chunk = proto_chunkname(funcproto(fn));
    const char *s = strdata(chunk);
    size_t len = chunk->len, room = size - 16;
    if (len > 0 && (*s == '@' || *s == '=')) s++, len--;
    if (len > room) s += len - room, len = room;
    snprintf(to, size, "%.*s:%d", (int)len, s, (int)funcproto(fn)->firstline);
  } else if (fn->c.ffid > FF_C) {
    lj_symrecords_builtin(fn->c.ffid, to, size);
  } else {
    snprintf(to, size, "C function");
  }
}

/* Write what an error is about: an opcode, or a function. */
static void info_text(const jit_State *J, TraceError e, char *to, size_t size)
{
  cTValue *o = &J->errinfo;
  snprintf(to, size, "?");
  if (tvisfunc(o)) {
    func_text(funcV(o), to, size);
  } else if (tvisnumber(o)) {
    uint32_t n = (uint32_t)numberVint(o);
    if (e == LJ_TRERR_NYIBC && n < COUNT(bytecodes)) snprintf(to, size, "%s", bytecodes[n]);
    else if (e == LJ_TRERR_NYIIR && n < COUNT(instructions))
      snprintf(to, size, "%s", instructions[n]);
    else snprintf(to, size, "%u", n);
  }
}

uint32_t lj_jitreason_abort(JitReasons *jr, const jit_State *J)
{
  cTValue *o = J->L->top - 1;
  const char *text = errors[LJ_TRERR_RECERR], *arg;
  char about[80], all[160];
  uint32_t e;
  if (tvisstr(o)) return find(jr, strVdata(o), strV(o)->len);
  if (!tvisnumber(o) || (e = (uint32_t)numberVint(o)) >= COUNT(errors))
    return lj_jitreason_text(jr, text);
  text = errors[e];
  arg = strchr(text, '%');
  if (!arg) return lj_jitreason_text(jr, text);
  info_text(J, (TraceError)e, about, sizeof(about));
  snprintf(all, sizeof(all), "%.*s%s%s", (int)(arg - text), text, about, arg + 2);
  return lj_jitreason_text(jr, all);
}

int lj_jitreason_isstitch(const jit_State *J)
{
  return J->cur.linktype == LJ_TRLINK_STITCH && !J->pt && J->fn;
}

uint32_t lj_jitreason_link(JitReasons *jr, const jit_State *J)
{
  uint32_t link = J->cur.linktype;
  char about[80], all[160];
  if (!lj_jitreason_isstitch(J))
    return lj_jitreason_text(jr, links[link < COUNT(links) ? link : 0]);
  func_text(J->fn, about, sizeof(about));
  snprintf(all, sizeof(all), "%s %s", links[link], about);
  return lj_jitreason_text(jr, all);
}

#endif
