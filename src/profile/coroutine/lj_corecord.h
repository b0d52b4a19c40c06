/*
** Records of coroutines: what the profiler notes about one.
** Context: ordinary code of the thread that runs the VM.
**
** A coroutine has the number of its record in lua_State. It gets a record when something is to be
** noted. Records stand in blocks that stay where they are until the VM is closed.
*/

#ifndef _LJ_CORECORD_H
#define _LJ_CORECORD_H

#include "lj_obj.h"
#include "lj_dispatch.h"

#define CORECORD_BITS   12
#define CORECORD_BLOCK  (1 << CORECORD_BITS) /* Records of a block. */
#define CORECORD_BLOCKS 4096
/* Waits of further coroutines are counted only. */
#define CORECORD_MAX (4096 * 4096)

#define CORECORD_NONE 1 /* Number of a coroutine for which there was no record. */

typedef struct CoRecord {
  uint64_t yielded; /* Tick of its last yield, 0: not known. */
  uint32_t span;    /* Its open span, 0: none. Of a free record: the next one. */
  uint32_t birth;   /* Where it was made, 0: not known. */
} CoRecord;

/* Records of a VM. */
typedef struct CoRecords {
  CoRecord *block[CORECORD_BLOCKS];
  uint32_t used;   /* Numbers in use so far. */
  uint32_t unused; /* List of those that are free again, 0: none. */
} CoRecords;

/* Get the records of a VM, or make them. Returns NULL without memory. */
LJ_FUNC CoRecords *lj_corecord_of(global_State *g);

/* Give a coroutine a record. Without memory, its number is CORECORD_NONE, and this returns NULL. */
LJ_FUNC CoRecord *lj_corecord_new(CoRecords *cr, lua_State *L);

/* A coroutine is about to be freed, or begins anew. */
LJ_FUNC void lj_corecord_free(CoRecords *cr, lua_State *L);

/* The VM is closing. */
LJ_FUNC void lj_corecord_close(global_State *g);

/* Return the record of a coroutine, or NULL. */
static LJ_AINLINE CoRecord *corecord_find(const CoRecords *cr, const lua_State *L)
{
  uint32_t i = L->sysprof_record;
  if (LJ_UNLIKELY(i <= CORECORD_NONE)) return NULL;
  return &cr->block[i >> CORECORD_BITS][i & (CORECORD_BLOCK - 1)];
}

#endif
