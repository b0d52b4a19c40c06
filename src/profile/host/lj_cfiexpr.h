/*
** Expressions of call frame information (DWARF 5, section 2.5): programs for a stack
** machine, which say where something is if no rule of the table does. The PLT and signal
** frames have them. Runs in the signal handler; all is read through lj_safeload.
*/

#ifndef _LJ_CFIEXPR_H
#define _LJ_CFIEXPR_H

#include "profile/host/lj_cfi.h"

/* Evaluate an expression: its length, which the caller has checked, and its operations.
** cfa: the value that it begins with, or NULL for none. CFI_STEP, and the result;
** CFI_NONE if it is not one that occurs in practice, CFI_FAULT if what it reads is not
** readable. Async-signal-safe.
*/
LJ_FUNC CfiResult lj_cfiexpr_eval(SafeLoad *pk, const uint8_t *expr, const CfiRegs *regs,
				  const uintptr_t *cfa, uintptr_t *result);

#endif
