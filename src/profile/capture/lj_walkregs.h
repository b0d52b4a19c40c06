/*
** Registers that a stack walk starts from: of a signal, or of ordinary code.
** Context: handler, or any code of the sampled thread. Async-signal-safe. x86-64.
*/

#ifndef _LJ_WALKREGS_H
#define _LJ_WALKREGS_H

#include <ucontext.h>

#include "lj_def.h"

/* Registers by their DWARF numbers (System V ABI for AMD64, figure 3.36). */
enum {
  WALKREG_AX = 0,
  WALKREG_DX,
  WALKREG_CX,
  WALKREG_BX,
  WALKREG_BP = 6,
  WALKREG_SP = 7,
  WALKREG_R12 = 12,
  WALKREG_R13,
  WALKREG_R14,
  WALKREG_R15,
  WALKREG_PC = 16,
  WALKREG__MAX
};

/* Registers of a frame. */
typedef struct WalkRegs {
  uintptr_t r[WALKREG__MAX]; /* Values. */
  uint32_t valid;            /* Bit set of the known ones. */
  int is_return;             /* r[WALKREG_PC] is a return address. */
} WalkRegs;

/* All registers are known where a signal interrupted the code. */
#define WALKREG_ALL ((1u << WALKREG__MAX) - 1)

/* Registers that a called function preserves, so that its caller has them. */
#define WALKREG_PRESERVED \
  ((1u << WALKREG_BX) | (1u << WALKREG_BP) | (1u << WALKREG_SP) | (1u << WALKREG_R12) | \
   (1u << WALKREG_R13) | (1u << WALKREG_R14) | (1u << WALKREG_R15) | (1u << WALKREG_PC))

/* Get the registers of the calling function, which is ordinary code. */
static LJ_AINLINE void walkregs_here(WalkRegs *regs)
{
  uintptr_t *r = regs->r;
  __asm__ volatile("movq %%rbx, 24(%0)\n\t"
		   "movq %%rbp, 48(%0)\n\t"
		   "movq %%rsp, 56(%0)\n\t"
		   "movq %%r12, 96(%0)\n\t"
		   "movq %%r13, 104(%0)\n\t"
		   "movq %%r14, 112(%0)\n\t"
		   "movq %%r15, 120(%0)\n\t"
		   "leaq 0(%%rip), %%rax\n\t"
		   "movq %%rax, 128(%0)"
		   :
		   : "r"(r)
		   : "rax", "memory");
  regs->valid = WALKREG_PRESERVED;
  regs->is_return = 0;
}

/* Get the registers that a signal interrupted. */
LJ_FUNC void lj_walkregs_interrupted(WalkRegs *regs, const ucontext_t *uc);

#endif
