/*
** Lua stack of a thread that sleeps, read from another thread by copies alone.
** Context: background thread or any other, not the handler.
**
** The VM may wake up at any moment, and change or free all that is read here. It never waits
** for this reader. So each object is copied by lj_safeload_copy, and then checked. The caller
** asks afterwards whether the thread has run: if so, what was read is void.
**
** The checks are those of lj_luathread.h. A thread sleeps in C code, so only few places of the
** VM can be at the top. Functions get numbers of this stack first, so that no table of the VM
** is needed meanwhile.
*/

#ifndef _LJ_LUASLEEP_H
#define _LJ_LUASLEEP_H

#include "profile/lua/lj_luathread.h"

/* Limit of different Lua functions on the stack of a sleeping thread: [stack unknown: the
** thread ran meanwhile]
*/
#define LUASLEEP_FUNCS  256
#define LUASLEEP_CFUNCS 128 /* Different C functions with numbers. */

/* A Lua function of the stack. */
typedef struct SleepFunc {
  const GCproto *pt; /* Its address. It may be freed. */
  GCproto head;      /* Copy of its head. */
  uint64_t key;      /* See lj_functab_key. */
  uint8_t chunklen;
  char chunk[FUNCTAB_CHUNK_MAX]; /* Name of its source. */
} SleepFunc;

/* A C function of the stack. */
typedef struct SleepCFunc {
  uintptr_t fn, f; /* Addresses of the closure and of its lua_CFunction. */
} SleepCFunc;

typedef struct LuaSleep {
  /* Set by the caller. */
  SafeLoad *pk;       /* Without the range of a stack: it copies all. */
  global_State *g;    /* The VM. It stays. */
  const HostWalk *hs; /* Walked host stack, with is_remote. */
  FrameList *frames; /* Gets the frames. A Lua function has its index in func as its id, a C
		      ** function its index in cfunc, plus 1, as its number. */
  /* Results. */
  LuaResult res;
  uint32_t label; /* As in LuaWalk. */
  uint32_t steps; /* Frames read, which bounds the work. */
  uint32_t nfunc;
  SleepFunc func[LUASLEEP_FUNCS];
  uint32_t ncfunc;
  SleepCFunc cfunc[LUASLEEP_CFUNCS];
} LuaSleep;

/* Read the Lua stack of a thread that runs the VM. If the result is broken, the frames are void. */
LJ_FUNC void lj_luasleep_walk(LuaSleep *ls);

#endif
