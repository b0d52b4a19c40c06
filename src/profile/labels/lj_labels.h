/*
** Sets of labels: what the coroutines of a VM work for, such as a route and a tenant.
** Context: VM thread, outside of the handler. Handlers copy sets by lj_labelread.h.
**
** A coroutine has the number of its set in lua_State, 0 for none. Equal sets are one. Coroutines,
** C code and sums of waits hold a set by a plain count: only the thread that runs the VM changes it.
** A set that nobody holds stays known until its number is needed for others. Objects of Lua hold
** none, but have its bytes: so garbage takes no sets.
**
** The id of a set in streams is a number that no other set of the process had before.
** Sets stand in blocks that stay where they are until the VM is closed.
*/

#ifndef _LJ_LABELS_H
#define _LJ_LABELS_H

#include "lj_obj.h"
#include "lj_dispatch.h"
#include "profile/base/lj_relaxed.h"
#include "profile/event/lj_event.h"

/* Limit of sets of labels at a time: `[other]`, and how often */
#define LABELS_SETS 4096
/* Limit of labels in a set: an error */
#define LABELS_PAIRS 16
/* Limit of a label's key, in bytes: (cut) */
#define LABELS_KEY 48
/* Limit of a label's value, in bytes: (cut) */
#define LABELS_VALUE 192

#define LABELS_BYTES 4088 /* Of a set, as in the stream. */
LJ_STATIC_ASSERT(LABELS_PAIRS *(1 + LABELS_KEY + 2 + LABELS_VALUE) <= LABELS_BYTES);
LJ_STATIC_ASSERT(LABELS_BYTES <= SAMPLE_DEF_MAX);

#define LABELS_OTHER      1 /* Number of the set for labels without room; the others follow. */
#define LABELS_NUMBERS    (LABELS_OTHER + LABELS_SETS + 1)
#define LABELS_BLOCK_BITS 6
#define LABELS_BLOCK      (1 << LABELS_BLOCK_BITS) /* Sets of a block. */
#define LABELS_BLOCKS     ((LABELS_NUMBERS >> LABELS_BLOCK_BITS) + 1)
#define LABELS_HASH_BITS  12

typedef struct LabelSet {
  uint32_t next;                 /* In its chain, 0 is the end. */
  uint32_t len;                  /* Bytes of payload. */
  uint8_t payload[LABELS_BYTES]; /* As in an SPF_LABELS, after the id. */
} LabelSet;

/* Sets of a VM. */
typedef struct Labels {
  LabelSet *block[LABELS_BLOCKS];
  uint32_t id
    [LABELS_NUMBERS]; /* Of sets in streams. 0: there is none, or it is about to change. */
  uint32_t refs[LABELS_NUMBERS]; /* How many hold it, */
  uint32_t lent[LABELS_NUMBERS]; /* and how many of these are handles of the program. */
  uint32_t used;                 /* Numbers in use so far. */
  uint32_t held;                 /* Sets that somebody holds. */
  uint32_t hand;                 /* Number that was needed for another set last. */
  uint64_t others;               /* Labels that got LABELS_OTHER, since the VM began, */
  uint64_t before;               /* and before its profile. */
  uint32_t chain[1 << LABELS_HASH_BITS]; /* Sets by their bytes. */
  uint8_t made[LABELS_BYTES];            /* The set that is being made. */
} Labels;

/* A label to make a set of. */
typedef struct LabelPair {
  const char *key, *value;
  size_t klen, vlen;
} LabelPair;

static LJ_AINLINE LabelSet *labels_at(const Labels *ls, uint32_t number)
{
  return &ls->block[number >> LABELS_BLOCK_BITS][number & (LABELS_BLOCK - 1)];
}

/* Get the sets of a VM, or make them. Returns NULL without memory. */
LJ_FUNC Labels *lj_labels_of(global_State *g);

/* The VM is closing: its coroutines have no labels from here on. No profile of it runs. */
LJ_FUNC void lj_labels_close(global_State *g);

/* Write the bytes of a set into ls->made: valid UTF-8 without control characters. n: at most
** LABELS_PAIRS. Changes the order of the list. Returns their number.
*/
LJ_FUNC uint32_t lj_labels_encode(Labels *ls, LabelPair *pair, int n);

/* Hold the set with these bytes, and return its number: 0 for none, LABELS_OTHER without room. */
LJ_FUNC uint32_t lj_labels_get(Labels *ls, const uint8_t *payload, uint32_t len);

static LJ_AINLINE void labels_hold(Labels *ls, uint32_t number)
{
  if (number && ls->refs[number]++ == 0) ls->held++;
}

static LJ_AINLINE void labels_release(Labels *ls, uint32_t number)
{
  if (number && --ls->refs[number] == 0) ls->held--;
}

/* Give a coroutine a set, or none, and hold it. */
static LJ_AINLINE void labels_set(Labels *ls, lua_State *L, uint32_t number)
{
  uint32_t old = L->sysprof_label;
  labels_hold(ls, number);
  relaxed_set(&L->sysprof_label, number);
  labels_release(ls, old);
}

/* A new coroutine has the labels of the one that runs. L: its creator. */
LJ_FUNC void lj_labels_inherit(lua_State *L, lua_State *L1);

/* Name a set that somebody holds, for a sample. */
LJ_FUNC void lj_labels_define(const global_State *g, uint32_t number, SampleDef *def);

/* A profile of the VM begins. */
LJ_FUNC void lj_labels_begin(global_State *g);

/* Write one sentence about labels without room since then into text, or "". Any thread. */
LJ_FUNC void lj_labels_limit(const global_State *g, char *text, size_t size);

#endif
