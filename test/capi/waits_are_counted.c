/* Without context-switch records, the kernel's figures tell how often the thread has waited, and how
** long it was ready without a processor. No wait counts twice, and a preemption counts as none.
** BASE: none, times that the kernel counts; the VM runs a loop, or none
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "forbid.h"
#include "wait_checks.h"

#define WAITS 500
/* Beside others on one processor: */
#define OTHERS   2
#define ROUNDS   100
#define ROUND_US 5000 /* Of CPU time. */

/* The profiler and the C library wait at the start and at the end, too. */
#define OTHER_WAITS 20

/* What the kernel tells the thread itself. */
typedef struct Truth {
  double ready; /* Nanoseconds. */
  double waits;
} Truth;

static Truth truth_now(void)
{
  Truth t = { 0, 0 };
  struct rusage ru;
  FILE *f = fopen("/proc/thread-self/schedstat", "r");
  if (f) {
    if (fscanf(f, "%*u %lf", &t.ready) != 1) t.ready = 0;
    fclose(f);
  }
  getrusage(RUSAGE_THREAD, &ru);
  t.waits = (double)ru.ru_nvcsw;
  return t;
}

static Truth truth; /* Of the last script. */

static void truth_since(Truth from)
{
  Truth now = truth_now();
  truth.ready = now.ready - from.ready;
  truth.waits = now.waits - from.waits;
}

static int lua_naps(lua_State *L)
{
  Truth from = truth_now();
  int i;
  (void)L;
  for (i = 0; i < WAITS; i++) usleep(1000);
  truth_since(from);
  return 0;
}

static int lua_rounds(lua_State *L)
{
  Truth from = truth_now();
  int i;
  (void)L;
  for (i = 0; i < ROUNDS; i++) {
    uint64_t till = cpu_us(CLOCK_THREAD_CPUTIME_ID) + ROUND_US;
    while (cpu_us(CLOCK_THREAD_CPUTIME_ID) < till)
      ;
    usleep(3000);
  }
  truth_since(from);
  return 0;
}

static int done;

static void *compute(void *unused)
{
  while (!__atomic_load_n(&done, __ATOMIC_RELAXED))
    ;
  return unused;
}

static int begin_others(pthread_t *thread)
{
  cpu_set_t one;
  int i;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  if (sched_setaffinity(0, sizeof(one), &one) != 0) return 0;
  for (i = 0; i < OTHERS; i++)
    REQUIRE(pthread_create(&thread[i], NULL, compute, NULL) == 0);
  return 1;
}

/* Run a script with the event, and check the profile against the truth. */
static void profile_script(lua_CFunction f)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  char *times, *counts;
  double ready, waits;
  opt.clocks = "offcpu";
  lua_pushcfunction(L, f);
  REQUIRE(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
  CHECK_EQ(lua_pcall(L, 0, 0, 0), 0);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "--format=folded", &times), 0);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "--format=folded --weight=waits", &counts),
	   0);
  ready = folded_sum(times, "[runnable]", "");
  waits = folded_sum(counts, "", "") - folded_sum(counts, "[runnable]", "");
  CHECK(waits >= truth.waits - 1 && waits <= truth.waits + OTHER_WAITS);
  /* The start and the end are ready, too, but the truth has no part of them. */
  CHECK(ready >= truth.ready * 0.9);
  CHECK(folded_sum(times, "", "") >= truth.ready);
  if (check_failures)
    printf("%g waits, %g by the kernel; ready for %g ms, %g by the kernel\n%s%s", waits,
	   truth.waits, ready / 1e6, truth.ready / 1e6, times, counts);
  free(times);
  free(counts);
  sink_free(&sink);
  lua_close(L);
}

static int profile_naps(const void *unused)
{
  (void)unused;
  if (!forbid_call(SYS_perf_event_open, SECCOMP_RET_ERRNO | EPERM)) return NO_FILTER;
  profile_script(lua_naps);
  return check_status();
}

static int profile_rounds(const void *unused)
{
  pthread_t thread[OTHERS];
  int i;
  (void)unused;
  if (!forbid_call(SYS_perf_event_open, SECCOMP_RET_ERRNO | EPERM)) return NO_FILTER;
  if (!begin_others(thread)) return NO_FILTER;
  profile_script(lua_rounds);
  __atomic_store_n(&done, 1, __ATOMIC_RELAXED);
  for (i = 0; i < OTHERS; i++) pthread_join(thread[i], NULL);
  return check_status();
}

int main(void)
{
  int failed = child_fails("waits", profile_naps, NULL);
  return failed | child_fails("beside other threads", profile_rounds, NULL);
}
