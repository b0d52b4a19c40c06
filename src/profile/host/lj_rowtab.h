/*
** Unwind rows that a module has computed, by build-id: for code that our own tables lack.
** Context: find: handler | add: under the lock, on any thread.
**
** The table keeps the rows of a file and not of an object in memory. The handler reads the
** build-id of the object at an address, and takes rows only with the same one. So the program
** may unload an object at any time, and load another one in its place.
**
** find takes no lock and allocates nothing. add frees nothing, so find needs no lock.
*/

#ifndef _LJ_ROWTAB_H
#define _LJ_ROWTAB_H

#include "profile/base/lj_elfnote.h"
#include "profile/base/lj_safeload.h"
#include "profile/host/lj_cfi.h"

/* Limit of files with rows of libunwind: (their stacks are broken) */
#define ROWTAB_OBJECTS 256

/* The step from the addresses between begin and the next row's begin. */
typedef struct TabRow {
  uint32_t begin; /* Distance from the object's begin. */
  CfiRule rule;   /* depth 0: no step is known. */
} TabRow;

/* Rows of a file. */
typedef struct RowObject {
  uint8_t id[ELFNOTE_ID_MAX]; /* Its build-id. */
  uint32_t idlen;
  uint32_t n;
  const TabRow *row; /* By address. */
} RowObject;

/* The object of the last address, while the generation of the SafeLoad lasts. Clear it before
** use.
*/
typedef struct RowMemo {
  uintptr_t begin, end;
  uint64_t generation;
  const RowObject *object; /* NULL without rows. */
  uintptr_t asked;         /* Begin of the last object without rows. */
  int missing;             /* The walk has met another one, which may be new. */
} RowMemo;

/* Find the step from an address. Returns NULL if no row has one. Valid for ever. */
LJ_FUNC const CfiRule *lj_rowtab_find(RowMemo *memo, SafeLoad *pk, uintptr_t pc);

/* Add the rows of a file, which stay. Returns 0 if the table is full. */
LJ_FUNC int lj_rowtab_add(const RowObject *o);

#endif
