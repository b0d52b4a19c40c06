/* TIMEOUT: 600
** BASE: none, its modules know no VM
** Each clock that is available here: its ticks come on its own thread, whatever thread
** opened it. Their weights are all of the thread's CPU time.
*/

#include <math.h>

#include "ticks.h"

#define MS ((uint64_t)1000000)

/* Work until there are n ticks. */
static void work(const Ticks *t, uint64_t n)
{
  time_t deadline = time(NULL) + 200;
  while (t->n < n && time(NULL) < deadline) burn_us(2000);
  CHECK(t->n >= n);
}

/* A timer's signals stand for all of its expirations: the first comes within the
** first period, the later ones each after a period. For the other kinds each
** tick is rounded to periods, and counts from a quarter of one on. Returns 0 if it is
** not so: a machine that is virtual may stand still before the last tick looks at the
** time.
*/
static int all_is_counted(const Ticks *t, uint64_t begin)
{
  uint64_t period_us = lj_clockops_mean(&t->clock) / 1000;
  uint64_t sum_us = (t->n + t->overruns) * period_us, span_us = t->last - begin;
  uint64_t error_us = sum_us > span_us ? sum_us - span_us : span_us - sum_us;
  CHECK_EQ(t->weights, span_us);
  if (t->clock.spec.kind == CLOCK_CTIMER) return error_us <= 2 * period_us;
  return t->clock.spec.kind == CLOCK_WALL_SIGNAL ||
	 error_us <= (t->n + 2) * period_us * 3 / 4 + period_us;
}

static int own_thread_once(const char *name, uint64_t interval_ns)
{
  Ticks t;
  uint64_t begin, before, total, after, n;
  int counted;
  ticks_start(&t, name, interval_ns, 0);
  do { /* A tick may come between two reads. */
    n = t.n;
    begin = t.last - t.weights;
  } while (t.n != n);
  work(&t, 8);
  before = thread_us();
  total = lj_clocksig_total(&t.clock);
  after = thread_us();
  ticks_stop(&t);
  printf("%s, %g ms, as %s: %llu ticks, %llu overruns, %llu us\n", name,
	 (double)interval_ns / 1e6, t.clock.spec.name, (unsigned long long)t.n,
	 (unsigned long long)t.overruns, (unsigned long long)t.weights);
  CHECK(before <= total && total <= after);
  counted = all_is_counted(&t, begin);
  begin = t.n;
  burn_us(interval_ns / 1000 + 20000);
  CHECK_EQ(t.n, begin); /* No more after the close. */
  return counted;
}

static void own_thread(const char *name, uint64_t interval_ns)
{
  int tries = 5;
  while (!own_thread_once(name, interval_ns) && --tries > 0)
    ;
  CHECK(tries > 0);
}

/* -- Clocks of other threads ------------------------------------------------- */

typedef struct Worker {
  pthread_t thread;
  _Atomic int tid;
  _Atomic int go_on;
} Worker;

static void *worker_main(void *arg)
{
  Worker *w = (Worker *)arg;
  w->tid = lj_osthread_self();
  while (w->go_on) burn_us(1000);
  return NULL;
}

static void other_threads(const char *name)
{
  enum { WORKERS = 3 };
  Worker w[WORKERS];
  Ticks t[WORKERS];
  ClockSpec spec = ticks_spec(name, 5 * MS, 0);
  char errmsg[EVENT_ERRMSG_MAX];
  time_t deadline = time(NULL) + 200;
  int i, n;
  for (i = 0; i < WORKERS; i++) {
    w[i].tid = 0;
    w[i].go_on = 1;
    REQUIRE(pthread_create(&w[i].thread, NULL, worker_main, &w[i]) == 0);
  }
  for (i = 0; i < WORKERS; i++) {
    while (!w[i].tid) usleep(100);
    REQUIRE(ticks_open(&t[i], &spec, w[i].tid, 0, errmsg) == EVENT_OK);
  }
  do {
    usleep(1000);
    for (i = n = 0; i < WORKERS; i++) n += (t[i].n >= 5);
  } while (n < WORKERS && time(NULL) < deadline);
  CHECK_EQ(n, WORKERS);
  for (i = 0; i < WORKERS; i++) ticks_stop(&t[i]);
  for (i = 0; i < WORKERS; i++) {
    w[i].go_on = 0;
    REQUIRE(pthread_join(w[i].thread, NULL) == 0);
  }
  /* A thread that was joined is there for a moment still. */
  while (syscall(SYS_tgkill, getpid(), w[0].tid, 0) == 0 && time(NULL) < deadline)
    usleep(1000);
  CHECK_EQ(lj_clocksig_total(&t[0].clock), 0); /* Its thread is gone. */
  REQUIRE(ticks_open(&t[0], &spec, w[0].tid, 0, errmsg) == EVENT_ERROR ||
	  spec.kind == CLOCK_ITIMER);
  if (spec.kind != CLOCK_ITIMER) CHECK(strstr(errmsg, "the thread has ended") != NULL);
  else ticks_stop(&t[0]);
}

/* -- Several on one thread --------------------------------------------------- */

static void together(const char *event)
{
  Ticks cpu, wall, other;
  time_t deadline = time(NULL) + 200;
  ticks_start(&cpu, "cpu", 5 * MS, 0);
  ticks_start(&wall, "wall-signal", 2 * MS, 0);
  ticks_start(&other, event, 3 * MS, 0);
  while ((cpu.n < 10 || wall.n < 10 || other.n < 10) && time(NULL) < deadline)
    burn_us(1000);
  CHECK(cpu.n >= 10 && wall.n >= 10 && other.n >= 10);
  ticks_stop(&wall);
  ticks_stop(&cpu);
  ticks_stop(&other);
}

static void jitter(void)
{
  ClockSpec spec = ticks_spec("wall-signal", MS, 0);
  double sum = 0, squares = 0, variance;
  char errmsg[EVENT_ERRMSG_MAX];
  Ticks t;
  int i;
  spec.jitter = 1;
  REQUIRE(ticks_open(&t, &spec, lj_osthread_self(), 0, errmsg) == EVENT_OK);
  work(&t, 50);
  ticks_stop(&t);
  /* The distribution is uniform in half a period on both sides. The standard error of its
  ** mean is period / sqrt(12 n), a 346th of 10000. Its variance is period^2 / 12, with the
  ** standard error sqrt(0.8 / n), a 111th. The bounds are 8 standard errors.
  */
  for (i = 0; i < 10000; i++) {
    uint64_t period = lj_clockops_period(&t.clock);
    double x = (double)period / MS;
    CHECK(period > MS / 2 && period <= MS + MS / 2);
    sum += x;
    squares += (x - 1) * (x - 1);
  }
  CHECK(fabs(sum / 10000 - 1) < 8.0 / 346);
  variance = squares / 10000;
  CHECK(fabs(variance * 12 - 1) < 8.0 / 111);
}

/* Clocks that are armed together do not tick together: the first tick of each comes after a
** random part of the period. The part is uniform from 0 to 1. So the mean of 400 has a
** standard error of a 69th, and the variance one of a 22nd of itself. The bounds are 8
** standard errors. From arm to here takes less than a thousandth of the period, mostly.
*/
static void first_ticks(void)
{
  const uint64_t period = 10000 * (uint64_t)MS;
  ClockSpec spec = ticks_spec("wall-signal", period, 0);
  double sum = 0, squares = 0, x;
  char errmsg[EVENT_ERRMSG_MAX];
  struct itimerspec left;
  Ticks t;
  int i;
  for (i = 0; i < 400; i++) {
    REQUIRE(ticks_open(&t, &spec, lj_osthread_self(), 0, errmsg) == EVENT_OK);
    REQUIRE(timer_gettime(t.clock.timer, &left) == 0);
    ticks_stop(&t);
    x = ((double)left.it_value.tv_sec * 1e9 + (double)left.it_value.tv_nsec) /
	(double)period;
    CHECK(x <= 1);
    sum += x;
    squares += (x - 0.5) * (x - 0.5);
  }
  CHECK(fabs(sum / 400 - 0.5) < 8.0 / 69);
  CHECK(fabs(squares / 400 * 12 - 1) < 8.0 / 22);
}

int main(void)
{
  own_thread("cpu", 10 * MS);
  own_thread("cpu", MS);
  own_thread("cpu", MS / 10);
  own_thread("ctimer", 10 * MS);
  own_thread("ctimer", MS / 2);
  own_thread("wall-signal", MS);
  own_thread("itimer", 5 * MS);
  other_threads("ctimer");
  other_threads("wall-signal");
  other_threads("itimer");
  together("ctimer");
  together("itimer");
  if (ticks_available("task-clock")) {
    own_thread("task-clock", 10 * MS);
    own_thread("task-clock", MS);
    own_thread("task-clock", MS / 10);
    other_threads("task-clock");
    together("task-clock");
  }
  if (ticks_available("task-clock:u")) own_thread("task-clock:u", MS);
  jitter();
  first_ticks();
  return check_status();
}
