/* TIMEOUT: 600
** BASE: none, its modules know no VM
** The program's signals, children and sleeps work beside the clocks like without them.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <poll.h>
#include <linux/perf_event.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "profile/base/lj_ossigmask.h"
#include "profile/base/lj_ossignal.h"
#include "ticks.h"

#define MS ((uint64_t)1000000)

/* -- Sleep ------------------------------------------------------------------- */

static int pipe_fd[2];
static _Atomic int writing;

static void *writer_main(void *arg)
{
  (void)arg;
  while (writing) {
    usleep(2000);
    if (write(pipe_fd[1], "x", 1) != 1) break;
  }
  return NULL;
}

static void (*clock_handler)(int, siginfo_t *, void *);
static _Atomic uint64_t signals; /* Signals of the clock, with and without a tick. */

static void counting_handler(int sig, siginfo_t *info, void *uc)
{
  signals++;
  clock_handler(sig, info, uc);
}

/* Count the signals of the clock, or leave them to the clock alone again. */
static void count_signals(int is_on)
{
  struct sigaction sa;
  REQUIRE(sigaction(SIGPROF, NULL, &sa) == 0);
  if (is_on) clock_handler = sa.sa_sigaction;
  sa.sa_sigaction = is_on ? counting_handler : clock_handler;
  REQUIRE(sigaction(SIGPROF, &sa, NULL) == 0);
}

/* Time that the clock's timer has run for. Perf keeps a time of its own: with the
** hypervisor's and the interrupts' share, without the scheduler's.
*/
static uint64_t timer_ns(const Ticks *t)
{
  uint64_t count[3]; /* Value, time enabled, time running. */
  if (t->clock.spec.kind != CLOCK_PERF) return thread_us() * 1000;
  REQUIRE(read(t->clock.fd, count, sizeof(count)) == sizeof(count));
  return count[0];
}

/* A clock of CPU time stands still in a sleep. So each interrupted call has had a signal,
** and each signal takes a whole period of the timer. Two signals are exceptions: one that
** was due before, and one in a period that had begun. The test counts signals from the
** first tick on: the first period is random, and may be a few microseconds with perf.
** A tick's overruns are the CPU time since the last tick, rounded to periods, less one.
** They never exceed that time, but ticks and overruns together may.
*/
static void sleep_is_not_interrupted(const char *name, uint64_t interval_ns)
{
  static const struct timespec moment = { 0, 2000000 };
  struct epoll_event event;
  pthread_t writer;
  time_t deadline = time(NULL) + 200;
  uint64_t begin = thread_us(), spent, ran_ns, interrupted = 0;
  int epoll = epoll_create1(EPOLL_CLOEXEC), i;
  char c;
  Ticks t;
  REQUIRE(epoll >= 0 && pipe(pipe_fd) == 0);
  ticks_start(&t, name, interval_ns, 0);
  while (t.n < 1 && time(NULL) < deadline) burn_us(1000);
  CHECK(t.n >= 1);
  writing = 1;
  REQUIRE(pthread_create(&writer, NULL, writer_main, NULL) == 0);
  signals = 0;
  ran_ns = timer_ns(&t);
  count_signals(1);
  for (i = 0; i < 100; i++) {
    interrupted += poll(NULL, 0, 2) < 0 && errno == EINTR;
    interrupted += epoll_wait(epoll, &event, 1, 2) < 0 && errno == EINTR;
    interrupted += nanosleep(&moment, NULL) != 0 && errno == EINTR;
    interrupted += read(pipe_fd[0], &c, 1) < 0 && errno == EINTR;
  }
  count_signals(0);
  ran_ns = timer_ns(&t) - ran_ns;
  spent = thread_us() - begin;
  ticks_stop(&t);
  writing = 0;
  REQUIRE(pthread_join(writer, NULL) == 0);
  close(epoll);
  close(pipe_fd[0]);
  close(pipe_fd[1]);
  printf("%s, as %s: 400 sleeps, %llu signals in %llu us of the timer, %llu calls "
	 "interrupted; in all %llu us of CPU time, %llu ticks with %llu overruns\n",
	 name, t.clock.spec.name, (unsigned long long)signals,
	 (unsigned long long)ran_ns / 1000, (unsigned long long)interrupted,
	 (unsigned long long)spent, (unsigned long long)t.n,
	 (unsigned long long)t.overruns);
  CHECK(interrupted <= signals);
  if (t.clock.spec.kind == CLOCK_ITIMER) return; /* Counts all threads' time. */
  CHECK(signals <= ran_ns / interval_ns + 2);
  CHECK(t.overruns <= spent * 1000 / interval_ns);
}

/* -- Signals ----------------------------------------------------------------- */

static int own_fd = -1;
static _Atomic int own_signals, others;

static void own_handler(int sig, siginfo_t *info, void *uc)
{
  (void)uc;
  CHECK_EQ(sig, SIGPROF);
  if (info->si_code == POLL_IN && info->si_fd == own_fd) own_signals++;
  else others++;
}

/* The program has a perf event with the same signal. */
static void own_perf_event(const char *name)
{
  struct perf_event_attr attr;
  struct f_owner_ex owner = { F_OWNER_TID, lj_osthread_self() };
  time_t deadline = time(NULL) + 200;
  struct sigaction sa;
  Ticks t;
  memset(&attr, 0, sizeof(attr));
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_TASK_CLOCK;
  attr.sample_period = 700000;
  attr.exclude_kernel = 1;
  memset(&sa, 0, sizeof(sa));
  sa.sa_sigaction = own_handler;
  sa.sa_flags = SA_SIGINFO;
  REQUIRE(sigaction(SIGPROF, &sa, NULL) == 0);
  own_fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
  REQUIRE(own_fd >= 0);
  REQUIRE(fcntl(own_fd, F_SETOWN_EX, &owner) == 0);
  REQUIRE(fcntl(own_fd, F_SETSIG, SIGPROF) == 0);
  REQUIRE(fcntl(own_fd, F_SETFL, O_ASYNC) == 0);
  ticks_start(&t, name, MS, 0);
  own_signals = others = 0;
  while ((t.n < 10 || own_signals < 10) && time(NULL) < deadline) burn_us(1000);
  CHECK(t.n >= 10 && own_signals >= 10);
  ticks_stop(&t);
  CHECK_EQ(others, 0);
  own_signals = 0;
  while (own_signals < 3 && time(NULL) < deadline) burn_us(1000);
  CHECK(own_signals >= 3); /* By its own handler again. */
  close(own_fd);
  signal(SIGPROF, SIG_DFL);
}

/* The program blocks the signal: no tick comes, and no signal is left over. */
static void blocked(const char *name)
{
  time_t deadline = time(NULL) + 200;
  sigset_t set, old, now;
  Ticks t;
  sigemptyset(&set);
  sigaddset(&set, SIGPROF);
  REQUIRE(pthread_sigmask(SIG_BLOCK, &set, &old) == 0);
  ticks_start(&t, name, MS, 0);
  do {
    burn_us(1000);
    REQUIRE(sigpending(&now) == 0);
  } while (!sigismember(&now, SIGPROF) && time(NULL) < deadline);
  CHECK(sigismember(&now, SIGPROF));
  CHECK_EQ(t.n, 0);
  ticks_stop(&t);
  CHECK(sigpending(&now) == 0 && !sigismember(&now, SIGPROF));
  REQUIRE(pthread_sigmask(SIG_SETMASK, &old, &now) == 0);
  CHECK(sigismember(&now, SIGPROF));
  /* Unblocked again, the pending signal makes one tick, with all of the time. */
  REQUIRE(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
  ticks_start(&t, name, MS, 0);
  burn_us(20000);
  CHECK_EQ(t.n, 0);
  REQUIRE(pthread_sigmask(SIG_SETMASK, &old, NULL) == 0);
  while (t.n < 1 && time(NULL) < deadline) burn_us(1000);
  CHECK(t.n >= 1 && t.weights >= 20000);
  ticks_stop(&t);
}

/* Waits for the signal with a mask that the program made by a system call of its own. */
static void *waits_with_raw_mask(void *tid)
{
  sigset_t set;
  int signo;
  sigemptyset(&set);
  sigaddset(&set, SIGPROF);
  lj_ossignal_setmask(~(SignalMask)0);
  __atomic_store_n((int *)tid, lj_osthread_self(), __ATOMIC_SEQ_CST);
  CHECK(sigwait(&set, &signo) == 0 && signo == SIGPROF);
  return NULL;
}

static void wait_counts(void)
{
  time_t deadline = time(NULL) + 200;
  pthread_t thread;
  int waiter = 0;
  REQUIRE(pthread_create(&thread, NULL, waits_with_raw_mask, &waiter) == 0);
  while (!__atomic_load_n(&waiter, __ATOMIC_SEQ_CST)) usleep(1000);
  while (lj_ossigmask_blocked(waiter, SIGPROF) != SIGBLOCKED_YES && time(NULL) < deadline)
    usleep(1000);
  CHECK_EQ(lj_ossigmask_blocked(waiter, SIGPROF), SIGBLOCKED_YES);
  pthread_kill(thread, SIGPROF);
  pthread_join(thread, NULL);
}

static _Atomic int masked_tid, masked_step, masked_go;
static SignalMask masks[2];

static void *with_masks(void *arg)
{
  size_t i;
  (void)arg;
  for (i = 0; i < 2; i++) {
    lj_ossignal_setmask(masks[i]);
    masked_tid = lj_osthread_self();
    masked_step = (int)i + 1;
    while (masked_go <= (int)i) usleep(1000);
  }
  return NULL;
}

/* What a thread blocks, asked by itself and by another one. */
static void is_blocked(SignalMask mask, int signo, SigBlocked expected)
{
  SignalMask old = lj_ossignal_setmask(mask);
  CHECK_EQ(lj_ossigmask_blocked(lj_osthread_self(), signo), expected);
  lj_ossignal_setmask(old);
}

static void whose_mask(void)
{
  SignalMask profs = ossignal_bit(SIGPROF);
  SignalMask programs = ~(SignalMask)0 & ~ossignal_bit(OSSIGNAL_CANCEL);
  pthread_t thread;
  is_blocked(0, SIGPROF, SIGBLOCKED_NOT);
  is_blocked(profs, SIGPROF, SIGBLOCKED_YES);
  is_blocked(profs, SIGURG, SIGBLOCKED_NOT);
  is_blocked(programs, SIGPROF, SIGBLOCKED_YES);
  is_blocked(~(SignalMask)0, SIGPROF, SIGBLOCKED_ALL);
  is_blocked(OSSIGNAL_BLOCKED, SIGPROF, SIGBLOCKED_ALL);
  masks[0] = programs;
  masks[1] = ~(SignalMask)0;
  REQUIRE(pthread_create(&thread, NULL, with_masks, NULL) == 0);
  while (masked_step < 1) usleep(1000);
  CHECK_EQ(lj_ossigmask_blocked(masked_tid, SIGPROF), SIGBLOCKED_YES);
  masked_go = 1;
  while (masked_step < 2) usleep(1000);
  CHECK_EQ(lj_ossigmask_blocked(masked_tid, SIGPROF), SIGBLOCKED_ALL);
  masked_go = 2;
  pthread_join(thread, NULL);
}

/* -- Children ---------------------------------------------------------------- */

static void children(const char *name)
{
  int before = descriptors(), status, i;
  time_t deadline = time(NULL) + 200;
  uint64_t n;
  Ticks t;
  ticks_start(&t, name, MS, 0);
  fflush(stdout);
  for (i = 0; i < 20; i++) {
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      Ticks own;
      struct sigaction sa;
      check_failures = 0;
      CHECK_EQ(descriptors(), before);
      CHECK(sigaction(SIGPROF, NULL, &sa) == 0 && sa.sa_handler == SIG_DFL);
      n = t.n;
      burn_us(10000);
      CHECK_EQ(t.n, n);
      ticks_stop(&t); /* The parent's: does nothing. */
      ticks_start(&own, name, MS, 0);
      while (own.n < 2 && time(NULL) < deadline) burn_us(1000);
      CHECK(own.n >= 2);
      ticks_stop(&own);
      CHECK_EQ(descriptors(), before);
      _exit(check_status());
    }
    REQUIRE(waitpid(pid, &status, 0) == pid);
    CHECK_EQ(status, 0);
  }
  n = t.n;
  while (t.n < n + 5 && time(NULL) < deadline) burn_us(1000);
  CHECK(t.n >= n + 5); /* It goes on here. */
  ticks_stop(&t);
  CHECK_EQ(descriptors(), before);
}

int main(void)
{
  int perf = ticks_available("task-clock:u");
  ticks_signo = SIGPROF;
  sleep_is_not_interrupted("cpu", 10 * MS);
  sleep_is_not_interrupted("cpu", MS);
  sleep_is_not_interrupted("itimer", MS);
  if (perf) {
    own_perf_event("ctimer");
    own_perf_event("task-clock:u");
    blocked("task-clock:u");
    children("task-clock:u");
  }
  whose_mask();
  wait_counts();
  blocked("ctimer");
  blocked("wall-signal");
  blocked("itimer");
  children("ctimer");
  children("wall-signal");
  children("itimer");
  return check_status();
}
