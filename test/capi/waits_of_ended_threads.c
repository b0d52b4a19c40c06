/* TIMEOUT: 300
** Threads sleep and end. Their waits end with them, with records of switches and without. Nobody knows what a thread did
** between the last look and its end: that is `[waits lost]`.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "forbid.h"
#include "wait_checks.h"

#define THREADS 30
/* Of a thread: its end takes time, too. If waits went on until the profiler sees that the thread has ended, up to 50 ms
** later, it would have some 25 ms too much.
*/
#define SLACK_NS 2e6

static pthread_barrier_t named, begun;
static double end_ns[THREADS];

static void *thread_of(void *arg)
{
  size_t i = *(size_t *)arg;
  prctl(PR_SET_NAME, "ended");
  pthread_barrier_wait(&named);
  pthread_barrier_wait(&begun);
  cpu_sleep_us(150000 + 17000 * (long)i);
  end_ns[i] = real_ns();
  return NULL;
}

static int profile(const void *arg)
{
  const int *without_perf = (const int *)arg;
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  pthread_t thread[THREADS];
  size_t number[THREADS], i;
  double start, waited, lived = 0;
  char *text;
  if (*without_perf && !forbid_call(SYS_perf_event_open, SECCOMP_RET_ERRNO | EPERM))
    return NO_FILTER;
  opt.clocks = "offcpu";
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  REQUIRE(pthread_barrier_init(&named, NULL, THREADS + 1) == 0);
  REQUIRE(pthread_barrier_init(&begun, NULL, THREADS + 1) == 0);
  for (i = 0; i < THREADS; i++) {
    number[i] = i;
    REQUIRE(pthread_create(&thread[i], NULL, thread_of, &number[i]) == 0);
  }
  pthread_barrier_wait(&named);
  start = real_ns();
  REQUIRE(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
  pthread_barrier_wait(&begun);
  for (i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "--format=folded --thread=ended", &text), 0);
  waited = folded_sum(text, "", "") - folded_sum(text, "[runnable]", "") -
	   folded_sum(text, "[waits lost]", "");
  for (i = 0; i < THREADS; i++) lived += end_ns[i] - start;
  printf("%s perf: waits of %.1f ms; the threads lived for %.1f ms\n",
	 *without_perf ? "without" : "with", waited / 1e6, lived / 1e6);
  CHECK(waited > 0);
  CHECK(waited <= lived + THREADS * SLACK_NS);
  if (check_failures) puts(text);
  free(text);
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
