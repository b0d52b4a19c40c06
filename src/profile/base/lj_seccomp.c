/*
** Seccomp filters: does a system call kill the process?
** Context: any thread, not the handler.
**
** The kernel does not show a filter, so a child with its own memory tries the calls. The
** child makes system calls only, sends no SIGCHLD when it ends, and leaves no core. Whether there is
** a filter is read from a file: open, read and close are the calls that filters allow most often.
*/

#define lj_seccomp_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For __WCLONE. */
#endif
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "profile/base/lj_osthread.h"
#include "profile/base/lj_procstatus.h"
#include "profile/base/lj_seccomp.h"

#define SHARED_MAX 4096

/* -- Filters ----------------------------------------------------------------- */

/* Kernels before 5.9 do not tell the number of filters. */
uint32_t lj_seccomp_filters(int tid)
{
  StatusField f[] = { { "\nSeccomp:\t", 10, 0, 0 }, { "\nSeccomp_filters:\t", 10, 0, 0 } };
  if (!lj_procstatus_read(tid, f, 2) || !f[0].is_there)
    return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER;
  if (f[0].number != SECCOMP_MODE_FILTER) return 0;
  return f[1].is_there ? (uint32_t)f[1].number : 1;
}

/* -- Trial ------------------------------------------------------------------- */

/* In the child. The program's handler of SIGSYS may run, because it may answer in place
** of the kernel; all other signals are blocked. *at: the call that it tries.
*/
static void try_calls(const SeccompCall *calls, int n, volatile int *at)
{
  syscall(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
  for (; *at < n; ++*at) {
    const SeccompCall *c = &calls[*at];
    syscall(c->nr, c->arg[0], c->arg[1], c->arg[2], -1L, -1L, -1L);
  }
  for (;;) syscall(SYS_exit_group, 0);
}

/* Returns the index of the first call that killed the child, or n. In doubt, it is the first one. */
static int child_dies(const SeccompCall *calls, int n)
{
  volatile int *at = (volatile int *)mmap(NULL, SHARED_MAX, PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  sigset_t others, old;
  int status = 0, first;
  pid_t pid, waited = -1;
  if (at == (volatile int *)MAP_FAILED) return 0;
  sigfillset(&others);
  sigdelset(&others, SIGSYS);
  pthread_sigmask(SIG_BLOCK, &others, &old);
  pid = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0); /* fork() has handlers. */
  if (pid == 0) try_calls(calls, n, at);
  if (pid > 0)
    while ((waited = waitpid(pid, &status, __WCLONE)) < 0 && errno == EINTR)
      ;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  first = pid < 0 || waited != pid ? 0 : *at;
  if (first == n && !WIFEXITED(status)) first = 0;
  munmap((void *)at, SHARED_MAX);
  return first;
}

/* Threads may ask at once: first belongs to the thread that of names after it. */
const char *lj_seccomp_deadly(const SeccompCall *calls, int n, SeccompKnown *known)
{
  int err = errno, tid = lj_osthread_self();
  uint32_t filters = lj_seccomp_filters(tid), first;
  uint64_t of = (uint64_t)filters << 32 | (uint32_t)tid;
  errno = err;
  if (!filters) return NULL;
  first = __atomic_load_n(&known->first, __ATOMIC_ACQUIRE);
  if (__atomic_load_n(&known->of, __ATOMIC_ACQUIRE) != of) {
    first = (uint32_t)child_dies(calls, n);
    __atomic_store_n(&known->of, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&known->first, first, __ATOMIC_SEQ_CST);
    __atomic_store_n(&known->of, of, __ATOMIC_SEQ_CST);
  }
  errno = err;
  return first < (uint32_t)n ? calls[first].name : NULL;
}
