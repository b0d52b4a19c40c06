/*
** Unwind cache: the steps of host stack unwinding, by address.
** Context: handler.
**
** Finding and interpreting the call frame information of an address takes hundreds of
** nanoseconds, and the result fits into a few bytes. The program can unload a library and
** load another one in its place. So a cached step counts only if the object that is loaded
** there now has the same entry at the same place: same bytes, same address. Objects that
** stay loaded need no such check: the program, the C library, the loader, this library.
** lj_cfi_step takes the steps that a CfiRule cannot express.
**
** Takes no lock, allocates nothing, checks every load of the stack.
*/

#ifndef _LJ_CFICACHE_H
#define _LJ_CFICACHE_H

#include "profile/host/lj_cfi.h"
#include "profile/host/lj_ehframe.h"

#define CFICACHE_BITS  11
#define CFICACHE_SLOTS (1 << CFICACHE_BITS) /* Steps cached. */

/* The step of one address. */
typedef struct CfiRow {
  uintptr_t pc;   /* The address, 0 if free. */
  uint64_t check; /* Sum of the entry's bytes and address. */
  uint32_t index; /* Index of the entry in the object's table. */
  CfiRule rule;
} CfiRow;

/* Clear it before use. */
typedef struct CfiCache {
  uint64_t generation; /* Sample of the next three. */
  EhObject obj;        /* Object of the last address, */
  const uint8_t *cie;  /* a common entry (CIE) of it, */
  uint64_t cie_check;  /* and the sum of that entry. */
  LJ_ALIGN(32) CfiRow row[CFICACHE_SLOTS];
} CfiCache;

/* Rule of the step from an address, NULL: use lj_cfi_step. Valid until the next call.
** Needs lj_ehframe_warmup.
*/
LJ_FUNC const CfiRule *lj_cficache_find(CfiCache *cc, const SafeLoad *pk, uintptr_t pc);

/* Replace the registers of a frame by its caller's, as lj_cfi_step does, by a rule. */
LJ_FUNC CfiResult lj_cficache_step(const CfiRule *rule, SafeLoad *pk, CfiRegs *regs);

#endif
