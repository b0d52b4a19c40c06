/* TIMEOUT: 300
** Threads sleep and end. Their waits end with them, with records of switches and without. Nobody knows what a thread did
** between the last look and its end: that is `[waits lost]`. With it, the waits are as long as the threads lived.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <math.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "forbid.h"
#include "wait_checks.h"

#define THREADS  60
#define SLACK_NS 1e6 /* Of a thread: its end takes time, too. */
/* A thread ends anywhere between two looks, and half of that time is lost. So the lost time has a standard error of its
** 1/sqrt(3) for each thread. If all of the time were lost, the sum would have as much too much as should be lost:
** sqrt(3 * THREADS) = 13 standard errors of today, or 6.7 of those that this test would see.
*/
#define SIGMAS 4
#define VAGUE  "the end of a thread is exact to "

static pthread_barrier_t named, begun;
static double end_ns[THREADS];

static void *thread_of(void *arg)
{
  size_t i = *(size_t *)arg;
  prctl(PR_SET_NAME, "ended");
  pthread_barrier_wait(&named);
  pthread_barrier_wait(&begun);
  cpu_sleep_us(150000 + 8500 * (long)i);
  end_ns[i] = real_ns();
  return NULL;
}

/* A sum over the threads that end, and the sum of squares. */
typedef struct Sum {
  double ns, ns2;
} Sum;

/* A row of the table begins with milliseconds, and ends with the thread's name. */
static Sum sum_of(const uint8_t *bytes, size_t len, const char *filter)
{
  char option[100], *text, *line;
  Sum s = { 0, 0 };
  snprintf(option, sizeof(option), "--format=top --by=thread --limit=0 '%s'", filter);
  session_parse(bytes, len, option, &text);
  for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    double ns = strstr(line, "  ended (") ? atof(line) * 1e6 : 0;
    s.ns += ns;
    s.ns2 += ns * ns;
  }
  free(text);
  return s;
}

static int profile(const void *arg)
{
  const int *without_perf = (const int *)arg;
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  pthread_t thread[THREADS];
  size_t number[THREADS], i;
  double from, lived = 0, error, sum;
  size_t len;
  Sum lost;
  if (*without_perf && !forbid_call(SYS_perf_event_open, SECCOMP_RET_ERRNO | EPERM))
    return NO_FILTER;
  opt.clocks = "offcpu/threshold=50000000/"; /* Looks are some 50 ms apart. */
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  REQUIRE(pthread_barrier_init(&named, NULL, THREADS + 1) == 0);
  REQUIRE(pthread_barrier_init(&begun, NULL, THREADS + 1) == 0);
  for (i = 0; i < THREADS; i++) {
    number[i] = i;
    REQUIRE(pthread_create(&thread[i], NULL, thread_of, &number[i]) == 0);
  }
  pthread_barrier_wait(&named);
  REQUIRE(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
  from = real_ns();
  CHECK_EQ(luaM_sysprof_dump(L), PROFILE_SUCCESS); /* All waits so far. */
  len = sink.len;
  pthread_barrier_wait(&begun);
  for (i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  lost = sum_of(sink.bytes, sink.len, "--include=[waits lost]");
  sum = sum_of(sink.bytes, sink.len, "--exclude=[runnable]").ns -
	sum_of(sink.bytes, len, "--exclude=[runnable]").ns;
  for (i = 0; i < THREADS; i++) lived += end_ns[i] - from;
  error = SIGMAS * sqrt(lost.ns2 / 3);
  printf(
    "%s perf: waits of %.1f ms, %.1f of them lost, up to %.1f by chance; %.1f ms of life\n",
    *without_perf ? "without" : "with", sum / 1e6, lost.ns / 1e6, error / 1e6, lived / 1e6);
  CHECK_EQ(memmem(sink.bytes, sink.len, VAGUE, strlen(VAGUE)) != NULL, *without_perf);
  CHECK(sum > lived / 2);
  CHECK(sum - lost.ns <= lived + THREADS * SLACK_NS);
  CHECK(sum <= lived + THREADS * SLACK_NS + error);
  sink_free(&sink);
  lua_close(L);
  return check_status();
}

int main(void)
{
  static const int no = 0, yes = 1;
  return child_fails("with perf", profile, &no) |
	 child_fails("without perf", profile, &yes);
}
