/*
** Registers that a signal interrupted.
** Context: handler.
*/

#define lj_walkregs_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For the names of the registers in ucontext_t. */
#endif
#include "profile/capture/lj_walkregs.h"

void lj_walkregs_interrupted(WalkRegs *regs, const ucontext_t *uc)
{
  static const struct {
    uint8_t reg, greg;
  } regmap[] = { { 0, REG_RAX },         { 1, REG_RDX },  { 2, REG_RCX },  { 3, REG_RBX },
		 { 4, REG_RSI },         { 5, REG_RDI },  { 6, REG_RBP },  { 7, REG_RSP },
		 { 8, REG_R8 },          { 9, REG_R9 },   { 10, REG_R10 }, { 11, REG_R11 },
		 { 12, REG_R12 },        { 13, REG_R13 }, { 14, REG_R14 }, { 15, REG_R15 },
		 { WALKREG_PC, REG_RIP } };
  int i;
  for (i = 0; i < WALKREG__MAX; i++)
    regs->r[regmap[i].reg] = (uintptr_t)uc->uc_mcontext.gregs[regmap[i].greg];
  regs->valid = WALKREG_ALL;
  regs->is_return = 0;
}
