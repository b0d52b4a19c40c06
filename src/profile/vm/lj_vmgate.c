/*
** Gate between a VM and its readers: waiting and the list of readers.
** Context: enter, leave, change_*: VM thread | the rest: under the lock.
*/

#define lj_vmgate_c
#define LUA_CORE

#include <sched.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "lj_obj.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_relaxed.h"
#include "profile/vm/lj_vmgate.h"

#define GATE_YIELDS   16    /* Yields before the first sleep. */
#define GATE_SLEEP_NS 20000 /* Only a sleep takes a real-time thread off its processor. */

/* -- Waiting ----------------------------------------------------------------- */

/* Let another thread run. Returns 0 once that thread has ended. A bare system call: nanosleep()
** is a cancellation point, and code of the VM has none.
*/
static int wait_for_thread(int tid, int *tries)
{
  static const struct timespec nap = { 0, GATE_SLEEP_NS };
  if ((*tries)++ < GATE_YIELDS) {
    sched_yield();
    return 1;
  }
  if (!lj_osthread_lives(tid)) return 0;
  syscall(SYS_nanosleep, &nap, NULL);
  return 1;
}

/* Wait until a reader has left. The calling thread is not in a handler. If its mark is set,
** the program has jumped out of the handler.
*/
static void wait_for_reader(VmReader *reader, int own_tid)
{
  int tries = 0;
  while (__atomic_load_n(&reader->reading, __ATOMIC_SEQ_CST)) {
    int tid = relaxed_get(&reader->tid);
    if (tid == own_tid || !wait_for_thread(tid, &tries)) {
      __atomic_store_n(&reader->reading, 0, __ATOMIC_SEQ_CST);
      return;
    }
  }
}

static void wait_for_hook(VmGate *gate)
{
  int tries = 0, own_tid = lj_osthread_self();
  while (__atomic_load_n(&gate->hooks, __ATOMIC_SEQ_CST) > 0) {
    int tid = relaxed_get(&gate->hook_tid);
    if (tid == own_tid || !wait_for_thread(tid, &tries)) return;
  }
}

/* -- Reading ----------------------------------------------------------------- */

int lj_vmgate_isours(VmGate *gate)
{
  VmReader *reader = &gate->outsider;
  uintptr_t cur_L;
  int ours = 0;
  reader->tid = lj_osthread_self();
  if (vmgate_runson(gate, reader->tid) || !lj_osthread_lives(relaxed_get(&gate->vm_tid)))
    return 1;
  if (!vmgate_read_begin(gate, reader)) return 0;
  cur_L = (uintptr_t)relaxed_get(&gate->g->cur_L.gcptr64);
  ours = cur_L && lj_osthread_onstack(((lua_State *)cur_L)->cframe);
  vmgate_read_end(reader);
  return ours;
}

/* -- Hooks of the VM --------------------------------------------------------- */

/* Hooks of another thread have ended with it: one thread at a time runs the VM. */
static void hook_count(VmGate *gate, int tid)
{
  if (LJ_UNLIKELY(gate->hook_tid != tid)) {
    relaxed_set(&gate->hooks, 0);
    relaxed_set(&gate->hook_tid, tid);
  }
  __atomic_store_n(&gate->hooks, gate->hooks + 1, __ATOMIC_SEQ_CST);
}

int lj_vmgate_enter(VmGate *gate)
{
  int tid;
  if (LJ_LIKELY(!__atomic_load_n(&gate->running, __ATOMIC_RELAXED))) return 0;
  tid = lj_osthread_self();
  hook_count(gate, tid);
  if (!__atomic_load_n(&gate->running, __ATOMIC_SEQ_CST)) {
    lj_vmgate_leave(gate);
    return 0;
  }
  vmgate_seton(gate, tid); /* The host may have moved the VM. */
  return 1;
}

void lj_vmgate_leave(VmGate *gate)
{
  __atomic_store_n(&gate->hooks, gate->hooks - 1, __ATOMIC_SEQ_CST);
}

void lj_vmgate_change_begin(VmGate *gate)
{
  int own_tid = lj_osthread_self();
  VmReader *reader;
  __atomic_store_n(&gate->changing, 1, __ATOMIC_SEQ_CST);
  for (reader = __atomic_load_n(&gate->first, __ATOMIC_SEQ_CST); reader;
       reader = __atomic_load_n(&reader->next, __ATOMIC_SEQ_CST))
    wait_for_reader(reader, own_tid);
  wait_for_reader(&gate->outsider, own_tid);
}

void lj_vmgate_change_end(VmGate *gate)
{
  __atomic_store_n(&gate->changing, 0, __ATOMIC_SEQ_CST);
}

/* -- Readers ----------------------------------------------------------------- */

/* Keeps hooks: the VM may be in a hook, and counts it down on leaving. */
void lj_vmgate_open(VmGate *gate, int tid)
{
  relaxed_set(&gate->vm_tid, tid);
  relaxed_set(&gate->shared, 0);
  relaxed_set(&gate->changing, 0);
  relaxed_set(&gate->moving, NULL);
  relaxed_set(&gate->outsider.reading, 0);
}

void lj_vmgate_run(VmGate *gate)
{
  __atomic_store_n(&gate->running, 1, __ATOMIC_SEQ_CST);
}

void lj_vmgate_stop(VmGate *gate)
{
  __atomic_store_n(&gate->running, 0, __ATOMIC_SEQ_CST);
  wait_for_hook(gate);
}

void lj_vmgate_add(VmGate *gate, VmReader *reader)
{
  reader->next = gate->first;
  __atomic_store_n(&gate->first, reader, __ATOMIC_SEQ_CST);
}

void lj_vmgate_remove(VmGate *gate, VmReader *reader)
{
  VmReader *volatile *link = &gate->first;
  while (*link != reader) link = &(*link)->next;
  __atomic_store_n(link, reader->next, __ATOMIC_SEQ_CST);
  wait_for_hook(gate);
}

VmReader *lj_vmgate_forget(VmGate *gate)
{
  VmReader *first = gate->first;
  gate->running = gate->hooks = gate->changing = 0;
  gate->first = NULL;
  gate->outsider.reading = 0;
  return first;
}
