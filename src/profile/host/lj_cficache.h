/*
** Steps of host stack unwinding, remembered.
**
** To find the call frame information of an address and to interpret it takes
** hundreds of nanoseconds; what it says fits into a few bytes. They are kept by
** address. An address can become another function's, when a library is unloaded
** and another one loaded in its place. So a remembered step counts only if the
** index of the object that is loaded there now has the same entry at the same
** place: same bytes, same address. That is not asked of objects that stay: the
** program, the C library, the loader, ourselves. What cannot be remembered is
** interpreted.
**
** Runs in the signal handler: no lock, no allocation, every load of the stack
** checked.
*/

#ifndef _LJ_CFICACHE_H
#define _LJ_CFICACHE_H

#include "profile/host/lj_cfi.h"
#include "profile/host/lj_ehframe.h"

#define CFICACHE_BITS  11
#define CFICACHE_SLOTS (1 << CFICACHE_BITS) /* Steps remembered. */

/* The step of one address. */
typedef struct CfiRow {
  uintptr_t pc;   /* The address, 0 if free. */
  uint64_t check; /* Sum of the entry's bytes and address. */
  uint32_t index; /* Of the entry, in the object's table. */
  CfiRule rule;
} CfiRow;

/* Clear it before use. */
typedef struct CfiCache {
  uint64_t generation; /* Sample that these are of. */
  EhObject obj;        /* Object of the last address, */
  const uint8_t *cie;  /* a common entry of it, */
  uint64_t cie_check;  /* and its sum. */
  LJ_ALIGN(32) CfiRow row[CFICACHE_SLOTS];
} CfiCache;

/* What a step from this address does, NULL if it has to be interpreted. Valid
** until the next call. Async-signal-safe once lj_cfi_warmup has run.
*/
LJ_FUNC const CfiRule *lj_cficache_find(CfiCache *cc, const SafeLoad *pk, uintptr_t pc);

/* Replace the registers of a frame by its caller's, as lj_cfi_step does. */
LJ_FUNC CfiResult lj_cficache_step(const CfiRule *rule, SafeLoad *pk, CfiRegs *regs);

#endif
