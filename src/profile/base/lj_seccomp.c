/*
** Seccomp filters: does a system call kill the process?
** Context: any thread, not the handler.
**
** The kernel does not show a filter, so a child with its own memory tries the call. The
** child makes system calls only, sends no SIGCHLD when it ends, and leaves no core.
*/

#define lj_seccomp_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For __WCLONE. */
#endif
#include <errno.h>
#include <signal.h>
#include <unistd.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "profile/base/lj_seccomp.h"

/* In the child. The program's handler of SIGSYS may run, because it may answer in place
** of the kernel; all other signals are blocked.
*/
static void try_call(long nr)
{
  syscall(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
  syscall(nr, 0, 0, 0, 0, 0, 0);
  for (;;) syscall(SYS_exit_group, 0);
}

static int child_dies(long nr)
{
  sigset_t others, old;
  int status = 0;
  pid_t pid, waited = -1;
  sigfillset(&others);
  sigdelset(&others, SIGSYS);
  pthread_sigmask(SIG_BLOCK, &others, &old);
  pid = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0); /* fork() has handlers. */
  if (pid == 0) try_call(nr);
  if (pid > 0)
    while ((waited = waitpid(pid, &status, __WCLONE)) < 0 && errno == EINTR)
      ;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return pid < 0 || waited != pid || !WIFEXITED(status);
}

#define HARMLESS 1
#define DEADLY   2

int lj_seccomp_isdeadly(long nr, int *known)
{
  int err = errno, answer = __atomic_load_n(known, __ATOMIC_RELAXED);
  if (!answer && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER) {
    answer = child_dies(nr) ? DEADLY : HARMLESS;
    __atomic_store_n(known, answer, __ATOMIC_RELAXED);
  }
  errno = err;
  return answer == DEADLY;
}
