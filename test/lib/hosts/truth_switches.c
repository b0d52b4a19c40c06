/*
** Threads that switch at a given rate, under the clock wall, and what the kernel's schedstat tells of each. Usage:
**
**   truth_switches THREADS RATE SECONDS PERF EARLY PROFILE
**
** THREADS is even, RATE the switches a second of all threads together. PERF 0: perf_event_open is refused. EARLY 1: each second
** pair of threads ends after half of the time. Prints a table of Lua for each thread: bounds of its time in the profile and of
** its run delay, in nanoseconds, its name, its runs, and bounds of its waits and preemptions.
**
** A thread of few switches sleeps by itself. Others are pairs that wake each other: timers would be too dear.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "forbid.h"
#include "wait_checks.h"

#define THREADS  1000
#define BURST_NS 10e6 /* Pairs begin that often. */
#define END_NS \
  100e6 /* The end of a thread is seen by a look, of each 50 ms. On a busy machine, it is late. */

/* How often a thread left its processor, to wait or not (proc_pid_status(5)). */
typedef struct Left {
  double waits, preempted;
} Left;

typedef struct Thread {
  int number, tid, ends_early, has_ended;
  int fd[2]; /* Its pipe. */
  double end_ns;
  Schedstat end;
  Left end_left;
} Thread;

static Thread threads[THREADS];
static int nthreads;
static double rate, seconds;
static _Atomic int over;
static pthread_barrier_t named, begun; /* The threads have names; the profile runs. */

static double figure_of(const char *text, const char *key)
{
  const char *at = strstr(text, key);
  REQUIRE(at);
  return atof(at + strlen(key));
}

static Left left_of(int tid)
{
  char path[64], text[4096];
  Left left;
  FILE *f;
  size_t n;
  snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
  f = fopen(path, "r");
  REQUIRE(f);
  n = fread(text, 1, sizeof(text) - 1, f);
  fclose(f);
  text[n] = '\0';
  left.waits = figure_of(text, "\nvoluntary_ctxt_switches:");
  left.preempted = figure_of(text, "\nnonvoluntary_ctxt_switches:");
  return left;
}

static int is_over(const Thread *t, double from)
{
  return over || (t->ends_early && real_ns() - from > seconds * 0.5e9);
}

static void sleep_till(double ns)
{
  struct timespec ts;
  ts.tv_sec = (time_t)(ns / 1e9);
  ts.tv_nsec = (long)(ns - (double)ts.tv_sec * 1e9);
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

/* Sleep, or wake the partner some times, at the rate. Threads begin one after the other. */
static void lead(Thread *t, Thread *partner, double from)
{
  double own = rate / nthreads, step = partner ? BURST_NS : 1e9 / own;
  double next = from + step * t->number / nthreads, turns = 0;
  double end = from + seconds * (t->ends_early ? 0.5e9 : 1e9);
  char byte = 0;
  for (;;) {
    sleep_till(t->ends_early && next > end ? end : next);
    if (is_over(t, from)) return;
    if (partner) {
      for (turns += own * BURST_NS / 1e9; turns >= 1 && !is_over(t, from); turns--) {
	if (write(partner->fd[1], &byte, 1) != 1 || read(t->fd[0], &byte, 1) != 1) return;
      }
    }
    next = next + step > real_ns() ? next + step : real_ns();
  }
}

static void follow(Thread *t, Thread *partner)
{
  char byte;
  while (read(t->fd[0], &byte, 1) == 1 && write(partner->fd[1], &byte, 1) == 1)
    ;
}

static void *thread_of(void *arg)
{
  Thread *t = (Thread *)arg;
  int in_pairs = 1e9 * nthreads / rate < BURST_NS;
  Thread *partner = in_pairs ? &threads[t->number ^ 1] : NULL;
  char name[16];
  double from;
  snprintf(name, sizeof(name), "thread-%d-", t->number);
  prctl(PR_SET_NAME, name);
  t->tid = (int)syscall(SYS_gettid);
  pthread_barrier_wait(&named);
  pthread_barrier_wait(&begun);
  from = real_ns();
  if (in_pairs && t->number % 2) follow(t, partner);
  else lead(t, partner, from);
  if (in_pairs) close(partner->fd[1]);
  do {
    t->end = schedstat_of(t->tid);
    t->end_left = left_of(t->tid);
    t->end_ns = real_ns();
  } while (schedstat_of(t->tid).runs !=
	   t->end.runs); /* Nobody took the processor in between. */
  t->has_ended = 1;
  return NULL;
}

static void run(const char *path)
{
  static Schedstat begin[THREADS], before[THREADS], after[THREADS];
  static Left from[THREADS], least[THREADS], most[THREADS];
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  pthread_t thread[THREADS];
  double start, started, stop, stopped;
  FILE *f;
  int i, ended[THREADS];
  opt.clocks = "wall";
  opt.interval_ns = 10000000;
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  REQUIRE(pthread_barrier_init(&named, NULL, (unsigned)nthreads + 1) == 0);
  REQUIRE(pthread_barrier_init(&begun, NULL, (unsigned)nthreads + 1) == 0);
  for (i = 0; i < nthreads; i++)
    REQUIRE(pthread_create(&thread[i], NULL, thread_of, &threads[i]) == 0);
  pthread_barrier_wait(&named);
  usleep(100000); /* All wait for the next barrier. */
  for (i = 0; i < nthreads; i++) {
    begin[i] = schedstat_of(threads[i].tid);
    from[i] = left_of(threads[i].tid);
  }
  start = real_ns();
  REQUIRE(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
  started = real_ns();
  usleep(200000); /* All threads are found. */
  pthread_barrier_wait(&begun);
  cpu_sleep_us((long)(seconds * 1e6));
  for (i = 0; i < nthreads; i++) {
    ended[i] = threads[i].has_ended;
    before[i] = ended[i] ? threads[i].end : schedstat_of(threads[i].tid);
    least[i] = ended[i] ? threads[i].end_left : left_of(threads[i].tid);
  }
  stop = real_ns();
  REQUIRE(luaM_sysprof_stop(L) == PROFILE_SUCCESS);
  stopped = real_ns();
  for (i = 0; i < nthreads; i++) {
    after[i] = ended[i] ? threads[i].end : schedstat_of(threads[i].tid);
    most[i] = ended[i] ? threads[i].end_left : left_of(threads[i].tid);
  }
  over = 1;
  for (i = 0; i < nthreads; i++) pthread_join(thread[i], NULL);
  for (i = 0; i < nthreads; i++) {
    const Thread *t = &threads[i];
    double delay = begin[i].delay_ns;
    printf("{ name = \"thread-%d-\", least = %.0f, most = %.0f, ready_least = %.0f, "
	   "ready_most = %.0f, runs = %.0f, waits_least = %.0f, waits_most = %.0f, "
	   "preempted_least = %.0f, preempted_most = %.0f, has_ended = %s },\n",
	   i, (ended[i] ? t->end_ns : stop) - started,
	   (ended[i] ? t->end_ns + END_NS : stopped) - start, before[i].delay_ns - delay,
	   after[i].delay_ns - delay, before[i].runs - begin[i].runs,
	   least[i].waits - from[i].waits, most[i].waits - from[i].waits,
	   least[i].preempted - from[i].preempted, most[i].preempted - from[i].preempted,
	   ended[i] ? "true" : "false");
  }
  f = fopen(path, "wb");
  REQUIRE(f && fwrite(sink.bytes, 1, sink.len, f) == sink.len && fclose(f) == 0);
  sink_free(&sink);
  lua_close(L);
}

int main(int argc, char **argv)
{
  int i;
  if (argc != 7) {
    fprintf(stderr, "usage: truth_switches THREADS RATE SECONDS PERF EARLY PROFILE\n");
    return 2;
  }
  nthreads = atoi(argv[1]);
  rate = atof(argv[2]);
  seconds = atof(argv[3]);
  REQUIRE(nthreads > 0 && nthreads <= THREADS && nthreads % 2 == 0 && rate > 0);
  if (argv[4][0] == '0' && !forbid_call(SYS_perf_event_open, SECCOMP_RET_ERRNO | EPERM)) {
    printf("the kernel takes no filter\n");
    return NO_FILTER;
  }
  signal(SIGPIPE, SIG_IGN);
  for (i = 0; i < nthreads; i++) {
    threads[i].number = i;
    threads[i].ends_early = argv[5][0] == '1' && i / 2 % 2 == 0;
    REQUIRE(pipe(threads[i].fd) == 0);
  }
  run(argv[6]);
  return check_status();
}
