/* TIMEOUT: 600
** BASE: none, its modules know no VM
** Another thread closes a clock while it ticks: no tick follows. A pending signal of the
** clock reaches no handler and does not end the program. If the program then gets a
** descriptor of the same number, that one stays open in a child.
*/

#include <linux/perf_event.h>

#include "ticks.h"

#define MS ((uint64_t)1000000)

typedef struct Worker {
  pthread_t thread;
  _Atomic int tid;
  _Atomic int go_on;
  int blocks;          /* It blocks SIGPROF at first, */
  _Atomic int pending; /* has it pending, */
  _Atomic int unblock; /* and unblocks it. */
} Worker;

static void *worker_main(void *arg)
{
  Worker *w = (Worker *)arg;
  sigset_t set, now;
  sigemptyset(&set);
  sigaddset(&set, SIGPROF);
  if (w->blocks) pthread_sigmask(SIG_BLOCK, &set, NULL);
  w->tid = lj_osthread_self();
  while (w->go_on) {
    burn_us(200);
    if (w->blocks && sigpending(&now) == 0 && sigismember(&now, SIGPROF)) w->pending = 1;
    if (w->unblock) {
      pthread_sigmask(SIG_UNBLOCK, &set, NULL);
      w->unblock = w->blocks = 0;
    }
  }
  return NULL;
}

static void worker_start(Worker *w, int blocks)
{
  memset(w, 0, sizeof(*w));
  w->go_on = 1;
  w->blocks = blocks;
  REQUIRE(pthread_create(&w->thread, NULL, worker_main, w) == 0);
  while (!w->tid) usleep(100);
}

static void worker_stop(Worker *w)
{
  w->go_on = 0;
  REQUIRE(pthread_join(w->thread, NULL) == 0);
}

/* What a tick would use is made unusable right after the close. */
static void while_it_ticks(const char *name, uint64_t interval_ns, int rounds,
			   int sleep_max_us)
{
  time_t deadline = time(NULL) + 200;
  ClockSpec spec = ticks_spec(name, interval_ns, 0);
  char errmsg[EVENT_ERRMSG_MAX];
  uint64_t ticks = 0;
  Worker w;
  Ticks t;
  int i;
  worker_start(&w, 0);
  for (i = 0; i <= rounds; i++) {
    REQUIRE(ticks_open(&t, &spec, w.tid, 0, errmsg) == EVENT_OK);
    if (i % 4) usleep((unsigned int)(i * 37 % sleep_max_us));
    while (i == rounds && !t.n && time(NULL) < deadline) usleep(1000);
    ticks_stop(&t);
    ticks += t.n;
    memset(&t, 0xff, sizeof(t));
  }
  worker_stop(&w);
  printf("%s: %llu ticks in %d clocks\n", name, (unsigned long long)ticks, i);
  CHECK(ticks > 0);
}

static _Atomic int got;

static void handler(int sig)
{
  (void)sig;
  got++;
}

static void while_it_is_pending(const char *name, int with_handler)
{
  ClockSpec spec = ticks_spec(name, MS, 0);
  time_t deadline = time(NULL) + 200;
  struct sigaction sa;
  char errmsg[EVENT_ERRMSG_MAX];
  Worker w;
  Ticks t;
  signal(SIGPROF, with_handler ? handler : SIG_DFL);
  worker_start(&w, 1);
  REQUIRE(ticks_open(&t, &spec, w.tid, 0, errmsg) == EVENT_OK);
  while (!w.pending && time(NULL) < deadline) usleep(1000);
  CHECK(w.pending);
  CHECK_EQ(t.n, 0);
  ticks_stop(&t);
  w.unblock = 1;
  while (w.unblock && time(NULL) < deadline) usleep(1000);
  CHECK(!w.unblock); /* The program lives. */
  CHECK_EQ(t.n, 0);
  CHECK_EQ(got, 0);
  worker_stop(&w);
  /* With nothing pending any more, the next close puts the handler back. */
  ticks_start(&t, "ctimer", MS, 0);
  ticks_stop(&t);
  REQUIRE(sigaction(SIGPROF, NULL, &sa) == 0);
  CHECK(sa.sa_handler == (with_handler ? handler : SIG_DFL));
}

/* The entry of a closed clock remains while its signal is pending. A child of fork() must
** not close a descriptor of the program that has the clock's number by then.
*/
static void descriptor_is_reused(const char *name)
{
  ClockSpec spec = ticks_spec(name, MS, 0);
  time_t deadline = time(NULL) + 200;
  struct perf_event_attr attr;
  char errmsg[EVENT_ERRMSG_MAX];
  int fd, own, status;
  pid_t pid;
  Worker w;
  Ticks t;
  worker_start(&w, 1);
  REQUIRE(ticks_open(&t, &spec, w.tid, 0, errmsg) == EVENT_OK);
  while (!w.pending && time(NULL) < deadline) usleep(1000);
  CHECK(w.pending);
  fd = t.clock.fd;
  ticks_stop(&t);
  memset(&attr, 0, sizeof(attr));
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_TASK_CLOCK;
  own = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
  REQUIRE(own >= 0);
  if (own != fd) {
    REQUIRE(dup2(own, fd) == fd);
    close(own);
  }
  pid = flush_and_fork();
  if (pid == 0) _exit(fcntl(fd, F_GETFD) < 0);
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK_EQ(status, 0);
  close(fd);
  worker_stop(&w);
}

/* -- The thread that has ended, many clocks, leaks ---------------------------- */

static void after_the_thread(const char *name)
{
  ClockSpec spec = ticks_spec(name, MS, 0);
  char errmsg[EVENT_ERRMSG_MAX];
  Worker w;
  Ticks t;
  worker_start(&w, 0);
  REQUIRE(ticks_open(&t, &spec, w.tid, 0, errmsg) == EVENT_OK);
  usleep(3000);
  worker_stop(&w);
  ticks_stop(&t);
}

static void jitp_tick(int sig)
{
  (void)sig;
}

static void as_many_as_there_are(void)
{
  static Ticks t[CLOCKS_MAX + 1];
  ClockSpec spec = ticks_spec("itimer", 1000 * MS, 0);
  char errmsg[EVENT_ERRMSG_MAX];
  int i;
  for (i = 0; i < CLOCKS_MAX; i++)
    if (ticks_open(&t[i], &spec, lj_osthread_self(), 0, errmsg) != EVENT_OK) break;
  CHECK_EQ(i, CLOCKS_MAX);
  CHECK_EQ(ticks_open(&t[CLOCKS_MAX], &spec, lj_osthread_self(), 0, errmsg), EVENT_BUSY);
  CHECK_EQ(lj_clock_jitp_start(jitp_tick, 10), 0);
  while (i-- > 0) ticks_stop(&t[i]);
  CHECK_EQ(lj_clock_jitp_start(jitp_tick, 10), 1);
  CHECK_EQ(ticks_open(&t[0], &spec, lj_osthread_self(), 0, errmsg), EVENT_BUSY);
  CHECK_EQ(lj_clock_jitp_start(jitp_tick, 10), 0);
  lj_clock_jitp_stop();
}

/* The kernel's timers of this process, 0 where it does not show them. */
static int timers(void)
{
  FILE *f = fopen("/proc/self/timers", "r");
  char line[256];
  int n = 0;
  while (f && fgets(line, sizeof(line), f)) n += strncmp(line, "ID:", 3) == 0;
  if (f) fclose(f);
  return n;
}

static void leaks(void)
{
  static const char *const names[] = { "cpu",        "wall-signal", "itimer",
				       "task-clock", "page-faults", "cycles" };
  int nfds = descriptors(), ntimers = timers(), i, k;
  for (k = 0; k < 6; k++) {
    if (!ticks_available(names[k])) continue;
    for (i = 0; i < 1000; i++) {
      Ticks t;
      ticks_start(&t, names[k], MS, 0);
      ticks_stop(&t);
    }
  }
  CHECK_EQ(descriptors(), nfds);
  CHECK_EQ(timers(), ntimers);
}

int main(void)
{
  int perf = ticks_available("task-clock");
  ticks_signo = SIGPROF;
  while_it_ticks("wall-signal", MS / 20, 1000, 400);
  while_it_ticks("itimer", MS, 60, 20000);
  while_it_is_pending("wall-signal", 0);
  while_it_is_pending("wall-signal", 1);
  while_it_is_pending("ctimer", 0);
  after_the_thread("ctimer");
  after_the_thread("wall-signal");
  after_the_thread("itimer");
  if (perf) {
    while_it_ticks("task-clock", MS / 20, 1000, 400);
    while_it_is_pending("task-clock", 0);
    while_it_is_pending("task-clock", 1);
    descriptor_is_reused("task-clock");
    after_the_thread("task-clock");
  }
  as_many_as_there_are();
  leaks();
  return check_status();
}
