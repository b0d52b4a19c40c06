/*
** DWARF unwinder: one step from a C frame to its caller, by call frame information.
** Context: handler.
**
** Interprets .eh_frame (DWARF 5, section 6.4, and the Linux Standard Base, "Exception
** Frames"). Libraries for this assume an intact stack, and take locks. This one runs in a
** signal handler, on stacks that may be damaged: it takes no lock, allocates nothing, and
** checks every address before it reads there. x86-64.
*/

#ifndef _LJ_CFI_H
#define _LJ_CFI_H

#include "profile/base/lj_safeload.h"
#include "profile/host/lj_ehframe.h"

/* Replace the registers of a frame by its caller's. Needs lj_osobjects_warmup. May change
** errno.
*/
LJ_FUNC CfiResult lj_cfi_step(SafeLoad *pk, EhCopy *copy, WalkRegs *regs);

/* Registers that a called function preserves, without the stack pointer. */
#define CFI_NSAVED 6

/* The step of nearly all compiled code. The canonical frame address (CFA) is a register
** plus an offset. The return address is below the CFA, the saved registers below that.
*/
typedef struct CfiRule {
  int32_t cfa_ofs;
  uint8_t cfa_reg : 5;
  uint8_t is_root : 1;       /* This is the outermost frame. */
  uint8_t is_inner : 1;      /* The next address is in the same function. */
  uint8_t stays : 1;         /* lj_osobjects_stay: its object stays loaded. */
  uint8_t depth;             /* Words below the CFA that the step loads. */
  uint8_t saved[CFI_NSAVED]; /* Words below it of each, 0: not saved. */
} CfiRule;

/* Order of CfiRule.saved. */
static const uint8_t lj_cfi_saved[CFI_NSAVED] = { WALKREG_BX,  WALKREG_BP,  WALKREG_R12,
						  WALKREG_R13, WALKREG_R14, WALKREG_R15 };

/* Find the rule of an address, and its entry. Returns 0 without an entry, or if a
** CfiRule cannot express it.
*/
LJ_FUNC int lj_cfi_rule(SafeLoad *pk, uintptr_t pc, EhCopy *copy, CfiRule *rule, Fde *fde);

/* Address to look up for a frame: inside of the call for a return address. */
static LJ_AINLINE uintptr_t lj_cfi_lookup_pc(const WalkRegs *regs)
{
  return regs->r[WALKREG_PC] - (regs->is_return ? 1 : 0);
}

/* Does the code before p, of seven bytes, end with a call? */
LJ_FUNC int lj_cfi_iscalled(const uint8_t *p);

/* Is this return address the start of a function? makecontext(3) makes such outermost
** frames.
*/
LJ_FUNC int lj_cfi_isstart(SafeLoad *pk, EhCopy *copy, const WalkRegs *regs);

#endif
