/* Whether a seccomp filter would end the program is asked only where there is a filter, and
** once for each system call: a child makes the call.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stddef.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "lj_def.h"
#include "profile/base/lj_seccomp.h"
#include "check.h"

/* Ends the program at getppid. */
static int filter_set(void)
{
  struct sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	 prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Page faults of all children that have ended. */
static long children(void)
{
  struct rusage use;
  REQUIRE(getrusage(RUSAGE_CHILDREN, &use) == 0);
  return use.ru_minflt;
}

int main(void)
{
  int harmless = 0, deadly = 0, filtered;
  long before;
  filtered = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER;
  errno = 42;
  CHECK(!lj_seccomp_isdeadly(SYS_getppid, &deadly));
  CHECK_EQ(errno, 42);
  if (filtered) {
    printf("a filter is there already\n");
    return 77;
  }
  CHECK_EQ(deadly, 0); /* A filter may come later. */
  CHECK_EQ(children(), 0);
  if (!filter_set()) {
    printf("no seccomp filter here\n");
    return 77;
  }
  CHECK(lj_seccomp_isdeadly(SYS_getppid, &deadly));
  CHECK(!lj_seccomp_isdeadly(SYS_getpgrp, &harmless));
  before = children();
  CHECK(before > 0);
  CHECK(lj_seccomp_isdeadly(SYS_getppid, &deadly));
  CHECK(!lj_seccomp_isdeadly(SYS_getpgrp, &harmless));
  CHECK_EQ(children(), before);
  CHECK_EQ(errno, 42);
  return check_status();
}
