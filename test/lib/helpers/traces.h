/*
** Traces for the tests of the map of machine code: a VM with compiled programs, and the
** frames that a snapshot of a trace describes.
*/

#ifndef TRACES_H
#define TRACES_H

#include <string.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_dispatch.h"
#include "lj_ff.h"
#include "lj_frame.h"
#include "lj_ir.h"
#include "lj_jit.h"
#include "lj_trace.h"
#include "lj_vm.h"
#include "profile/lua/lj_jitfind.h"
#include "check.h"

#define CHAIN_MAX 256

/* Run Lua code; returns the first result as a string, which the stack keeps. */
static inline const char *traces_run(lua_State *L, const char *code)
{
  int top = lua_gettop(L);
  if (luaL_loadbuffer(L, code, strlen(code), "@traces.lua") != 0 ||
      lua_pcall(L, 0, 1, 0) != 0) {
    printf("FAILED: %s\n", lua_tostring(L, top + 1));
    exit(1);
  }
  return lua_tostring(L, -1);
}

/* Open a VM. Its functions, and so its traces, stay until the VM is closed. */
static inline lua_State *traces_vm(void)
{
  lua_State *L = luaL_newstate();
  REQUIRE(L != NULL);
  luaL_openlibs(L);
  traces_run(L, "collectgarbage 'stop' math.randomseed(1)");
  return L;
}

/* Run lib/programs/trace_programs.lua once. */
#define TRACES_PROGRAMS "return require('trace_programs').run()"

/* A compiled trace, or NULL. */
static inline GCtrace *traces_get(lua_State *L, TraceNo no)
{
  jit_State *J = L2J(L);
  GCobj *o = no < J->sizetrace ? gcref(J->trace[no]) : NULL;
  return o && o != obj2gco(&J->cur) ? gco2trace(o) : NULL;
}

/* -- Frames of a snapshot ---------------------------------------------------------- */

/* A running function and the place of its call. */
typedef struct ChainFrame {
  const GCproto *pt; /* Of a Lua function, else NULL. */
  uint32_t ffid;
  BCPos callpos; /* Position in the caller, or JITMAP_NONE. */
} ChainFrame;

/* Frames, innermost first. */
typedef struct Chain {
  int n;           /* Number of frames; -1: unknown. */
  const BCIns *pc; /* Where the innermost frame continues. */
  ChainFrame f[CHAIN_MAX];
} Chain;

static inline void chain_setfunc(ChainFrame *f, const GCfunc *fn)
{
  f->pt = isluafunc(fn) ? funcproto(fn) : NULL;
  f->ffid = fn->c.ffid;
}

static inline void chain_setproto(ChainFrame *f, const GCproto *pt)
{
  f->pt = pt;
  f->ffid = FF_LUA;
}

/* Entry of a snapshot for a slot, 0 if it has none. */
static inline SnapEntry snap_at(const GCtrace *T, const SnapShot *snap, BCReg slot)
{
  const SnapEntry *map = &T->snapmap[snap->mapofs];
  MSize i;
  for (i = 0; i < snap->nent; i++)
    if (snap_slot(map[i]) == slot) return map[i];
  return 0;
}

/* Function in a slot of a trace: a constant, or a value that a guard has checked, perhaps
** only by its prototype. A side trace may inherit a value, with its guards, from its
** parent.
*/
static inline int snap_func(lua_State *L, const GCtrace *T, const SnapShot *snap,
			    BCReg slot, ChainFrame *f)
{
  SnapEntry sn = snap_at(T, snap, slot);
  IRRef ref = snap_ref(sn), i, j;
  const IRIns *ir = T->ir;
  if (!sn) return 0;
  if (ir[ref].o == IR_KGC) {
    const GCobj *o = ir_kgc(&ir[ref]);
    if (o->gch.gct != ~LJ_TFUNC) return 0;
    chain_setfunc(f, &o->fn);
    return 1;
  }
  if (irref_isk(ref)) return 0;
  for (i = REF_FIRST; i < T->nins; i++) {
    if (ir[i].o != IR_FLOAD || ir[i].op1 != ref || ir[i].op2 != IRFL_FUNC_PC) continue;
    for (j = i + 1; j < T->nins; j++)
      if (ir[j].o == IR_EQ && ir[j].op1 == i && ir[ir[j].op2].o == IR_KPTR) {
	const char *bc = (const char *)ir_kptr(&ir[ir[j].op2]);
	chain_setproto(f, (const GCproto *)(bc - sizeof(GCproto)));
	return 1;
      }
  }
  if (T->root &&
      ((ir[ref].o == IR_SLOAD && (ir[ref].op2 & IRSLOAD_PARENT)) || ir[ref].o == IR_PVAL)) {
    const GCtrace *P = traces_get(L, ir[REF_BASE].op1);
    if (P) return snap_func(L, P, &P->snap[ir[REF_BASE].op2], slot, f);
  }
  return 0;
}

/* Function at the base of a trace when an instruction runs. */
static inline void snap_basefunc(lua_State *L, const GCtrace *T, const SnapShot *snap,
				 ChainFrame *f)
{
  IRRef ref;
  if (snap_at(T, snap, 1) && snap_func(L, T, snap, 0, f)) return;
  for (ref = (IRRef)snap->ref - 1; ref >= REF_FIRST; ref--)
    if (T->ir[ref].o == IR_RETF) { /* The trace has left its first function. */
      chain_setproto(f, &ir_kgc(&T->ir[T->ir[ref].op1])->pt);
      return;
    }
  if (T->root) {
    const GCtrace *P = traces_get(L, T->ir[REF_BASE].op1);
    REQUIRE(P != NULL);
    snap_basefunc(L, P, &P->snap[T->ir[REF_BASE].op2], f);
  } else {
    chain_setproto(f, &gcref(T->startpt)->pt);
  }
}

/* Frames of a snapshot, from its own entries alone. */
static inline void snap_chain(lua_State *L, const GCtrace *T, const SnapShot *snap,
			      Chain *c)
{
  const SnapEntry *end = &T->snapmap[snap->mapofs + snap->nent];
  uint64_t pcbase;
  BCReg base;
  memcpy(&pcbase, end, sizeof(pcbase));
  c->pc = (const BCIns *)(uintptr_t)(pcbase >> 8);
  base = (BCReg)(pcbase & 0xff) + 2;
  c->n = 0;
  for (;;) {
    ChainFrame *f = &c->f[c->n++];
    SnapEntry sn;
    TValue link;
    REQUIRE(c->n < CHAIN_MAX);
    f->callpos = JITMAP_NONE;
    if (base == 2) {
      snap_basefunc(L, T, snap, f);
      return;
    }
    sn = snap_at(T, snap, base - 1);
    if (!sn || !(sn & SNAP_FRAME) || !snap_func(L, T, snap, base - 2, f)) {
      c->n = -1;
      return;
    }
    link.u64 = ir_knum(&T->ir[snap_ref(sn)])->u64;
    while ((link.u64 & FRAME_TYPEP) == FRAME_VARG) {
      /* The same function, below its variable arguments. */
      base -= (BCReg)(link.u64 >> 3);
      if (base == 2) break;
      sn = snap_at(T, snap, base - 1);
      if (!sn) {
	c->n = -1;
	return;
      }
      link.u64 = ir_knum(&T->ir[snap_ref(sn)])->u64;
    }
    if (base == 2) return;
    if ((link.u64 & FRAME_TYPE) == FRAME_LUA) {
      const BCIns *pc = (const BCIns *)(uintptr_t)link.u64;
      base -= 2 + bc_a(pc[-1]);
      f->callpos = (BCPos)(uintptr_t)pc; /* chain_positions makes it a position. */
    } else {
      if ((link.u64 & FRAME_TYPEP) == FRAME_CONT) {
	sn = snap_at(T, snap, base - 3);
	if (sn) f->callpos = (BCPos)ir_knum(&T->ir[snap_ref(sn)])->u64;
      }
      base -= (BCReg)(link.u64 >> 3);
    }
  }
}

/* Turn the PCs of the calls into positions in the callers. The lower half of a PC is
** enough: prototypes are smaller.
*/
static inline void chain_positions(Chain *c)
{
  int i;
  for (i = 0; i < c->n; i++) {
    ChainFrame *f = &c->f[i];
    const GCproto *caller = i + 1 < c->n ? c->f[i + 1].pt : NULL;
    if (f->callpos == JITMAP_NONE) continue;
    if (!caller) f->callpos = JITMAP_NONE;
    else
      f->callpos =
	(f->callpos - (BCPos)(uintptr_t)proto_bc(caller)) / (BCPos)sizeof(BCIns) - 1;
  }
}

/* Frames of a place in a trace, from the map's positions. */
static inline void node_chain(const TraceBlock *b, uint32_t i, Chain *c)
{
  c->n = 0;
  for (; i < b->nnode; i = b->node[i].parent) {
    ChainFrame *f = &c->f[c->n++];
    REQUIRE(c->n < CHAIN_MAX);
    f->pt = b->node[i].pt;
    f->ffid = b->node[i].ffid;
    f->callpos = b->node[i].callpos;
  }
}

static inline int chain_equal(const Chain *a, const Chain *b)
{
  int i;
  if (a->n != b->n) return 0;
  for (i = 0; i < a->n; i++)
    if (a->f[i].pt != b->f[i].pt || (!a->f[i].pt && a->f[i].ffid != b->f[i].ffid) ||
	a->f[i].callpos != b->f[i].callpos)
      return 0;
  return 1;
}

static inline void chain_print(const char *what, const Chain *c)
{
  int i;
  printf("  %s:", what);
  for (i = 0; i < c->n; i++)
    if (c->f[i].pt) printf(" %d/%d", (int)c->f[i].pt->firstline, (int)c->f[i].callpos);
    else printf(" ff%d/%d", (int)c->f[i].ffid, (int)c->f[i].callpos);
  printf("\n");
}

#endif
