/* TIMEOUT: 300
** BASE: none, times that the kernel counts; the VM runs a loop, or none
** Threads switch faster than the profiler reads, and the kernel drops records. The waits of these records
** are in `[waits lost]`, and never runnable. The time of each thread adds up to real time. The test compares
** with the kernel's figures (schedstat).
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "wait_checks.h"

#define SECONDS  3
#define PAIRS    2  /* Of threads that wake each other, */
#define SLEEPERS 24 /* beside threads that keep the profiler busy. */
#define THREADS  (2 * PAIRS + SLEEPERS)
/* The end of a thread is seen by the next look, of up to 50 ms. A later look says so. */
#define END_NS 100e6
#define VAGUE  "the end of a thread is exact to "
/* One percent of the time, and a look of a thread that just switches. */
#define SLACK (0.01 * SECONDS * 1e9 + 10e6)

static _Atomic int over;
static int pipes[2 * PAIRS][2];
static pthread_barrier_t named, begun; /* The threads have names; the profile runs. */

typedef struct Figures {
  double end_ns, delay_ns; /* When it ended, and how long it was ready so far. */
} Figures;

static Figures figures[THREADS];

/* How long the calling thread was ready so far. */
static double delay_ns(void)
{
  return schedstat_of((int)syscall(SYS_gettid)).delay_ns;
}

/* The first pair ends early. */
static int is_over(size_t i, double from)
{
  return over || (i < 2 && real_ns() - from > SECONDS * 0.5e9);
}

static void *thread_of(void *arg)
{
  size_t i = *(size_t *)arg;
  char name[16], byte = 0;
  double from, delay;
  snprintf(name, sizeof(name), "thread-%zu-", i);
  prctl(PR_SET_NAME, name);
  pthread_barrier_wait(&named);
  pthread_barrier_wait(&begun);
  from = real_ns();
  delay = delay_ns();
  if (i < 2 * PAIRS) {
    if (i % 2 == 0) REQUIRE(write(pipes[i][1], &byte, 1) == 1);
    while (read(pipes[i][0], &byte, 1) == 1 && write(pipes[i ^ 1][1], &byte, 1) == 1)
      if (is_over(i, from)) break;
    close(pipes[i ^ 1][1]); /* Its partner ends, too. */
  } else {
    while (!over) usleep(i < 2 * PAIRS + 3 ? 300 : 2500 * (1 + i % 8));
  }
  figures[i].delay_ns = delay_ns() - delay;
  figures[i].end_ns = real_ns();
  return NULL;
}

/* The profile began and ended at some time of its start and of its stop. */
typedef struct Times {
  double start, started, stop, stopped;
} Times;

/* Returns the time that is lost. */
static double check_thread(const Sink *sink, size_t i, const Times *t)
{
  char option[64], *text;
  int has_ended = figures[i].end_ns < t->stop;
  double sum, ready, lost;
  double least = (has_ended ? figures[i].end_ns : t->stop) - t->started;
  double most =
    (has_ended ? figures[i].end_ns + END_NS + said_ns(sink, VAGUE) : t->stopped) - t->start;
  snprintf(option, sizeof(option), "--format=folded --thread=thread-%zu-", i);
  CHECK_EQ(session_parse(sink->bytes, sink->len, option, &text), 0);
  sum = folded_sum(text, "", "");
  ready = folded_sum(text, "[runnable]", "");
  lost = folded_sum(text, "[waits lost]", "");
  if (sum < least - SLACK || sum > most + SLACK)
    CHECK(!"the time of a thread is not real time");
  if (ready > figures[i].delay_ns + SLACK)
    CHECK(!"more time is runnable than the kernel says");
  if (ready + lost < figures[i].delay_ns - SLACK)
    CHECK(!"less time is runnable than the kernel says");
  printf("thread %2zu: %7.1f of %7.1f to %7.1f ms, %6.1f runnable (%.1f by the kernel), "
	 "%6.1f lost\n",
	 i, sum / 1e6, least / 1e6, most / 1e6, ready / 1e6, figures[i].delay_ns / 1e6,
	 lost / 1e6);
  free(text);
  return lost;
}

/* Do records tell of waits? Where perf is forbidden, looks at schedstat do, and nothing is lost. */
static int has_records(const Sink *sink)
{
  char *text;
  int has;
  CHECK_EQ(session_parse(sink->bytes, sink->len, "--format=top", &text), 0);
  has = strstr(text, "switch-records") != NULL;
  free(text);
  return has;
}

int main(void)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  pthread_t thread[THREADS];
  size_t number[THREADS], i;
  double lost = 0;
  Times t;
  signal(SIGPIPE, SIG_IGN);
  for (i = 0; i < 2 * PAIRS; i++) REQUIRE(pipe(pipes[i]) == 0);
  opt.clocks = "wall";
  opt.interval_ns = 10000000;
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  REQUIRE(pthread_barrier_init(&named, NULL, THREADS + 1) == 0);
  REQUIRE(pthread_barrier_init(&begun, NULL, THREADS + 1) == 0);
  for (i = 0; i < THREADS; i++) {
    number[i] = i;
    REQUIRE(pthread_create(&thread[i], NULL, thread_of, &number[i]) == 0);
  }
  pthread_barrier_wait(&named);
  t.start = real_ns();
  REQUIRE(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
  t.started = real_ns();
  usleep(100000); /* All threads are found. */
  pthread_barrier_wait(&begun);
  sleep(SECONDS);
  t.stop = real_ns();
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  t.stopped = real_ns();
  over = 1;
  for (i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  for (i = 0; i < THREADS; i++) lost += check_thread(&sink, i, &t);
  if (has_records(&sink)) CHECK(lost > 0);
  else printf("no records: perf is forbidden\n");
  sink_free(&sink);
  lua_close(L);
  return check_status();
}
