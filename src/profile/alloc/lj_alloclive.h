/*
** Live blocks: which of the sampled blocks of memory still exist.
** Context: the thread that runs the VM.
**
** A table of fixed size holds the blocks by address. Each block is a thing of the stream: its
** sample has the number, and the source reports its end. A filter counts blocks by some bits
** of the address. So the hook sees at once that a block is not in the table.
**
** A block of n bytes is in the table with the probability 1 - e^(-n/period), where period is
** that of its sample, or that of the table if this is longer. When the table is full, its
** period doubles, and each block stays with the ratio of its two probabilities. So weights by
** the longer of the two periods are unbiased, whenever a block came in.
*/

#ifndef _LJ_ALLOCLIVE_H
#define _LJ_ALLOCLIVE_H

#include "profile/alloc/lj_allocdraw.h"
#include "profile/event/lj_event.h"

#define ALLOCLIVE_BITS   15
#define ALLOCLIVE_MAX    (1 << ALLOCLIVE_BITS) /* Blocks. */
#define ALLOCLIVE_FILTER 65536 /* Counters; a power of two that the hook knows. */

/* A block of the table, or one that has ended and is not reported yet. */
typedef struct LiveBlock {
  uintptr_t address;
  uint64_t size;
  uint64_t period;  /* By which it is in the table. */
  uint64_t thing;   /* Its number. */
  uint32_t session; /* That has its sample. */
  uint32_t cycle;   /* Cycles of the collector before it; once it has ended, its age. */
  uint32_t next;    /* In its list, 0 is the end. */
  int how;          /* SPF_ENDED_*. */
} LiveBlock;

typedef struct LiveTable {
  LiveBlock block[ALLOCLIVE_MAX + 1]; /* From 1 on. */
  uint32_t bucket[ALLOCLIVE_MAX];     /* Lists by address. */
  SampleEnd ends[SAMPLE_ENDS_MAX];    /* That one call reports. */
} LiveTable;

/* Clear it before the first use. */
typedef struct AllocLive {
  uint8_t filter[ALLOCLIVE_FILTER]; /* First: the hook's assembler reads it. */
  LiveTable *table;                 /* NULL: closed. */
  const uint32_t *cycles;           /* Cycles of the collector so far. */
  uint64_t period;                  /* Bytes; blocks have this one or a longer one. */
  uint64_t thing;                   /* Last number. */
  uint32_t used;                    /* Blocks of the table that were ever in use. */
  uint32_t unused;                  /* List of those that are no longer. */
  uint32_t ended, nended;           /* List of ended blocks, and how many. */
  uint32_t coming; /* The block that was sampled and has no address yet; or 0. */
} AllocLive;

/* Open an empty table. Returns 0 without memory. */
LJ_FUNC int lj_alloclive_open(AllocLive *l, uint64_t period, const uint32_t *cycles);

/* Free its memory. */
LJ_FUNC void lj_alloclive_close(AllocLive *l);

static LJ_AINLINE uint32_t alloclive_filter(uintptr_t p)
{
  return (uint32_t)(p >> 4) & (ALLOCLIVE_FILTER - 1);
}

/* May a block be in the table? */
static LJ_AINLINE int alloclive_mayhave(const AllocLive *l, const void *p)
{
  return l->filter[alloclive_filter((uintptr_t)p)] != 0;
}

/* Make room for a block, and report ended ones by the event. Returns 0 if there is no room
** because the session is in use. May raise the period.
*/
LJ_FUNC int lj_alloclive_makeroom(AllocLive *l, AllocDraw *d, Event *ev);

/* A block was sampled with a period. Returns the number of its thing, or 0 if the table does not
** take it. After makeroom.
*/
LJ_FUNC uint64_t lj_alloclive_begin(AllocLive *l, AllocDraw *d, uint64_t period,
				    uint64_t size);

/* The stream has the sample of the coming block, in a session; or has lost it. */
LJ_FUNC void lj_alloclive_sampled(AllocLive *l, uint32_t session);
LJ_FUNC void lj_alloclive_lost(AllocLive *l);

/* The allocator has freed or resized a block, which may be in the table. */
LJ_FUNC void lj_alloclive_free(AllocLive *l, const void *p);

/* The coming block has an address, or NULL: the allocation failed. */
LJ_FUNC void lj_alloclive_enter(AllocLive *l, const void *p);

/* End all blocks: the VM frees them, or the program may have freed some unseen. how: SPF_ENDED_*. */
LJ_FUNC void lj_alloclive_end(AllocLive *l, int how);

/* Report all ended blocks by the event. Returns 0 if their session is in use. */
LJ_FUNC int lj_alloclive_report(AllocLive *l, Event *ev);

#endif
