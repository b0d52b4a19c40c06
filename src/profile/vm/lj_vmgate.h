/*
** Gate between a VM and its readers: who may read VM data, and when it may be freed.
** Context: read_*: handler | enter, leave, change_*: VM thread | the rest: under the lock.
**
** Which thread runs the VM. A host may move a VM between threads, and the VM's own data
** does not record the thread. vm_tid is the thread that last ran the VM, as far as known.
** Four events set it: a start, luaM_sysprof_moved, a hook of the VM, and a sample that
** finds the VM's innermost C frame on its host stack. Only a handler on that thread reads
** Lua data.
**
** How the VM frees memory that a handler may read. A handler sets its own `reading` and
** then reads `changing`. The VM thread sets `changing`, waits until no reader is reading,
** and then frees or moves. A later handler sees `changing` and does not read, unless it
** interrupts the VM thread itself. The VM thread never waits for its own handler. It
** ignores a reader whose thread has ended.
**
** How a reader leaves. Hooks walk the list of readers without a lock. A thread that unlinks
** a reader waits until the hook that may see it has left.
*/

#ifndef _LJ_VMGATE_H
#define _LJ_VMGATE_H

#include "lj_obj.h"
#include "profile/event/lj_event.h"

/* One handler that may read the VM. */
typedef struct VmReader {
  struct VmReader *volatile next;
  volatile int tid;     /* Thread of the handler. */
  volatile int reading; /* 1: the handler is reading VM data. */
} VmReader;

typedef struct VmGate {
  global_State *g;            /* The VM. Set once. */
  EventDoor door;             /* For sources of the VM. */
  volatile int running;       /* Readers exist or will exist. */
  volatile int vm_tid;        /* Thread that last ran the VM, as far as known. */
  volatile int shared;        /* The VM has run on several threads. */
  uint8_t white;              /* Colour of new objects when the last cycle ended. */
  volatile int changing;      /* The VM is freeing or moving memory. */
  volatile int hook_tid;      /* Thread of the last hook. */
  volatile int hooks;         /* Hooks that it is in, one in another: they walk the list. */
  lua_State *volatile moving; /* Coroutine whose stack the VM is moving, or NULL. */
  volatile uintptr_t moving_from; /* Old address of that stack. */
  volatile uint32_t unmaps;       /* lj_safeload_unmaps before the move. */
  VmReader *volatile first;       /* List, newest first. Changed under the lock. */
  VmReader outsider;              /* Reads under the lock, on any thread. */
} VmGate;

/* -- Which thread runs the VM ------------------------------------------------ */

/* Is this the thread that last ran the VM, as far as known? Async-signal-safe. */
static LJ_AINLINE int vmgate_runson(const VmGate *gate, int tid)
{
  return __atomic_load_n(&gate->vm_tid, __ATOMIC_RELAXED) == tid;
}

/* Has the VM run on several threads? Async-signal-safe. */
static LJ_AINLINE int vmgate_isshared(const VmGate *gate)
{
  return __atomic_load_n(&gate->shared, __ATOMIC_RELAXED);
}

/* Note that the VM runs on this thread. Async-signal-safe. */
static LJ_AINLINE void vmgate_seton(VmGate *gate, int tid)
{
  if (vmgate_runson(gate, tid)) return;
  __atomic_store_n(&gate->shared, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&gate->vm_tid, tid, __ATOMIC_RELAXED);
}

/* -- Reading ----------------------------------------------------------------- */

/* Begin to read VM data. Returns 0 if the VM is freeing or moving memory on another thread:
** then the caller must not read, nor call read_end. Async-signal-safe.
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

/* End reading VM data. Async-signal-safe. */
static LJ_AINLINE void vmgate_read_end(VmReader *reader)
{
  __atomic_store_n(&reader->reading, 0, __ATOMIC_RELEASE);
}

/* Does no other thread run the VM? Reads the VM as an outsider. Under the lock. */
LJ_FUNC int lj_vmgate_isours(VmGate *gate);

/* -- Hooks of the VM --------------------------------------------------------- */

/* Begin a hook of the VM. Returns 0 if the gate is not running: then the caller must not
** call leave.
*/
LJ_FUNC int lj_vmgate_enter(VmGate *gate);
LJ_FUNC void lj_vmgate_leave(VmGate *gate);

/* Keep handlers of other threads from reading the VM, from begin to end. Within a hook. */
LJ_FUNC void lj_vmgate_change_begin(VmGate *gate);
LJ_FUNC void lj_vmgate_change_end(VmGate *gate);

/* -- Readers ----------------------------------------------------------------- */

/* Prepare a gate without readers. tid: the thread that runs the VM. */
LJ_FUNC void lj_vmgate_open(VmGate *gate, int tid);

/* Mark the gate as running, or as stopped. No hook uses the gate after stop returns. */
LJ_FUNC void lj_vmgate_run(VmGate *gate);
LJ_FUNC void lj_vmgate_stop(VmGate *gate);

LJ_FUNC void lj_vmgate_add(VmGate *gate, VmReader *reader);

/* Unlink a reader whose clocks are closed. No hook sees it after this returns. */
LJ_FUNC void lj_vmgate_remove(VmGate *gate, VmReader *reader);

/* In a child of fork(): unlink all readers and forget the hook. Returns the first reader. */
LJ_FUNC VmReader *lj_vmgate_forget(VmGate *gate);

#endif
