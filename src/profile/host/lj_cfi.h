/*
** One step of host stack unwinding by call frame information (CFI).
**
** Our own reader of .eh_frame (DWARF 5, section 6.4, and the Linux Standard
** Base, "Exception Frames"), because it has to run in a signal handler on a
** stack that may be damaged: it takes no lock (the object of an address comes
** from _dl_find_object(3), which is lock-free), allocates nothing, and checks
** every address before it is read. x86-64.
*/

#ifndef _LJ_CFI_H
#define _LJ_CFI_H

#include "profile/base/lj_safeload.h"

/* Registers by their DWARF numbers (System V ABI for AMD64, figure 3.36). */
enum {
  CFI_REG_BX = 3,
  CFI_REG_BP = 6,
  CFI_REG_SP = 7,
  CFI_REG_R12 = 12,
  CFI_REG_R13,
  CFI_REG_R14,
  CFI_REG_R15,
  CFI_REG_PC = 16,
  CFI_REG__MAX
};

typedef struct CfiRegs {
  uintptr_t r[CFI_REG__MAX]; /* Values. */
  uint32_t valid;            /* Bit set of the known ones. */
  int is_return;             /* r[CFI_REG_PC] is a return address. */
} CfiRegs;

/* Registers that a called function preserves: known in its caller, too. */
#define CFI_PRESERVED \
  ((1u << CFI_REG_BX) | (1u << CFI_REG_BP) | (1u << CFI_REG_SP) | (1u << CFI_REG_R12) | \
   (1u << CFI_REG_R13) | (1u << CFI_REG_R14) | (1u << CFI_REG_R15) | (1u << CFI_REG_PC))

typedef enum CfiResult {
  CFI_ROOT,      /* This is the outermost frame. */
  CFI_STEP,      /* The registers are the caller's now. */
  CFI_NO_OBJECT, /* The address is not in a loaded object. */
  CFI_NONE,      /* No usable CFI for this address; registers unchanged. */
  CFI_FAULT      /* A needed address is not readable; registers unchanged. */
} CfiResult;

/* Replace the registers of a frame by its caller's. Async-signal-safe once
** lj_cfi_warmup has run. May change errno.
*/
LJ_FUNC CfiResult lj_cfi_step(SafeLoad *pk, CfiRegs *regs);

/* Registers other than the stack pointer that a called function preserves. */
#define CFI_NSAVED 6

/* What a step does, where it is as in nearly all compiled code: the canonical
** frame address (CFA) is a register plus an offset, the return address is below
** it, and saved registers are below that.
*/
typedef struct CfiRule {
  int32_t cfa_ofs;
  uint8_t cfa_reg : 5;
  uint8_t is_root : 1;       /* This is the outermost frame. */
  uint8_t is_inner : 1;      /* The next address is in this function, too. */
  uint8_t stays : 1;         /* Its object does, see lj_ehframe_stays. */
  uint8_t depth;             /* Words below the CFA that are loaded. */
  uint8_t saved[CFI_NSAVED]; /* Words below it of each, 0: not saved. */
} CfiRule;

/* Order of CfiRule.saved. */
static const uint8_t lj_cfi_saved[CFI_NSAVED] = { CFI_REG_BX,  CFI_REG_BP,  CFI_REG_R12,
						  CFI_REG_R13, CFI_REG_R14, CFI_REG_R15 };

struct Fde;

/* Find the rule of an address, and the entry that it is from. Returns 0 if there
** is none, or it is another one. Async-signal-safe.
*/
LJ_FUNC int lj_cfi_rule(uintptr_t pc, CfiRule *rule, struct Fde *fde);

/* Address to look up for a frame: inside of the call for a return address. */
static LJ_AINLINE uintptr_t lj_cfi_lookup_pc(const CfiRegs *regs)
{
  return regs->r[CFI_REG_PC] - (regs->is_return ? 1 : 0);
}

/* Is this the start of a function, put on the stack by hand to be returned to?
** It is the outermost frame of a C stack that makecontext(3) made.
*/
LJ_FUNC int lj_cfi_isstart(SafeLoad *pk, const CfiRegs *regs);

/* Bind the functions used. Call it once outside of the handler. */
LJ_FUNC void lj_cfi_warmup(void);

#endif
