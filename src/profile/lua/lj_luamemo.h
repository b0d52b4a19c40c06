/*
** Cache of the outer Lua frames that consecutive samples share.
** Context: handler.
**
** A step of the walk goes from a Lua frame to the frame below. Its result depends on the
** PC in the frame, on the next VM frame, and on the words that the step loads. These are
** link and function slot, head and code of the function, words of passed VM frames, and
** words for a continuation. A step also reads prototypes and bytecode, which stay the same
** until the VM frees a prototype.
**
** When a walk is valid to the bottom, the handler saves the steps of its outermost
** coroutine. The next walk verifies the saved words from the bottom upwards, until one
** differs. When it reaches a saved frame with the same PC and VM frame, it may reuse the
** rest of the steps: if all words from there to the bottom are verified.
**
** Each walk compares all words, so the order of samples does not matter. The handler saves
** nothing while a function still needs a name, or while an unmap may go unnoticed
** (lj_safeload.h).
*/

#ifndef _LJ_LUAMEMO_H
#define _LJ_LUAMEMO_H

#include <string.h>

#include "lj_obj.h"
#include "profile/base/lj_steplist.h"
#include "profile/capture/lj_framelist.h"
#include "profile/lua/lj_luaframe.h"
#include "profile/symbols/lj_functab.h"

#define LUAMEMO_STEPS  384  /* Steps saved. */
#define LUAMEMO_LEAST  16   /* Steps below which a walk is as fast as the cache. */
#define LUAMEMO_WORDS  768  /* Frame words that the saved steps push. */
#define LUAMEMO_LOADS  768  /* Words that only some of the saved steps load. */
#define LUAMEMO_CREDIT 1024 /* Largest credit of steps saved without reuse. */
#define LUAMEMO_EARNED 8    /* Credit that each sample adds. */

/* Position in the chain of VM frames, which the walk follows along with the Lua frames. */
typedef struct LuaChain {
  uintptr_t cf;     /* Current VM frame, 0 at the end. */
  uintptr_t last;   /* Previous VM frame. */
  int resume;       /* The current VM frame resumed this coroutine. */
  int may_lack_lua; /* The current VM frame may have no Lua frame. */
} LuaChain;

/* Bytes of a function's head that identify its kind: gct, ffid, nupvalues. The collector
** changes the other byte.
*/
#define LUAMEMO_HEAD ((uint32_t)~0xff)

/* State of the walk before a step. Its sums, of words and loads, are those of the steps before
** it in the list, like the boundaries. In a saved step they include the step itself.
*/
typedef struct LuaMemoState {
  uintptr_t pc;                 /* PC in the frame. */
  uintptr_t cf;                 /* Next VM frame. */
  StepSums sum;                 /* Words pushed, words loaded. */
  uint32_t nbound;              /* Boundaries. */
  uint8_t resume, may_lack_lua; /* As in LuaChain. */
  uint8_t skip;                 /* It is the lower part of a vararg frame. */
} LuaMemoState;

/* A word that only some steps load. */
typedef struct LuaMemoLoad {
  uintptr_t addr; /* Address, plus 1 if only the lower half counts. */
  uintptr_t value;
} LuaMemoLoad;

/* A list of steps. The outermost step is at the bottom and has no frame. */
typedef struct LuaMemoSteps {
  uint32_t nstep, nword, nload;
  /* Words that the steps load. Each walk compares most of them. */
  uint32_t at[LUAMEMO_STEPS]; /* The frame, in slots from the bottom. */
  uint64_t link[LUAMEMO_STEPS], slot[LUAMEMO_STEPS];
  uint32_t head[LUAMEMO_STEPS];  /* Kind of the function, see LUAMEMO_HEAD. */
  uintptr_t code[LUAMEMO_STEPS]; /* GCfunc.pc of the function. */
  LuaMemoState state[LUAMEMO_STEPS];
  FrameWord word[LUAMEMO_WORDS];
  LuaMemoLoad load[LUAMEMO_LOADS];
} LuaMemoSteps;

/* State of the VM for which saved steps are valid. */
typedef struct LuaMemoKey {
  lua_State *L;
  uintptr_t bot, end;   /* Lua stack of the coroutine. */
  uint64_t kept_pages;  /* SafeLoad.kept_pages: memory that was readable. */
  uint32_t unmaps;      /* SafeLoad.unmaps: ranges unmapped so far. */
  uint32_t freed, nfid; /* Functions freed and seen so far. */
} LuaMemoKey;

/* The cache of one session. The caller clears it before use. */
typedef struct LuaMemo {
  uint32_t least;         /* Steps of the smallest stack that is saved; set by the
				** caller. */
  uint32_t depth;         /* Steps of the last stack. */
  int on;                 /* The cache may save steps. */
  int records;            /* This walk records steps. */
  int32_t credit;         /* Steps that may be saved without reuse. */
  uint32_t reach;         /* Steps saved before the last addition. */
  uint32_t verified;      /* Saved steps whose words have not changed. */
  uint32_t reused;        /* Saved steps that this walk has copied. */
  LuaMemoKey key, walked; /* Keys of the saved steps and of this walk. */
  uintptr_t last;         /* LuaChain.last of the saved steps, at the bottom. */
  uintptr_t walked_last;  /* LuaChain.last of this walk, at the bottom. */
  uint32_t walked_nbound; /* Boundaries above the reused steps, or the bottom. */
  LuaMemoSteps saved;     /* Saved steps, from the bottom to the leaf. */
  LuaMemoSteps recording; /* Steps of this walk, from the leaf to the bottom. */
} LuaMemo;

/* Begin a sample. Saving a step takes about as long as walking it, and pays only if a
** later walk reuses it. So credit limits the steps that are saved and not reused.
*/
LJ_FUNC void lj_luamemo_sample(LuaMemo *t);

/* Begin to walk a coroutine, from a frame. with_funcs: the walk needs the functions, and
** not only valid frames.
*/
LJ_FUNC void lj_luamemo_begin(LuaMemo *t, const LuaArea *a, const FuncTab *ft,
			      uintptr_t top, int with_funcs);

/* Find the saved steps that continue this walk. Returns how many lead from this frame to
** the bottom, or 0.
*/
LJ_FUNC uint32_t lj_luamemo_reuse(LuaMemo *t, uintptr_t f, uintptr_t pc, const LuaChain *ch,
				  int skip);

/* End a walk that was valid to the bottom, and that read only memory of the VM. */
LJ_FUNC void lj_luamemo_end(LuaMemo *t, const FuncTab *ft);

/* Drop the recorded steps: this step must not be saved, so no step above it may be. */
static LJ_AINLINE void lj_luamemo_restart(LuaMemo *t)
{
  t->recording.nstep = t->recording.nword = t->recording.nload = 0;
}

/* Record that this step pushes a frame. */
static LJ_AINLINE void lj_luamemo_word(LuaMemo *t, FrameWord w)
{
  if (t->records && LJ_LIKELY(t->recording.nword < LUAMEMO_WORDS))
    t->recording.word[t->recording.nword++] = w;
}

/* Record that this step loads a word. If addr has 1 added, only the lower half counts. */
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

/* Record the kind of the function: gct, ffid, nupvalues in the upper bytes. The collector
** changes the lowest byte.
*/
static LJ_AINLINE uint32_t luamemo_head(const GCfunc *fn)
{
  uint32_t head;
  memcpy(&head, &fn->c.marked, sizeof(head));
  return head;
}

/* Begin a step. */
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
  s->sum.word = ts->nword;
  s->sum.extra = ts->nload;
  s->nbound = nbound;
}

/* End a step. fn: the function in the frame, NULL at the bottom. */
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
    lj_luamemo_restart(t); /* Earlier steps may be missing. */
}

#endif
