/*
** Registers that a signal interrupted, as the walks take them.
*/

#ifndef REGS_OF_H
#define REGS_OF_H

#include "profile/host/lj_hostwalk.h"

/* The result is valid until this thread's next call. */
static inline const CfiRegs *regs_of(const ucontext_t *uc)
{
  static __thread CfiRegs regs;
  lj_hostwalk_regs(&regs, uc);
  return &regs;
}

#endif
