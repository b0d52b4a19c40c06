/* TIMEOUT: 300
** BASE: none, times that the kernel counts; the VM runs a loop, or none
** A thread computes, sleeps, and is woken up just before the stop, but gets no processor. Without records of switches, its
** sleep is not `[runnable]`: it was ready since it was woken up, and before as long as the kernel says (run delay).
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "forbid.h"
#include "wait_checks.h"

#define ROUNDS   30
#define SPIN_US  60000 /* Looks are 50 ms apart, so one finds it running. */
#define SLEEP_US 20000 /* Often without a look. */
/* A hypervisor takes some of the processor's time, which is ready, too. Of each sleep that no look sees, half or all
** would be ready: 10 to 20 ms.
*/
#define SLACK_NS (ROUNDS * 3e6)

static int go[2], wake[2]; /* Pipes. */
static _Atomic int tid, sleeps;
static cpu_set_t all, one; /* Processors. */

/* The thread shares a processor with its creator. With SCHED_BATCH, it does not take that when it is woken up. */
static void *thread_of(void *arg)
{
  struct sched_param none = { 0 };
  char byte;
  prctl(PR_SET_NAME, "sleeper");
  REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
  REQUIRE(sched_setscheduler(0, SCHED_BATCH, &none) == 0);
  tid = (int)syscall(SYS_gettid);
  while (read(go[0], &byte, 1) == 1) {
    cpu_burn(SPIN_US);
    sleeps = 1;
    REQUIRE(read(wake[0], &byte, 1) == 1);
  }
  return arg;
}

/* Returns how much more time was ready than the kernel says, at least. */
static double round_of(lua_State *L)
{
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  double delay, ready, woken;
  char *text;
  opt.clocks = "offcpu/threshold=1000000000/"; /* Looks are rare. */
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  sleeps = 0;
  delay = schedstat_of(tid).delay_ns;
  REQUIRE(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
  /* Only now: the profiler's thread may run elsewhere. */
  REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
  REQUIRE(write(go[1], "", 1) == 1);
  while (!sleeps) usleep(1000);
  usleep(SLEEP_US);
  delay = schedstat_of(tid).delay_ns - delay;
  woken = real_ns();
  REQUIRE(write(wake[1], "", 1) == 1);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  woken = real_ns() - woken;
  REQUIRE(sched_setaffinity(0, sizeof(all), &all) == 0);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "--format=folded --thread=sleeper", &text),
	   0);
  ready = folded_sum(text, "[runnable]", "");
  free(text);
  sink_free(&sink);
  return ready > delay + woken ? ready - delay - woken : 0;
}

int main(void)
{
  lua_State *L = session_vm();
  pthread_t thread;
  double more = 0;
  int i;
  REQUIRE(pipe(go) == 0 && pipe(wake) == 0);
  REQUIRE(sched_getaffinity(0, sizeof(all), &all) == 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  if (!forbid_call(SYS_perf_event_open, SECCOMP_RET_ERRNO | EPERM)) {
    printf("skipped: the kernel takes no filter\n");
    return NO_FILTER;
  }
  REQUIRE(pthread_create(&thread, NULL, thread_of, NULL) == 0);
  while (!tid) usleep(1000);
  for (i = 0; i < ROUNDS; i++) more += round_of(L);
  printf("%d stops: %.1f ms more are ready than the kernel says\n", ROUNDS, more / 1e6);
  CHECK(more <= SLACK_NS);
  close(go[1]);
  pthread_join(thread, NULL);
  lua_close(L);
  return check_status();
}
