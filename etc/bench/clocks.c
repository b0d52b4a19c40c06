/*
** Rates, weights, costs and fairness of the clocks. Built and run by etc/bench/clocks.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <math.h>
#include <sys/time.h>

#include "ticks.h"

#define THREADS 10

static double seconds; /* CPU time of a row. */
static volatile uint64_t sink;

static uint64_t thread_ns(void)
{
  struct timespec ts;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Work that takes no system call. */
static void work(uint64_t loops)
{
  uint64_t x = 1, i;
  for (i = 0; i < loops; i++) x = x * 6364136223846793005u + 1442695040888963407u;
  sink += x;
}

/* Loops in a second, by the best of several runs. */
static double calibrate(void)
{
  uint64_t best = ~(uint64_t)0, t;
  int i;
  for (i = 0; i < 10; i++) {
    t = thread_ns();
    work(20000000);
    t = thread_ns() - t;
    if (t < best) best = t;
  }
  return 20e6 / ((double)best / 1e9);
}

/* Start the requested clock. Prints the reason and returns 0 if it is unavailable. */
static int start(Ticks *t, const char *name, double interval_ms, int tid)
{
  ClockSpec spec = ticks_spec(name, (uint64_t)(interval_ms * 1e6 + 0.5), 0);
  char errmsg[EVENT_ERRMSG_MAX];
  if (ticks_open(t, &spec, tid, 0, errmsg) == EVENT_OK) return 1;
  printf("%-14s %7g   %s\n", name, interval_ms, errmsg);
  return 0;
}

/* Run the same work without and with the clock. The difference is the cost of the ticks. */
static void row(const char *name, double interval_ms, double loops_in_second)
{
  uint64_t loops = (uint64_t)(loops_in_second * seconds);
  uint64_t with, without, t0, t1;
  Ticks t;
  t0 = thread_ns();
  work(loops / 2);
  without = thread_ns() - t0;
  if (!start(&t, name, interval_ms, lj_osthread_self())) return;
  t1 = t.last - t.weights; /* Microseconds. */
  t0 = thread_ns();
  work(loops);
  with = thread_ns() - t0;
  ticks_stop(&t);
  t0 = thread_ns();
  work(loops / 2);
  without += thread_ns() - t0;
  printf("%-14s %7g   %-12s %9.0f %10.0f %9.2f %%", name, interval_ms, t.clock.spec.name,
	 (double)t.n / ((double)with / 1e9), 1000 / interval_ms,
	 100.0 * (double)(t.last - t1) * 1000 / (double)with);
  if (t.n >= 500)
    printf(" %9.2f us\n", ((double)with - (double)without) / 1000 / (double)t.n);
  else printf("         -\n");
}

/* -- Ten threads ------------------------------------------------------------- */

static uint64_t loops_each;
static volatile int tids[THREADS], go, finished;
static __thread int thread_index;
static volatile uint64_t plain_ticks[THREADS];

static void *thread_main(void *arg)
{
  int i = (int)(intptr_t)arg;
  thread_index = i;
  tids[i] = lj_osthread_self();
  while (!go) usleep(100);
  work(loops_each);
  __atomic_add_fetch(&finished, 1, __ATOMIC_SEQ_CST);
  while (go != 2) usleep(1000); /* The clock is readable until the thread ends. */
  return NULL;
}

static void plain_handler(int sig)
{
  (void)sig;
  plain_ticks[thread_index]++;
}

static void shares(const char *name, double interval_ms, const double *v, double n)
{
  double sum = 0, lo = 1, hi = 0, worst = 0, se;
  int i;
  for (i = 0; i < THREADS; i++) sum += v[i];
  se = sqrt(0.1 * 0.9 / (n > 0 ? n : 1));
  for (i = 0; i < THREADS; i++) {
    double share = sum > 0 ? v[i] / sum : 0;
    if (share < lo) lo = share;
    if (share > hi) hi = share;
    if (fabs(share - 0.1) > worst) worst = fabs(share - 0.1);
  }
  printf("%-28s %7g %9.0f   %5.2f to %5.2f %%   %6.1f\n", name, interval_ms, n, lo * 100,
	 hi * 100, worst / se);
}

/* name: NULL for the plain timer of the process. */
static void ten_threads(const char *name, double interval_ms)
{
  static Ticks t[THREADS];
  pthread_t threads[THREADS];
  double counts[THREADS], weights[THREADS], n = 0;
  uint64_t begun[THREADS];
  struct itimerval it, off;
  char label[64];
  int i, is_open = 1;
  go = finished = 0;
  memset(&off, 0, sizeof(off));
  for (i = 0; i < THREADS; i++) {
    tids[i] = 0;
    plain_ticks[i] = 0;
    pthread_create(&threads[i], NULL, thread_main, (void *)(intptr_t)i);
    while (!tids[i]) usleep(100);
  }
  for (i = 0; name && i < THREADS && is_open; i++)
    is_open = start(&t[i], name, interval_ms, tids[i]);
  if (!name) {
    signal(SIGPROF, plain_handler);
    it.it_interval.tv_sec = 0;
    it.it_interval.tv_usec = (suseconds_t)(interval_ms * 1000);
    it.it_value = it.it_interval;
    setitimer(ITIMER_PROF, &it, NULL);
  }
  for (i = 0; i < THREADS; i++) begun[i] = t[i].last;
  go = 1;
  while (finished < THREADS) usleep(20000);
  if (!name) setitimer(ITIMER_PROF, &off, NULL);
  for (i = 0; i < THREADS; i++) {
    if (name && is_open) ticks_stop(&t[i]);
    counts[i] = name ? (double)t[i].n : (double)plain_ticks[i];
    weights[i] = (double)(t[i].last - begun[i]);
    n += counts[i];
  }
  go = 2;
  for (i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  if (!name) {
    signal(SIGPROF, SIG_DFL);
    shares("plain ITIMER_PROF, count", interval_ms, counts, n);
  } else if (is_open) {
    snprintf(label, sizeof(label), "%s, count", name);
    shares(label, interval_ms, counts, n);
    snprintf(label, sizeof(label), "%s, weight", name);
    shares(label, interval_ms, weights, n);
  }
}

int main(int argc, char **argv)
{
  static const struct {
    const char *name;
    double ms;
  } rows[] = { { "cpu", 10 },           { "cpu", 1 },
	       { "cpu", 0.1 },          { "ctimer", 10 },
	       { "ctimer", 1 },         { "ctimer", 0.1 },
	       { "task-clock", 10 },    { "task-clock", 1 },
	       { "task-clock", 0.1 },   { "task-clock:u", 1 },
	       { "task-clock:u", 0.1 }, { "itimer", 10 },
	       { "itimer", 1 },         { "wall-signal", 10 },
	       { "wall-signal", 1 },    { "wall-signal", 0.1 } };
  double loops_in_second;
  size_t i;
  seconds = argc > 1 ? atof(argv[1]) : 1;
  loops_in_second = calibrate();
  printf(
    "clock          asked ms  used        got a CPU s      asked   weights  cost of a tick\n");
  for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    row(rows[i].name, rows[i].ms, loops_in_second);
  printf("\nten equal threads             asked ms   samples   shares of each    "
	 "worst, in standard errors\n");
  loops_each = (uint64_t)(loops_in_second * seconds / 2);
  ten_threads(NULL, 10);
  ten_threads("itimer", 10);
  ten_threads("ctimer", 10);
  ten_threads("cpu", 10);
  ten_threads(NULL, 1);
  ten_threads("itimer", 1);
  ten_threads("cpu", 1);
  ten_threads("cpu", 0.1);
  return check_status();
}
