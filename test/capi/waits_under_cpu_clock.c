/* TIMEOUT: 600
** A waiting thread uses no CPU time, so no signal of a CPU clock comes during the wait.
** No waiting call returns early.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "session.h"

#define WAIT_MS 30 /* Several intervals of the clock. */

static int pair[2], epfd, timerfd;

static int64_t ns(clockid_t id)
{
  struct timespec ts;
  REQUIRE(clock_gettime(id, &ts) == 0);
  return ts.tv_sec * (int64_t)1000000000 + ts.tv_nsec;
}

/* Each waits and returns 0, or the errno. */
static int by_poll(void)
{
  struct pollfd p = { pair[0], POLLIN, 0 };
  return poll(&p, 1, WAIT_MS) < 0 ? errno : 0;
}

static int by_select(void)
{
  struct timeval tv = { 0, WAIT_MS * 1000 };
  fd_set set;
  FD_ZERO(&set);
  FD_SET(pair[0], &set);
  return select(pair[0] + 1, &set, NULL, NULL, &tv) < 0 ? errno : 0;
}

static int by_epoll(void)
{
  struct epoll_event ev;
  return epoll_wait(epfd, &ev, 1, WAIT_MS) < 0 ? errno : 0;
}

static int by_nanosleep(void)
{
  struct timespec ts = { 0, WAIT_MS * 1000000 };
  return nanosleep(&ts, NULL) < 0 ? errno : 0;
}

static int by_usleep(void)
{
  return usleep(WAIT_MS * 1000) < 0 ? errno : 0;
}

static int by_read(void)
{
  struct itimerspec its = { { 0, 0 }, { 0, WAIT_MS * 1000000 } };
  uint64_t n;
  REQUIRE(timerfd_settime(timerfd, 0, &its, NULL) == 0);
  return read(timerfd, &n, sizeof(n)) < 0 ? errno : 0;
}

/* Not restarted even with SA_RESTART: signal(7). */
static int by_recv(void)
{
  char c;
  return recv(pair[0], &c, 1, 0) < 0 && errno != EAGAIN ? errno : 0;
}

static int by_sigtimedwait(void)
{
  struct timespec ts = { 0, WAIT_MS * 1000000 };
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  return sigtimedwait(&set, NULL, &ts) < 0 && errno != EAGAIN ? errno : 0;
}

static int by_semaphore(void)
{
  struct timespec ts;
  sem_t sem;
  REQUIRE(sem_init(&sem, 0, 0) == 0 && clock_gettime(CLOCK_REALTIME, &ts) == 0);
  ts.tv_nsec += WAIT_MS * 1000000;
  ts.tv_sec += ts.tv_nsec / 1000000000;
  ts.tv_nsec %= 1000000000;
  return sem_timedwait(&sem, &ts) < 0 && errno != ETIMEDOUT ? errno : 0;
}

/* A tick that is due when the thread enters the wait would end the wait. So each wait comes
** shortly after a tick. A loaded machine may take long to put the thread to sleep; such a
** wait does not count. Where the kernel checks CPU time only at its own ticks, one may be
** due nevertheless, but not each time.
*/
static void check_wait(lua_State *L, const char *name, int (*wait)(void),
		       int64_t interval_ns)
{
  int tries, early = 0;
  for (tries = 0; tries < 20 && early < 5; tries++) {
    uint64_t samples = session_samples();
    int64_t cpu, real;
    int err;
    session_run(L, samples + 1);
    samples = session_samples();
    cpu = ns(CLOCK_THREAD_CPUTIME_ID);
    real = ns(CLOCK_MONOTONIC);
    err = wait();
    real = ns(CLOCK_MONOTONIC) - real;
    cpu = ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
    if (cpu > interval_ns / 4) continue;
    if (!err && real >= WAIT_MS * (int64_t)1000000 / 2) return;
    printf("%s: %s after %lld us\n", name, strerror(err), (long long)real / 1000);
    early++;
  }
  CHECK(early < 5);
  printf("%s: not judged, %d waits took much CPU time\n", name, tries - early);
}

int main(void)
{
  static const struct {
    const char *name;
    int (*wait)(void);
  } waits[] = {
    { "poll", by_poll },
    { "select", by_select },
    { "epoll_wait", by_epoll },
    { "nanosleep", by_nanosleep },
    { "usleep", by_usleep },
    { "read", by_read },
    { "recv", by_recv },
    { "sigtimedwait", by_sigtimedwait },
    { "sem_timedwait", by_semaphore },
  };
  static const struct {
    const char *name;
    uint64_t interval_ns;
  } clocks[] = {
    { "cpu", 10000000 },       { "cpu", 2000000 },     { "ctimer", 5000000 },
    { "task-clock", 5000000 }, { "itimer", 10000000 },
  };
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  struct epoll_event ev = { EPOLLIN, { 0 } };
  struct timeval tv = { 0, WAIT_MS * 1000 };
  size_t i, k;
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  REQUIRE(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) == 0);
  REQUIRE((epfd = epoll_create1(0)) >= 0);
  REQUIRE(epoll_ctl(epfd, EPOLL_CTL_ADD, pair[0], &ev) == 0);
  REQUIRE((timerfd = timerfd_create(CLOCK_MONOTONIC, 0)) >= 0);
  for (k = 0; k < sizeof(clocks) / sizeof(clocks[0]); k++) {
    opt.clocks = clocks[k].name;
    opt.interval_ns = clocks[k].interval_ns;
    if (luaM_sysprof_start(L, &opt) != PROFILE_SUCCESS) {
      CHECK(strcmp(opt.clocks, "cpu") != 0);
      printf("%s is left out: %s\n", opt.clocks, luaM_sysprof_error());
      continue;
    }
    for (i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
      check_wait(L, waits[i].name, waits[i].wait, (int64_t)opt.interval_ns);
    CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  }
  lua_close(L);
  return check_status();
}
