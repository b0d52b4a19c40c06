/*
** Seccomp filters: does a system call kill the process?
** Context: any thread, not the handler.
**
** The kernel does not show a filter, so a child with its own memory tries the calls. The
** child makes system calls only, sends no SIGCHLD when it ends, and leaves no core. Whether there is
** a filter is read from a file: open, read and close are the calls that filters allow most often. Without a
** child, in doubt, each call counts as deadly.
*/

#define lj_seccomp_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For __WCLONE. */
#endif
#include <errno.h>
#include <signal.h>
#include <stdio.h>
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

#define SHARED_MAX   4096
#define STRERROR_MAX 160

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

int lj_seccomp_isrefusal(int err)
{
  return err == EPERM || err == EACCES || err == ENOSYS;
}

/* Files answer EACCES for other reasons, and seldom these two. Threads at once write the same text. */
const char *lj_seccomp_strerror(int err)
{
  static char text[2][STRERROR_MAX];
  if ((err != EPERM && err != ENOSYS) || !lj_seccomp_filters(lj_osthread_self()))
    return strerror(err);
  snprintf(text[err == EPERM], STRERROR_MAX,
	   "%s (the thread's seccomp filter may refuse a system call such as fstat)",
	   strerror(err));
  return text[err == EPERM];
}

/* -- Trial ------------------------------------------------------------------- */

#define UNTRIED (-1) /* *at before the first call. */

static long try_call(const SeccompCall *c)
{
  return syscall(c->nr, c->arg[0], c->arg[1], c->arg[2], -1L, -1L, -1L);
}

/* In the child. The program's handler of SIGSYS may run, because it may answer in place
** of the kernel; all other signals are blocked. *at: the call that it tries.
*/
static void try_calls(const SeccompCall *calls, int n, volatile int *at)
{
  syscall(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
  for (*at = 0; *at < n; ++*at) try_call(&calls[*at]);
  for (;;) {
    syscall(SYS_exit_group, 0);
    syscall(SYS_exit, 0); /* A filter may refuse one of both. */
    __builtin_trap();
  }
}

/* Wait for the child. A filter may refuse one of both calls. */
static pid_t wait_for(pid_t pid)
{
  siginfo_t info;
  pid_t waited;
  while ((waited = waitpid(pid, NULL, __WCLONE)) < 0 && errno == EINTR)
    ;
  if (waited >= 0 || !lj_seccomp_isrefusal(errno)) return waited;
  while ((waited = waitid(P_PID, (id_t)pid, &info, WEXITED | __WCLONE)) < 0 &&
	 errno == EINTR)
    ;
  return waited;
}

/* Name of the first call that killed the child, or NULL. Without a child, that of the call for one. */
static const char *child_dies(const SeccompCall *calls, int n, int *is_tried)
{
  volatile int *at = (volatile int *)mmap(NULL, SHARED_MAX, PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const char *name;
  sigset_t others, old;
  pid_t pid, waited = -1;
  *is_tried = 0;
  if (at == (volatile int *)MAP_FAILED) return "mmap";
  *at = UNTRIED;
  sigfillset(&others);
  sigdelset(&others, SIGSYS);
  pthread_sigmask(SIG_BLOCK, &others, &old);
  pid = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0); /* fork() has handlers. */
  if (pid == 0) try_calls(calls, n, at);
  if (pid > 0) waited = wait_for(pid);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  *is_tried = waited >= 0;
  if (pid < 0) name = "clone";
  else if (waited < 0) name = "wait4";
  else if (*at == UNTRIED) name = "prctl";
  else name = *at < n ? calls[*at].name : NULL;
  munmap((void *)at, SHARED_MAX);
  return name;
}

/* Threads may ask at once: the answer belongs to the thread that of names after it. */
const char *lj_seccomp_deadly(const SeccompCall *calls, int n, SeccompKnown *known)
{
  int err = errno, tid = lj_osthread_self(), is_tried = 1;
  uint32_t filters = lj_seccomp_filters(tid);
  uint64_t of = (uint64_t)filters << 32 | (uint32_t)tid;
  const char *name = NULL;
  errno = err;
  if (!filters) return NULL;
  name = __atomic_load_n(&known->name, __ATOMIC_ACQUIRE);
  if (__atomic_load_n(&known->of, __ATOMIC_ACQUIRE) != of) {
    name = child_dies(calls, n, &is_tried);
    __atomic_store_n(&known->of, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&known->name, name, __ATOMIC_SEQ_CST);
    __atomic_store_n(&known->untried, !is_tried, __ATOMIC_SEQ_CST);
    __atomic_store_n(&known->of, of, __ATOMIC_SEQ_CST);
  }
  errno = err;
  return name;
}

const char *lj_seccomp_refused(const SeccompCall *calls, int n)
{
  int err = errno, i;
  for (i = 0; i < n; i++)
    if (try_call(&calls[i]) < 0 && lj_seccomp_isrefusal(errno)) break;
  errno = err;
  return i < n ? calls[i].name : NULL;
}
