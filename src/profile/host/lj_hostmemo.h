/*
** Tail of the host stack: the frames that it shares with the last sample.
**
** A step from a frame to its caller follows from the registers in that frame and
** from the words of the stack that are loaded: the return address, saved
** registers, the link of a VM frame. Of the last walk, these are kept for each
** step, from the outermost one up to the first that depends on anything else. A
** walk begins by loading the words again, from the outermost step on, until one
** has changed. When it comes to a frame whose step was kept, whose words are all
** the same, and those of all steps below it, and whose registers are the same,
** then the rest of the walk is that of the last time: it is copied.
**
** Kept are steps of C code in objects that stay loaded, and the crossing of the
** VM's frames where the interpreter has called C code, both on the stack that the
** thread began with. Neither the order in which samples come nor what happened in
** between matters: each time all is compared.
**
** Runs in the signal handler: no lock, no allocation. Loads only from the part of
** the thread's stack in use.
*/

#ifndef _LJ_HOSTMEMO_H
#define _LJ_HOSTMEMO_H

#include "profile/host/lj_cfi.h"
#include "profile/host/lj_cframe.h"
#include "profile/format/lj_framelist.h"

#define HOSTMEMO_STEPS 384  /* Steps kept. */
#define HOSTMEMO_WORDS 1536 /* Words that these have loaded. */
#define HOSTMEMO_VMS   128  /* VM frames among them. */
#define HOSTMEMO_REGS  7    /* Registers but the stack pointer. */

/* Before a step. */
typedef struct MemoStep {
  uintptr_t sp;
  uintptr_t r[HOSTMEMO_REGS];
  uint32_t valid; /* As in CfiRegs. */
  uint32_t word;  /* Words of the steps that come before in the list. */
  uint32_t vm;    /* VM frames crossed: by the steps before, or if
				** it is kept, by it and the steps before. */
} MemoStep;

/* Some steps. */
typedef struct MemoSteps {
  uint32_t nstep, nword, nvm;
  MemoStep step[HOSTMEMO_STEPS];
  FrameWord frame[HOSTMEMO_STEPS]; /* Of each step. */
  int32_t at[HOSTMEMO_WORDS];      /* Words' places, from the end of the stack. */
  uintptr_t value[HOSTMEMO_WORDS]; /* What was loaded from there. */
  VMFrame vm[HOSTMEMO_VMS];
} MemoSteps;

/* Clear it before use. */
typedef struct HostMemo {
  int on;           /* In this walk. */
  uintptr_t lo, hi; /* The thread's stack in use. */
  uint32_t same;    /* Steps of kept whose words are the same. */
  uint32_t joined;  /* Steps that this walk has copied. */
  MemoSteps kept;   /* From the root to the leaf. */
  MemoSteps fresh;  /* Of this walk, from the leaf to the root. */
} HostMemo;

/* Begin a walk, which ends at the root if it is whole. */
LJ_FUNC void lj_hostmemo_begin(HostMemo *ht, const SafeLoad *pk, int whole);

/* Do the registers, after a call, and the VM frame that is expected next agree
** with a kept step? Returns the number of kept steps from it to the root, or 0.
*/
LJ_FUNC uint32_t lj_hostmemo_join(HostMemo *ht, const CfiRegs *regs, const lua_State *L,
				  uintptr_t expect);

/* A step that cannot be kept: those before it cannot, either. */
static LJ_AINLINE void lj_hostmemo_restart(HostMemo *ht)
{
  ht->fresh.nstep = ht->fresh.nword = ht->fresh.nvm = 0;
}

/* Keep a step by a rule, or the crossing of a VM frame in the interpreter, from these
** registers, which are those after a call. Returns 0 if it cannot be kept.
*/
LJ_FUNC int lj_hostmemo_host(HostMemo *ht, const CfiRule *rule, const CfiRegs *regs,
			     FrameWord frame);
LJ_FUNC int lj_hostmemo_vm(HostMemo *ht, const VMFrame *vf, const CfiRegs *regs,
			   FrameWord frame);

/* The walk came to the root, or joined kept steps. */
LJ_FUNC void lj_hostmemo_end(HostMemo *ht);

#endif
