/*
** State of the walk of a VM's heap, and references to objects in a snapshot.
** Context: child of a snapshot.
*/

#ifndef _LJ_HEAPREF_H
#define _LJ_HEAPREF_H

#include "lj_obj.h"
#include "profile/heap/lj_heapmem.h"
#include "profile/heap/lj_heapout.h"

#define HEAPWALK_MODES 256 /* Metatables remembered. */
/* Limit of frames of a stack in a snapshot: (lower ones have no names) */
#define HEAPWALK_FRAMES 4096
/* Limit of the text of a string in a snapshot, in bytes: (cut) */
#define HEAPWALK_TEXT 256

/* A frame of the stack that is walked. */
typedef struct HeapFrame {
  const GCfunc *fn;
  const GCproto *pt; /* Checked; NULL for C. */
  uint32_t base;     /* First slot. */
  uint32_t pos;      /* Of the instruction that runs; ~0: unknown. */
} HeapFrame;

typedef struct HeapWalk {
  HeapOut out;
  HeapMem mem;
  global_State *g;
  uintptr_t own;    /* Address of the object whose record is being written. */
  uintptr_t last;   /* Of the one before. */
  uint64_t objects; /* Records of objects. */
  uint32_t state;   /* HPS_*. */
  int no_strings;   /* Leave out texts. */
  struct {
    const GCtab *mt;
    uint32_t flags;
  } mode[HEAPWALK_MODES];
  HeapFrame frame[HEAPWALK_FRAMES];
} HeapWalk;

/* Write a reference to an object of any address. */
LJ_FUNC void lj_heapref(HeapWalk *w, const void *o);

/* The same to the object of a value, which may be none. */
LJ_FUNC void lj_heapref_value(HeapWalk *w, cTValue *o);

/* Is an object with so many bytes and a type LJ_T* there? */
LJ_FUNC int lj_heapref_isobj(HeapWalk *w, const void *o, size_t sz, uint32_t it);

#endif
