/*
** Registers that a signal interrupted, as the walks take them.
*/

#ifndef REGS_OF_H
#define REGS_OF_H

#include "profile/capture/lj_walkregs.h"

/* The result is valid until this thread's next call. */
static inline const WalkRegs *regs_of(const ucontext_t *uc)
{
  static __thread WalkRegs regs;
  lj_walkregs_interrupted(&regs, uc);
  return &regs;
}

#endif
