/* TIMEOUT: 600
** BASE: none, files, sockets, signals, processes; the VM runs a loop, or none
** The VM's own thread blocks all signals, and takes them by signalfd() or sigtimedwait(). If it
** does so at the start, no signal of a profile reaches it. If it does so later, none does once
** the report counts it. When it unblocks them, samples come again.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>

#include "cpu_work.h"

#define WATCHED_US 300000 /* CPU time in which no signal may come: many looks. */

static const char *const clocks[] = { "wall-signal", "cpu", "task-clock", "itimer" };

/* By the C library, which leaves its own signals out, or by a bare system call. */
static void block_all(int is_bare)
{
  static const uint64_t bits = ~(uint64_t)0;
  sigset_t all;
  sigfillset(&all);
  if (is_bare)
    REQUIRE(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &bits, NULL, sizeof(bits)) == 0);
  else REQUIRE(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
}

static void unblock_all(void)
{
  static const uint64_t none;
  REQUIRE(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none)) == 0);
}

/* Take what is pending, both ways. Returns the number of signals. */
static int taken(int fd)
{
  static const struct timespec now = { 0, 0 };
  struct signalfd_siginfo info;
  sigset_t all;
  int n = 0;
  sigfillset(&all);
  while (read(fd, &info, sizeof(info)) == sizeof(info)) n++;
  while (sigtimedwait(&all, NULL, &now) > 0) n++;
  return n;
}

static int signals_fd(void)
{
  sigset_t all;
  int fd;
  sigfillset(&all);
  fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
  REQUIRE(fd >= 0);
  return fd;
}

static uint32_t unsampled(lua_State *L)
{
  struct luam_Sysprof_SelfReport r;
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  return r.unsampled;
}

/* Signals that come while the thread computes. */
static int come_in(lua_State *L, int fd, uint64_t us)
{
  uint64_t end = cpu_own_us() + us;
  int n = 0;
  while (cpu_own_us() < end) {
    session_work(L);
    n += taken(fd);
  }
  return n;
}

/* Returns 0 if the clock is unavailable here. */
static int start(lua_State *L, struct luam_Sysprof_Options *opt, Sink *sink,
		 const char *clock, int threads)
{
  *opt = session_options(sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  opt->clocks = clock;
  opt->threads = (uint8_t)threads;
  if (luaM_sysprof_start(L, opt) == PROFILE_SUCCESS) return 1;
  printf("%s is left out: %s\n", clock, luaM_sysprof_error());
  unblock_all();
  sink_free(sink);
  return 0;
}

static void blocked_at_start(lua_State *L, const char *clock, int threads, int is_bare)
{
  struct luam_Sysprof_Options opt;
  int fd = signals_fd();
  Sink sink;
  block_all(is_bare);
  if (start(L, &opt, &sink, clock, threads)) {
    CHECK_EQ(unsampled(L), 1);
    CHECK_EQ(come_in(L, fd, WATCHED_US), 0);
    CHECK_EQ(session_samples(), 0);
    unblock_all();
    session_run(L, 20);
    CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
    sink_free(&sink);
  }
  close(fd);
}

/* The background thread looks, so the profile must have one. Until the look a signal may come. */
static void blocks_later(lua_State *L, const char *clock, int is_bare)
{
  time_t deadline = time(NULL) + 200;
  struct luam_Sysprof_Options opt;
  int fd = signals_fd(), before = 0;
  Sink sink;
  if (start(L, &opt, &sink, clock, LUAM_SYSPROF_THREADS_ALL)) {
    session_run(L, 20);
    CHECK_EQ(unsampled(L), 0);
    block_all(is_bare);
    while (unsampled(L) == 0 && time(NULL) < deadline) before += come_in(L, fd, 1000);
    CHECK_EQ(unsampled(L), 1);
    before += taken(fd);
    printf("%s: %d signals before the look\n", clock, before);
    CHECK_EQ(come_in(L, fd, WATCHED_US), 0);
    unblock_all();
    session_run(L, session_samples() + 20);
    CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
    sink_free(&sink);
  }
  close(fd);
}

int main(void)
{
  lua_State *L = session_vm();
  size_t i;
  for (i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
    blocked_at_start(L, clocks[i], LUAM_SYSPROF_THREADS_OWN, 0);
    blocked_at_start(L, clocks[i], LUAM_SYSPROF_THREADS_ALL, 1);
    blocks_later(L, clocks[i], (int)i % 2);
  }
  lua_close(L);
  return check_status();
}
