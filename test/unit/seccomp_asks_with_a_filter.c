/* Whether a seccomp filter would end the program is asked only where there is a filter, and
** once for each number of filters: a child makes the calls. A call of a later filter is found, too.
** BASE: none, its modules know no VM
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lj_def.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_seccomp.h"
#include "check.h"
#include "forbid.h"

/* Page faults of all children that have ended. */
static long children(void)
{
  struct rusage use;
  REQUIRE(getrusage(RUSAGE_CHILDREN, &use) == 0);
  return use.ru_minflt;
}

static const SeccompCall calls[] = { SECCOMP_CALL(getpgrp), SECCOMP_CALL(getppid),
				     SECCOMP_CALL(listen) };

static const char *deadly(SeccompKnown *known)
{
  return lj_seccomp_deadly(calls, 3, known);
}

static int is(const char *name, const char *expected)
{
  return name && strcmp(name, expected) == 0;
}

static void *other_thread(void *arg)
{
  CHECK_EQ(lj_seccomp_filters((int)(intptr_t)arg), 1);
  return NULL;
}

int main(void)
{
  SeccompKnown known = { 0, NULL, 0 };
  uint32_t filters;
  pthread_t thread;
  long before;
  if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER) {
    printf("a filter is there already\n");
    return 77;
  }
  CHECK_EQ(lj_seccomp_filters(lj_osthread_self()), 0);
  errno = 42;
  CHECK(!deadly(&known));
  CHECK_EQ(errno, 42);
  CHECK_EQ(children(), 0);
  if (!forbid_call(SYS_getppid, SECCOMP_RET_KILL_PROCESS)) {
    printf("no seccomp filter here\n");
    return 77;
  }
  CHECK_EQ(lj_seccomp_filters(lj_osthread_self()), 1);
  REQUIRE(
    pthread_create(&thread, NULL, other_thread, (void *)(intptr_t)lj_osthread_self()) == 0);
  pthread_join(thread, NULL);
  CHECK(is(deadly(&known), "getppid"));
  before = children();
  CHECK(before > 0);
  CHECK(is(deadly(&known), "getppid"));
  CHECK_EQ(children(), before);
  CHECK_EQ(errno, 42);
  /* One more filter. Kernels before 5.9 do not count them. */
  CHECK(forbid_call(SYS_getpgrp, SECCOMP_RET_KILL_PROCESS));
  filters = lj_seccomp_filters(lj_osthread_self());
  CHECK(filters == 2 || filters == 1);
  if (filters == 2) CHECK(is(deadly(&known), "getpgrp"));
  CHECK_EQ(errno, 42);
  CHECK(!known.untried);
  /* The trial lacks calls: of two that do the same, one suffices. */
  memset(&known, 0, sizeof(known));
  CHECK(!lj_seccomp_refused(&calls[2], 1));
  CHECK(forbid_call(SYS_listen, SECCOMP_RET_ERRNO | EACCES));
  CHECK(is(lj_seccomp_refused(&calls[2], 1), "listen"));
  CHECK(forbid_call(SYS_exit_group, SECCOMP_RET_ERRNO | EPERM));
  CHECK(forbid_call(SYS_wait4, SECCOMP_RET_ERRNO | EPERM));
  CHECK(!lj_seccomp_deadly(&calls[2], 1, &known));
  CHECK(forbid_call(SYS_clone, SECCOMP_RET_ERRNO | ENOSYS));
  memset(&known, 0, sizeof(known));
  CHECK(is(lj_seccomp_deadly(&calls[2], 1, &known), "clone"));
  CHECK(known.untried);
  CHECK_EQ(errno, 42);
  CHECK(waitpid(-1, NULL, __WALL) < 0);
  syscall(SYS_exit, check_status());
  return 1;
}
