/*
** Unwind cache: the steps of host stack unwinding, by address.
** Context: handler.
**
** It takes hundreds of nanoseconds to find and interpret the call frame information of an
** address. The result fits into a few bytes. The program can unload a library and load
** another one in its place. So a cached step counts only while the same object is loaded
** there: same addresses, same build-id. The handler copies the build-id once a sample.
** Without a build-id, the step's own entry must have the same bytes. Objects that stay
** loaded need no such check (lj_osobjects.h).
** lj_cfi_step takes the steps that a CfiRule cannot express.
**
** Takes no lock, allocates nothing, checks every load of the stack.
*/

#ifndef _LJ_CFICACHE_H
#define _LJ_CFICACHE_H

#include "profile/host/lj_cfi.h"
#include "profile/base/lj_hash.h"
#include "profile/host/lj_ehframe.h"

#define CFICACHE_BITS      10
#define CFICACHE_SLOTS     (1 << CFICACHE_BITS) /* Steps cached, */
#define CFICACHE_MORE_BITS 11
#define CFICACHE_MORE      (1 << CFICACHE_MORE_BITS) /* and with more memory. */

#define CFICACHE_OBJECTS 8 /* Objects known that may be unloaded. */

/* The step of one address. */
typedef struct CfiRow {
  uintptr_t pc;   /* The address, 0 if free. */
  uint64_t check; /* Sum of what tells the object, and perhaps the entry, from others. */
  int32_t entry;  /* Distance from the object's index to the entry. */
  CfiRule rule;
} CfiRow;

/* An object that may be unloaded. */
typedef struct CfiObject {
  EhObject obj;
  uint64_t generation; /* Sample that has found it the same. */
  const uint8_t *id;   /* Its build-id, else the beginning of its index. */
  uint32_t idlen;      /* Bytes of it. */
  int has_buildid;
  uint64_t sum; /* Of these bytes and of the object's place. */
} CfiObject;

/* Rows in place of those of CfiCache. Clear it before use. */
typedef struct CfiMore {
  LJ_ALIGN(32) CfiRow row[CFICACHE_MORE];
} CfiMore;

/* Clear it before use. */
typedef struct CfiCache {
  CfiMore *more;                      /* More rows, or NULL. */
  uint32_t at, turn;                  /* Object of the last address; replaced next. */
  CfiObject object[CFICACHE_OBJECTS]; /* The last ones. */
  EhCopy copy;                        /* Entries that are being read. */
  LJ_ALIGN(32) CfiRow row[CFICACHE_SLOTS];
} CfiCache;

/* First of the two slots of an address, which are side by side. */
static LJ_AINLINE CfiRow *cficache_slot(CfiCache *cc, uintptr_t pc)
{
  return LJ_UNLIKELY(cc->more != NULL)
	   ? &cc->more->row[hash_slot(pc, CFICACHE_MORE_BITS) & ~1u]
	   : &cc->row[hash_slot(pc, CFICACHE_BITS) & ~1u];
}

/* Cached rule of the step from an address in an object that stays loaded, or NULL. */
static LJ_AINLINE const CfiRule *cficache_staying(CfiCache *cc, uintptr_t pc)
{
  const CfiRow *row = cficache_slot(cc, pc);
  if (row->pc != pc) row++;
  return LJ_LIKELY(row->pc == pc && row->rule.stays) ? &row->rule : NULL;
}

/* Rule of the step from an address, NULL: use lj_cfi_step. Valid until the next call.
** Needs lj_osobjects_warmup.
*/
LJ_FUNC const CfiRule *lj_cficache_find(CfiCache *cc, SafeLoad *pk, uintptr_t pc);

/* Replace the registers of a frame by its caller's, as lj_cfi_step does, by a rule. */
LJ_FUNC CfiResult lj_cficache_step(const CfiRule *rule, SafeLoad *pk, WalkRegs *regs);

#endif
