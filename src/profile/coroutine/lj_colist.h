/*
** Coroutine list: all coroutines of a VM, grouped by stack and state.
** Context: ordinary code of the thread that runs the VM, between two bytecodes.
**
** The VM does not run meanwhile. Nothing here allocates memory of the VM or calls it.
** The main thread is the first object of a VM, so it ends the collector's list of objects. The
** line of a frame needs a search. So groups come first, by state, functions and positions.
*/

#ifndef _LJ_COLIST_H
#define _LJ_COLIST_H

#include "lj_obj.h"

#define COLIST_FRAMES 1000 /* Innermost frames of a stack that are kept. */

typedef enum CoState {
  CO_RUNNING,
  CO_NORMAL,    /* It has resumed another coroutine, or C code has called one. */
  CO_SUSPENDED, /* It has yielded. */
  CO_NEW,       /* It was not resumed yet. */
  CO_FAILED,    /* An error has ended it. */
  CO_DEAD,      /* It has returned, or no code runs on it. */
  CO__MAX
} CoState;

typedef enum CoKind { CO_LUA, CO_BUILTIN, CO_C, CO_CUT } CoKind;

/* A frame of a stack. */
typedef struct CoFrame {
  uintptr_t what; /* Prototype, id of a builtin, address of a C function, or a number of
		  ** frames that are left out. */
  uint32_t kind;  /* CoKind. */
  uint32_t
    line; /* Current line of a Lua function; of its definition if it was not called yet.
		  ** 0: unknown. */
} CoFrame;

/* How long coroutines have waited since they yielded. Known while coroutine-wait is recorded. */
typedef struct CoAge {
  uint32_t n;      /* Coroutines whose age is known. */
  uint32_t nleast; /* Those that have waited at least so long. */
  uint64_t min_ns, max_ns;
} CoAge;

/* Coroutines with the same stack and state. */
typedef struct CoGroup {
  uint64_t hash;
  CoState state;
  uint32_t count;
  lua_State *L; /* One of them. */
  CoAge age;
  size_t at; /* Its frames in CoList.frame, leaf first. */
  uint32_t nframe;
} CoGroup;

typedef struct CoList {
  global_State *g;
  uint32_t n;              /* Coroutines, the main thread included. */
  uint32_t count[CO__MAX]; /* The same, by state. */
  CoGroup *group;          /* The largest first. */
  uint32_t ngroup;
  CoFrame *frame; /* Frames of all groups. */
  size_t nframe;
} CoList;

/* List the coroutines of the VM of L, which runs now. Returns 0 without memory. */
LJ_FUNC int lj_colist_read(CoList *cl, lua_State *L);

LJ_FUNC void lj_colist_free(CoList *cl);

#endif
