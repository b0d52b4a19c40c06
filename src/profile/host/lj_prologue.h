/*
** Frame pointer of a C function by its prologue, where the registers of a thread are unknown.
** Context: any thread. Async-signal-safe.
**
** The kernel tells only the stack pointer and the PC of a thread that sleeps. Functions whose
** frame hangs on the frame pointer, such as all of a program without optimisation, cannot be
** left with these. But the prologue subtracts a constant from the stack pointer, so the frame
** pointer follows from the stack pointer. The return address must follow a call. Where no constant
** fits, as in lj_vm_ffi_call, that must be a call of this function.
*/

#ifndef _LJ_PROLOGUE_H
#define _LJ_PROLOGUE_H

#include "profile/host/lj_cfi.h"

/* Find the frame pointer of a frame that rule describes, and add it to the registers. pc: an
** address of the function, begin: its first one. Returns 0 if it is not certain.
*/
LJ_FUNC int lj_prologue_find(SafeLoad *pk, const CfiRule *rule, uintptr_t begin,
			     uintptr_t pc, WalkRegs *regs);

#endif
