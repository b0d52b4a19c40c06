/*
** Cache of the outer Lua frames that consecutive samples share.
** Context: handler
**
** A step of the walk goes from a Lua frame to the frame below. Its result follows from
** the PC in the frame, from the next VM frame, and from words that the step loads: link
** and function slot, head and code of the function, words of passed VM frames, and what
** a continuation needs. A step also reads prototypes and bytecode, which stay the same
** until the VM frees a prototype.
**
** When a walk is valid to the bottom, the handler saves the steps of its outermost
** coroutine. The next walk verifies the saved words from the bottom upwards, until one
** differs. It reuses the rest of the saved steps when it reaches a saved frame with the
** same PC and VM frame, and all words from there to the bottom are verified.
**
** Each walk compares all words, so the order of samples does not matter. The handler
** saves nothing while memory may be unmapped unnoticed (lj_safeload.h), or while a
** function still needs a name.
*/

#ifndef _LJ_LUAMEMO_H
#define _LJ_LUAMEMO_H

#include <string.h>

#include "lj_obj.h"
#include "profile/format/lj_framelist.h"
#include "profile/lua/lj_luaframe.h"
#include "profile/symbols/lj_functab.h"

#define LUAMEMO_STEPS  384  /* Steps saved. */
#define LUAMEMO_LEAST  16   /* Of a stack with less, it takes as long to walk them. */
#define LUAMEMO_WORDS  768  /* FrameList that they push. */
#define LUAMEMO_LOADS  768  /* Words that only some of them load. */
#define LUAMEMO_CREDIT 1024 /* Steps saved without reuse, at most, */
#define LUAMEMO_EARNED 8    /* and of them, for each sample. */

/* State of the C frame chain that is followed along with the Lua frames. */
typedef struct LuaChain {
  uintptr_t cf;     /* Current VM frame, 0 at the end. */
  uintptr_t last;   /* VM frame before it. */
  int resume;       /* The current one resumed this coroutine. */
  int may_lack_lua; /* The current one may have no Lua frame. */
} LuaChain;

/* Of a function: gct, ffid, nupvalues. The other byte is the collector's. */
#define LUAMEMO_HEAD ((uint32_t)~0xff)

/* Before a step. */
typedef struct LuaMemoState {
  uintptr_t pc;                 /* In the frame. */
  uintptr_t cf;                 /* VM frame that comes next. */
  uint32_t word, load, nbound;  /* What was pushed, loaded and counted by the steps
				** before in the list or, if kept, with this one. */
  uint8_t resume, may_lack_lua; /* As in LuaChain. */
  uint8_t skip;                 /* It is the lower part of a vararg frame. */
} LuaMemoState;

/* A word that only some steps load. */
typedef struct LuaMemoLoad {
  uintptr_t addr; /* Plus 1: only its lower half counts. */
  uintptr_t value;
} LuaMemoLoad;

/* Some steps. The outermost one is that at the bottom, which has no frame. */
typedef struct LuaMemoSteps {
  uint32_t nstep, nword, nload;
  /* What the steps load, and most of it has to be compared for each walk. */
  uint32_t at[LUAMEMO_STEPS]; /* The frame, in slots from the bottom. */
  uint64_t link[LUAMEMO_STEPS], slot[LUAMEMO_STEPS];
  uint32_t head[LUAMEMO_STEPS];  /* Kind of the function, see LUAMEMO_HEAD, */
  uintptr_t code[LUAMEMO_STEPS]; /* and GCfunc.pc. */
  LuaMemoState state[LUAMEMO_STEPS];
  FrameWord word[LUAMEMO_WORDS];
  LuaMemoLoad load[LUAMEMO_LOADS];
} LuaMemoSteps;

/* What saved steps belong to. */
typedef struct LuaMemoKey {
  lua_State *L;
  uintptr_t bot, end;   /* Its stack. */
  uint64_t kept_pages;  /* Memory that was found readable, */
  uint32_t unmaps;      /* and has been unmapped so far. */
  uint32_t freed, nfid; /* Functions freed and seen so far. */
} LuaMemoKey;

/* Clear it before use. */
typedef struct LuaMemo {
  uint32_t least;         /* Steps of a stack from which on they are kept; set by
				** the caller. */
  uint32_t depth;         /* Steps of the last stack. */
  int on;                 /* Steps may be saved, */
  int records;            /* and are, in this walk. */
  int32_t credit;         /* Steps that may be saved without reuse. */
  uint32_t reach;         /* Steps that were there before the last ones kept. */
  uint32_t verified;      /* Saved steps whose words have not changed. */
  uint32_t reused;        /* Saved steps that this walk has copied. */
  LuaMemoKey key, walked; /* Of the saved steps, and of this walk. */
  uintptr_t last;         /* LuaChain.last at the bottom, of the saved steps. */
  uintptr_t walked_last;  /* The same of this walk. */
  uint32_t walked_nbound; /* Boundaries above the reused steps, or the bottom. */
  LuaMemoSteps saved;     /* From the bottom to the leaf. */
  LuaMemoSteps recording; /* Of this walk, from the leaf to the bottom. */
} LuaMemo;

/* A sample begins. Saving a step takes about as long as walking it, and pays only if a
** later walk reuses it. So credit limits the steps that are saved and not reused.
*/
LJ_FUNC void lj_luamemo_sample(LuaMemo *t);

/* Begin to walk a coroutine, from a frame. with_funcs: it matters which functions are
** called, and not only that the frames are valid.
*/
LJ_FUNC void lj_luamemo_begin(LuaMemo *t, const LuaArea *a, const FuncTab *ft,
			      uintptr_t top, int with_funcs);

/* Find the saved steps that continue this walk. Returns how many lead from this frame to
** the bottom, or 0.
*/
LJ_FUNC uint32_t lj_luamemo_reuse(LuaMemo *t, uintptr_t f, uintptr_t pc, const LuaChain *ch,
				  int skip);

/* The walk was valid to the bottom, and all memory that it read is the VM's. */
LJ_FUNC void lj_luamemo_end(LuaMemo *t, const FuncTab *ft);

/* This step cannot be saved, so the steps above it cannot, either. */
static LJ_AINLINE void lj_luamemo_restart(LuaMemo *t)
{
  t->recording.nstep = t->recording.nword = t->recording.nload = 0;
}

/* This step pushes a frame. */
static LJ_AINLINE void lj_luamemo_word(LuaMemo *t, FrameWord w)
{
  if (t->records && LJ_LIKELY(t->recording.nword < LUAMEMO_WORDS))
    t->recording.word[t->recording.nword++] = w;
}

/* This step loads a word, of which the lower half counts if addr has 1 added. */
static LJ_AINLINE void lj_luamemo_load(LuaMemo *t, uintptr_t addr, uintptr_t value)
{
  if (t->records && LJ_LIKELY(t->recording.nload < LUAMEMO_LOADS)) {
    LuaMemoLoad *load = &t->recording.load[t->recording.nload++];
    load->addr = addr;
    load->value = value;
  }
}

LJ_STATIC_ASSERT(offsetof(GCfuncC, gct) == offsetof(GCfuncC, marked) + 1);
LJ_STATIC_ASSERT(offsetof(GCfuncC, ffid) == offsetof(GCfuncC, marked) + 2);
LJ_STATIC_ASSERT(offsetof(GCfuncC, nupvalues) == offsetof(GCfuncC, marked) + 3);

/* What kind of function it is: gct, ffid, nupvalues in the upper bytes. The lowest one
** is the collector's.
*/
static LJ_AINLINE uint32_t luamemo_head(const GCfunc *fn)
{
  uint32_t head;
  memcpy(&head, &fn->c.marked, sizeof(head));
  return head;
}

/* A step begins. */
static LJ_AINLINE void lj_luamemo_step(LuaMemo *t, uintptr_t f, uintptr_t pc,
				       const LuaChain *ch, int skip, uint32_t nbound)
{
  LuaMemoSteps *ts = &t->recording;
  LuaMemoState *s;
  if (LJ_UNLIKELY(ts->nstep == LUAMEMO_STEPS || ts->nword >= LUAMEMO_WORDS - 8 ||
		  ts->nload >= LUAMEMO_LOADS - 16))
    lj_luamemo_restart(t);
  s = &ts->state[ts->nstep];
  ts->at[ts->nstep] = (uint32_t)((f - t->walked.bot) >> 3);
  s->pc = pc;
  s->cf = ch->cf;
  s->resume = (uint8_t)ch->resume;
  s->may_lack_lua = (uint8_t)ch->may_lack_lua;
  s->skip = (uint8_t)skip;
  s->word = ts->nword;
  s->load = ts->nload;
  s->nbound = nbound;
}

/* It has ended. fn: the function in the frame, NULL at the bottom. */
static LJ_AINLINE void lj_luamemo_save(LuaMemo *t, uintptr_t f, const GCfunc *fn)
{
  LuaMemoSteps *ts = &t->recording;
  if (fn) {
    ts->link[ts->nstep] = lj_luaframe_link(f);
    ts->slot[ts->nstep] = lj_luaframe_slot(f);
    ts->head[ts->nstep] = luamemo_head(fn);
    ts->code[ts->nstep] = (uintptr_t)mref(fn->c.pc, char);
  }
  ts->nstep++;
  if (LJ_UNLIKELY(ts->nword == LUAMEMO_WORDS || ts->nload == LUAMEMO_LOADS))
    lj_luamemo_restart(t); /* Some may be missing. */
}

#endif
