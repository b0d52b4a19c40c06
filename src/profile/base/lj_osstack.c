/*
** C stacks of the process's other threads: have they room for a signal?
** Context: see the header.
*/

#define lj_osstack_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "profile/base/lj_osstack.h"
#include "profile/base/lj_ossignal.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_safeload.h"
#include "profile/base/lj_seccomp.h"

/* A signal takes at most this part of a stack: the program has measured its own use of a small one. */
#define SIGNAL_PART 3

#define DESCRIPTOR_MAX 8192 /* Bytes at the top of a stack that may be its descriptor. */

/* Fields of a descriptor. */
typedef struct StackBlock {
  uintptr_t lo; /* Address of the memory with the guard; 0 of the first thread. */
  size_t size, guard;
} StackBlock;

/* Learned. */
static struct {
  int is_known;
  uintptr_t list;  /* Offset of the robust list in a descriptor, */
  uintptr_t block; /* and of its StackBlock. */
  size_t tls;      /* Thread-local storage below a descriptor. */
} layout;

/* Address of a thread's list; 0: none. Returns 0 if the kernel does not tell. */
static int list_of(int tid, uintptr_t *list)
{
  size_t len;
  return syscall(SYS_get_robust_list, tid, list, &len) == 0;
}

/* Offset of the block in a descriptor, which ends below hi. 0: it is not there. */
static uintptr_t find_block(uintptr_t descriptor, uintptr_t lo, uintptr_t hi)
{
  const uintptr_t *w = (const uintptr_t *)descriptor;
  size_t i, n = (hi - descriptor) / sizeof(*w);
  for (i = 0; i + 3 <= n; i++)
    if (w[i] != 0 && w[i] + w[i + 1] == hi && w[i] + w[i + 2] == lo) return i * sizeof(*w);
  return 0;
}

static int can_ask(void)
{
  static const SeccompCall call = SECCOMP_CALL(get_robust_list);
  static SeccompKnown known;
  return !lj_seccomp_deadly(&call, 1, &known);
}

void lj_osstack_learn(pthread_t thread)
{
  uintptr_t own = (uintptr_t)pthread_self(), descriptor = (uintptr_t)thread, list, lo, hi;
  if (layout.is_known || !can_ask() || !list_of(0, &list) || list - own >= DESCRIPTOR_MAX)
    return;
  lj_osthread_stackof(thread, &lo, &hi);
  if (descriptor <= lo || descriptor >= hi || hi - descriptor > DESCRIPTOR_MAX) return;
  layout.list = list - own;
  layout.block = find_block(descriptor, lo, hi);
  layout.tls = lj_osthread_tls();
  layout.is_known = layout.block != 0;
}

int lj_osstack_canlook(void)
{
  return layout.is_known && can_ask();
}

size_t lj_osstack_least(void)
{
  return SIGNAL_PART * (lj_osthread_signalframe() + OSSIGNAL_STACK);
}

#define VM_STACK (10 * 1024) /* What the program and the VM take at least. */

size_t lj_osstack_leastofvm(void)
{
  return lj_osthread_signalframe() + OSSIGNAL_STACK + VM_STACK;
}

/* The thread may end at any time, and its memory may go. */
OsStack lj_osstack_look(int tid)
{
  uintptr_t list, descriptor;
  StackBlock b;
  if (!list_of(tid, &list)) return OSSTACK_UNKNOWN;
  if (!list) return OSSTACK_FOREIGN;
  descriptor = list - layout.list;
  if (!lj_safeload_once(&b, (const void *)(descriptor + layout.block), sizeof(b)))
    return lj_safeload_cancopy() ? OSSTACK_FOREIGN : OSSTACK_UNKNOWN;
  if (b.lo == 0 && tid == getpid()) return OSSTACK_SUFFICES;
  if (descriptor - b.lo >= b.size || b.guard >= b.size) return OSSTACK_FOREIGN;
  return b.lo + b.guard + layout.tls + lj_osstack_least() <= descriptor ? OSSTACK_SUFFICES
									: OSSTACK_SMALL;
}
