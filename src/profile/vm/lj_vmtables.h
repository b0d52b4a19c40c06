/*
** Tables of a VM for its samples: ids of its Lua functions, and the Lua walk with its caches.
** Context: handler for claim and release | the rest: under the lock.
**
** All sessions of a profile share the tables of its VM. One thread at a time runs the VM, so
** one handler at a time uses them. A handler that finds them in use treats its thread as one
** that does not run the VM.
**
** The first session of a profile also gets larger tables of what each session has.
*/

#ifndef _LJ_VMTABLES_H
#define _LJ_VMTABLES_H

#include "profile/lua/lj_luasleep.h"
#include "profile/lua/lj_luawalk.h"
#include "profile/stream/lj_stacktab.h"
#include "profile/symbols/lj_symtab.h"

/* For the walk of a thread that sleeps. Under the lock. */
typedef struct SleepTables {
  SafeCopies copies;
  SafeLoad peek;
  HostWalk host;
  LuaSleep lua;
  FrameList host_frames, lua_frames;
  uint32_t freed; /* FuncTab.freed before the walk, */
  uint32_t marks; /* and CFuncTab.marks. */
} SleepTables;

typedef struct VmTables {
  int user;        /* Thread whose handler uses them, or 0. */
  int last;        /* Thread that used them last. */
  uint32_t nbatch; /* Last number of a batch. Any thread. */
  LuaWalk lua;
  /* Of the first session. */
  HostMemoLists memo;
  CfiMore cfi;
  SymtabMore symbols;
  StackMore stacks;
  /* Of the user. */
  FuncTab funcs; /* Ids of the Lua functions. */
  SafeLoad peek; /* For the search for names. */
  SleepTables sleep;
} VmTables;

/* Map tables. leaf_only: as in LuaWalk. Returns NULL without memory. */
LJ_FUNC VmTables *lj_vmtables_new(global_State *g, int leaf_only);

/* Free them. No handler or hook may use them. NULL: does nothing. */
LJ_FUNC void lj_vmtables_free(VmTables *vt);

/* Take over the tables of a thread that has ended within its handler. Returns 0 if it has
** not. Async-signal-safe.
*/
LJ_FUNC int lj_vmtables_inherit(VmTables *vt, int user, int tid);

/* Claim the tables for this thread. Returns 0 if another thread uses them. A thread that has
** jumped out of its handler claims them again. May change errno. Async-signal-safe.
*/
static LJ_AINLINE int vmtables_claim(VmTables *vt, int tid)
{
  int user = 0;
  if (LJ_UNLIKELY(!__atomic_compare_exchange_n(&vt->user, &user, tid, 0, __ATOMIC_ACQUIRE,
					       __ATOMIC_RELAXED)) &&
      user != tid && !lj_vmtables_inherit(vt, user, tid))
    return 0;
  if (LJ_UNLIKELY(vt->last != tid)) {
    vt->last = tid;
    vt->funcs.lookups_gen = 0;
    vt->lua.memo.key.L = NULL; /* Its pages were readable on the last thread. */
  }
  return 1;
}

/* Give the tables back. Async-signal-safe. */
static LJ_AINLINE void vmtables_release(VmTables *vt)
{
  __atomic_store_n(&vt->user, 0, __ATOMIC_RELEASE);
}

/* Claim the tables and find names for their functions. If a handler uses the tables, waits
** for a second at most. Returns the functions if their prototypes are readable: then the
** caller must release the tables. Else returns NULL.
*/
LJ_FUNC FuncTab *lj_vmtables_name(VmTables *vt);

#endif
