/* Fields of a thread's status: those behind a line of many groups, those that are not there, and of a thread
** that has ended. Reading them takes little of the stack, and so does reading the CPU quota.
** BASE: none, its modules know no VM
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profile/base/lj_cpuquota.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_procstatus.h"
#include "small_stack.h"

#define GROUPS 3000 /* Their line has 18 KB. */
#define PAINT  0x5a
#define AREA   (64 * 1024)

static void check_fields(int tid, uint64_t blocked)
{
  StatusField f[] = { { "\nSigBlk:\t", 16, 0, 0 },
		      { "\nNone:\t", 10, 0, 0 },
		      { "\nTgid:\t", 10, 0, 0 },
		      { "\nvoluntary_ctxt_switches:\t", 10, 0, 0 } };
  REQUIRE(lj_procstatus_read(tid, f, 4));
  CHECK(f[0].is_there && f[0].number == blocked);
  CHECK(!f[1].is_there);
  CHECK(f[2].is_there && f[2].number == (uint64_t)getpid());
  CHECK(f[3].is_there);
}

static void *read_all(void *tid)
{
  StatusField f = { "\nSeccomp:\t", 10, 0, 0 };
  CpuQuota cq;
  CHECK(lj_procstatus_read(*(int *)tid, &f, 1) && f.is_there);
  lj_cpuquota_read(&cq);
  return NULL;
}

/* Bytes of a thread's stack that are no longer painted, those of the C library too. */
static size_t stack_taken(void *(*run)(void *), void *arg)
{
  uint8_t *area = (uint8_t *)small_stack(AREA);
  size_t untouched = 0;
  pthread_attr_t attr;
  pthread_t thread;
  memset(area, PAINT, AREA);
  REQUIRE(pthread_attr_init(&attr) == 0 && pthread_attr_setstack(&attr, area, AREA) == 0);
  REQUIRE(pthread_create(&thread, &attr, run, arg) == 0);
  pthread_join(thread, NULL);
  while (untouched < AREA && area[untouched] == PAINT) untouched++;
  return AREA - untouched;
}

static void *nothing(void *arg)
{
  return arg;
}

static void check_stack(int tid)
{
#ifdef __SANITIZE_ADDRESS__
  UNUSED(tid);
  puts("stack: AddressSanitizer makes frames larger");
#else
  size_t own = stack_taken(nothing, NULL), all;
  stack_taken(read_all, &tid); /* The dynamic linker finds the functions. */
  all = stack_taken(read_all, &tid);
  printf("reading takes %zu bytes of the stack\n", all - own);
  CHECK(all - own < 3000); /* printf of the C library takes some 2 KB of that. */
#endif
}

int main(void)
{
  StatusField f = { "\nTgid:\t", 10, 0, 0 };
  int tid = lj_osthread_self(), status;
  gid_t group[GROUPS];
  sigset_t set;
  pid_t pid;
  size_t i;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_SETMASK, &set, NULL);
  check_fields(tid, 1u << (SIGUSR1 - 1));
  check_stack(tid);
  pid = flush_and_fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    for (i = 0; i < GROUPS; i++) group[i] = (gid_t)(10000 + i);
    if (setgroups(GROUPS, group) != 0) {
      printf("many groups: not tried, setgroups: %s\n", strerror(errno));
      return check_status();
    }
    check_fields(getpid(), 1u << (SIGUSR1 - 1));
    return check_status();
  }
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK_EQ(status, 0);
  CHECK(!lj_procstatus_read(pid, &f, 1) && errno == ENOENT);
  return check_status();
}
