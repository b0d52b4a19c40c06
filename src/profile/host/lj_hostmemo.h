/*
** Cache of the last host walk: the frames that this sample shares with the last one.
** Context: handler.
**
** A step leads from a frame to its caller. It depends on the registers in that frame, and
** on the words of the stack that it loads: the return address, saved registers, the link
** of a VM frame. The memo saves these for the steps of the last walk. It saves from the
** outermost step up to the first one that depends on anything else.
**
** A walk first loads the saved words again, from the outermost step on, until one has
** changed. The steps before that are verified. When the walk reaches a verified step with
** the same registers, it copies the rest of the last walk. Each walk compares all words,
** so the program may do anything between two samples.
**
** The memo saves two kinds of steps, both on the stack that the thread began with: C code
** in objects that stay loaded, and VM frames where the interpreter has called C code.
**
** Takes no lock, allocates nothing. Loads only from the used part of the thread's stack.
*/

#ifndef _LJ_HOSTMEMO_H
#define _LJ_HOSTMEMO_H

#include "profile/base/lj_steplist.h"
#include "profile/host/lj_cfi.h"
#include "profile/host/lj_cframe.h"
#include "profile/capture/lj_framelist.h"

#define HOSTMEMO_STEPS 384  /* Steps saved. */
#define HOSTMEMO_WORDS 1536 /* Words that these load. */
#define HOSTMEMO_VMS   128  /* VM frames among them. */
#define HOSTMEMO_REGS  7    /* Registers without the stack pointer. */

/* State before a step. */
typedef struct MemoStep {
  uintptr_t sp;
  uintptr_t r[HOSTMEMO_REGS];
  uint32_t valid; /* As in WalkRegs. */
  StepSums sum;   /* Words, and VM frames: of the steps before it in the list. The VM
				** frames of a saved step include its own. */
} MemoStep;

/* Some steps. */
typedef struct MemoSteps {
  uint32_t nstep, nword, nvm;
  MemoStep step[HOSTMEMO_STEPS];
  FrameWord frame[HOSTMEMO_STEPS]; /* Of each step. */
  int32_t at[HOSTMEMO_WORDS];      /* Places of the words, from the end of the stack. */
  uintptr_t value[HOSTMEMO_WORDS]; /* Their values. */
  VMFrame vm[HOSTMEMO_VMS];
} MemoSteps;

/* Steps of two walks. Clear it before use. */
typedef struct HostMemoLists {
  MemoSteps saved;     /* Of the last walk, from the root to the leaf. */
  MemoSteps recording; /* Of this walk, from the leaf to the root. */
} HostMemoLists;

/* Clear it before use, and set lists. */
typedef struct HostMemo {
  HostMemoLists *lists; /* NULL: without a memo. */
  int on;               /* This walk uses the memo. */
  uintptr_t lo, hi;     /* The used part of the thread's stack. */
  uint32_t verified;    /* Saved steps whose words are the same. */
  uint32_t reused;      /* Steps that this walk has copied. */
} HostMemo;

/* Begin a walk, and verify saved steps. whole: it goes to the root. */
LJ_FUNC void lj_hostmemo_begin(HostMemo *hm, const SafeLoad *pk, int whole);

/* Do the registers of a caller and the next expected VM frame agree with a verified step?
** Returns the number of steps from it to the root, or 0.
*/
LJ_FUNC uint32_t lj_hostmemo_reuse(HostMemo *hm, const WalkRegs *regs, const lua_State *L,
				   uintptr_t expect);

/* The memo cannot record a step, so it drops the steps before it. */
static LJ_AINLINE void lj_hostmemo_restart(HostMemo *hm)
{
  if (hm->on) {
    MemoSteps *ts = &hm->lists->recording;
    ts->nstep = ts->nword = ts->nvm = 0;
  }
}

/* Record a step by a rule, or the crossing of a VM frame in the interpreter. regs: of a
** caller, before the step. Returns 0 if the memo cannot record it.
*/
LJ_FUNC int lj_hostmemo_host(HostMemo *hm, const CfiRule *rule, const WalkRegs *regs,
			     FrameWord frame);
LJ_FUNC int lj_hostmemo_vm(HostMemo *hm, const VMFrame *vf, const WalkRegs *regs,
			   FrameWord frame);

/* The walk came to the root, or reused steps: save the recorded steps. */
LJ_FUNC void lj_hostmemo_end(HostMemo *hm);

#endif
