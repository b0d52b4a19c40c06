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
#include "profile/base/lj_ownfd.h"
#include "profile/base/lj_procfile.h"
#include "profile/base/lj_seccomp.h"

#define STATUS_PART 400 /* Longer than each line that is looked for. */
#define SHARED_MAX  4096

/* -- Filters ----------------------------------------------------------------- */

/* The number behind a key, if its whole line is in the text. */
static void status_number(const char *text, const char *key, uint32_t *number)
{
  const char *at = strstr(text, key);
  if (at && strchr(at + 1, '\n')) *number = (uint32_t)strtoul(at + strlen(key), NULL, 10);
}

/* Read the file in parts: the stack of a thread may be small, and a user may be in many groups. Returns 0
** if the file cannot be read. Then, and on a kernel before 5.9, a number keeps its value.
*/
static int status_read(int tid, uint32_t *mode, uint32_t *filters)
{
  char text[STATUS_PART + 1], *line;
  OwnFd own;
  size_t have = 0;
  ssize_t n;
  if (!lj_ownfd_borrow(&own, lj_procfile_taskopen(tid, "status"))) return 0;
  while ((n = read(own.fd, text + have, STATUS_PART - have)) > 0) {
    have += (size_t)n;
    text[have] = '\0';
    status_number(text, "\nSeccomp:\t", mode);
    status_number(text, "\nSeccomp_filters:\t", filters);
    line = strrchr(text, '\n'); /* A line may be there in part. */
    have = line ? (size_t)(text + have - line) : 0;
    if (have == STATUS_PART) have = 0;
    if (have) memmove(text, line, have);
  }
  lj_ownfd_close(&own);
  return 1;
}

uint32_t lj_seccomp_filters(int tid)
{
  uint32_t mode = UINT32_MAX, filters = 1;
  if (!status_read(tid, &mode, &filters) || mode == UINT32_MAX)
    return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER;
  return mode == SECCOMP_MODE_FILTER ? filters : 0;
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
