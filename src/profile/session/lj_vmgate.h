/*
** Gate between a VM and its readers: who may read VM data, and when it may be freed.
** Context: read_begin, read_end: handler | enter, leave, change_*: VM thread | the rest:
** under the lock.
**
** Which thread runs the VM. A host may move a VM between threads, and the VM's own data
** does not tell. vm_tid is the thread that was last known to run it: by start, by
** luaM_sysprof_moved, by a hook of the VM, or by a sample that found the VM's innermost C
** frame on its host stack. Only a handler on that thread reads Lua data.
**
** How memory is freed that a handler may read. A handler sets its own `reading` and then
** looks at `changing`. The VM thread sets `changing`, waits until no reader is reading,
** and then frees or moves. A handler that comes later sees `changing` and keeps out,
** unless it interrupts the VM thread itself. The VM thread never waits for its own
** handler. A reader whose thread has ended counts no more.
**
** How a reader leaves. Hooks walk the list of readers without a lock. Whoever unlinks a
** reader waits until the hook that may see it has left.
*/

#ifndef _LJ_VMGATE_H
#define _LJ_VMGATE_H

#include "lj_obj.h"

/* One handler that may read the VM. */
typedef struct VmReader {
  struct VmReader *volatile next;
  volatile int tid;     /* Its thread. */
  volatile int reading; /* 1: it reads VM data now. */
} VmReader;

typedef struct VmGate {
  global_State *g;                /* The VM. Set once. */
  volatile int running;           /* There are readers, or will be. */
  volatile int vm_tid;            /* Thread that was last known to run the VM. */
  volatile int shared;            /* The VM was seen on several threads. */
  volatile int changing;          /* The VM frees or moves something. */
  volatile int in_hook;           /* Thread in a hook, which walks the list; or 0. */
  lua_State *volatile moving;     /* Its Lua stack is being moved, */
  volatile uintptr_t moving_from; /* from this address. */
  VmReader *volatile first;       /* The newest first. Changed under the lock. */
  VmReader outsider;              /* Reads under the lock, on any thread. */
} VmGate;

/* -- Which thread runs the VM ------------------------------------------------ */

/* Was the VM last known to run on this thread? Async-signal-safe. */
static LJ_AINLINE int vmgate_runson(const VmGate *gate, int tid)
{
  return __atomic_load_n(&gate->vm_tid, __ATOMIC_RELAXED) == tid;
}

/* Was the VM seen on several threads? Async-signal-safe. */
static LJ_AINLINE int vmgate_isshared(const VmGate *gate)
{
  return __atomic_load_n(&gate->shared, __ATOMIC_RELAXED);
}

/* The VM runs on this thread now. Async-signal-safe. */
static LJ_AINLINE void vmgate_seton(VmGate *gate, int tid)
{
  if (vmgate_runson(gate, tid)) return;
  __atomic_store_n(&gate->shared, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&gate->vm_tid, tid, __ATOMIC_RELAXED);
}

/* -- Reading ----------------------------------------------------------------- */

/* Begin to read VM data. Returns 0 if the VM frees or moves something on another
** thread: then there is nothing to end. Async-signal-safe.
*/
static LJ_AINLINE int vmgate_read_begin(VmGate *gate, VmReader *reader)
{
  __atomic_store_n(&reader->reading, 1, __ATOMIC_SEQ_CST);
  if (LJ_LIKELY(!__atomic_load_n(&gate->changing, __ATOMIC_SEQ_CST)) ||
      vmgate_runson(gate, reader->tid))
    return 1;
  __atomic_store_n(&reader->reading, 0, __ATOMIC_RELEASE);
  return 0;
}

/* End it. Async-signal-safe. */
static LJ_AINLINE void vmgate_read_end(VmReader *reader)
{
  __atomic_store_n(&reader->reading, 0, __ATOMIC_RELEASE);
}

/* Does no other thread run the VM? Reads the VM as an outsider. Under the lock. */
LJ_FUNC int lj_vmgate_isours(VmGate *gate);

/* -- Hooks of the VM --------------------------------------------------------- */

/* A hook of the VM begins. Returns 0, and there is nothing to leave, if the gate is not
** running.
*/
LJ_FUNC int lj_vmgate_enter(VmGate *gate);
LJ_FUNC void lj_vmgate_leave(VmGate *gate);

/* Within a hook: from begin to end no handler of another thread reads the VM. */
LJ_FUNC void lj_vmgate_change_begin(VmGate *gate);
LJ_FUNC void lj_vmgate_change_end(VmGate *gate);

/* -- Readers ----------------------------------------------------------------- */

/* Make a gate ready: the calling thread runs the VM, and there is no reader. */
LJ_FUNC void lj_vmgate_open(VmGate *gate);

/* It is running, or not any more: no hook uses it when this returns. */
LJ_FUNC void lj_vmgate_run(VmGate *gate);
LJ_FUNC void lj_vmgate_stop(VmGate *gate);

LJ_FUNC void lj_vmgate_add(VmGate *gate, VmReader *reader);

/* Unlink a reader whose clocks are closed: no hook sees it when this returns. */
LJ_FUNC void lj_vmgate_remove(VmGate *gate, VmReader *reader);

/* In a child of fork(): unlink all readers and forget the hook. Returns the first. */
LJ_FUNC VmReader *lj_vmgate_forget(VmGate *gate);

#endif
