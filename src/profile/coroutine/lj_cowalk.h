/*
** Lua stack of a coroutine, frame by frame, read without tests.
** Context: ordinary code of the thread that runs the VM.
**
** The VM's thread reads its own memory, so it is valid. A handler reads by lj_luathread.h.
*/

#ifndef _LJ_COWALK_H
#define _LJ_COWALK_H

#include "lj_obj.h"
#include "lj_bc.h"

/* A frame of a function. */
typedef struct CoStep {
  const GCfunc *fn;
  const BCIns *pc; /* Behind the instruction that a Lua function runs; NULL: unknown. */
  cTValue *frame;  /* Link slot, of the lower part of a vararg frame. */
  cTValue *slots;  /* First local. */
} CoStep;

/* Where a walk is. */
typedef struct CoWalk {
  lua_State *L;
  cTValue *frame;  /* Link slot of the next frame, */
  const BCIns *pc; /* and the PC there. */
  void *cf;        /* Innermost C frame of the VM that is not above it. */
} CoWalk;

/* Begin at the top frame. */
LJ_FUNC void lj_cowalk_begin(CoWalk *w, lua_State *L);

/* Read the next function's frame towards the bottom. Returns 0 at the end. */
LJ_FUNC int lj_cowalk_next(CoWalk *w, CoStep *step);

#endif
