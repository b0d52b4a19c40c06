/* A thread that blocks the signal has no samples. After the stop no signal is pending,
** and the thread's mask is unchanged.
*/

#include <signal.h>

#include "session.h"

/* Use CPU time, and at least as much real time. */
static void burn(lua_State *L, int ms)
{
  clock_t end = clock() + ms * (CLOCKS_PER_SEC / 1000);
  while (clock() < end) session_work(L);
}

static void check_blocked(lua_State *L, int mode, const char *clock, int was_blocked)
{
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, mode, 65536);
  sigset_t set, now, pending;
  sigemptyset(&set);
  sigaddset(&set, SIGPROF);
  sigaddset(&set, SIGUSR1);
  opt.clocks = clock;
  opt.signo = SIGPROF;
  if (was_blocked) REQUIRE(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  if (!was_blocked) REQUIRE(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
  burn(L, 1); /* Ticks before. */
  if (was_blocked) {
    burn(L, 50);
    CHECK_EQ(session_samples(), 0);
  } else {
    uint64_t before = session_samples();
    burn(L, 50);
    CHECK_EQ(session_samples(), before);
  }
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  REQUIRE(sigprocmask(SIG_SETMASK, NULL, &now) == 0);
  CHECK(sigismember(&now, SIGPROF) == 1 && sigismember(&now, SIGUSR1) == 1);
  CHECK(sigismember(&now, SIGUSR2) == 0);
  REQUIRE(sigpending(&pending) == 0);
  CHECK_EQ(sigismember(&pending, SIGPROF), 0);
  /* SIGPROF would end the program now. */
  REQUIRE(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
  sink_free(&sink);
}

/* The program's own signal, sent while it is blocked, is still there. */
static void check_own_is_kept(lua_State *L)
{
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_DEFAULT, 65536);
  siginfo_t info;
  sigset_t set;
  union sigval v;
  sigemptyset(&set);
  sigaddset(&set, SIGPROF);
  REQUIRE(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
  v.sival_int = 4711;
  REQUIRE(sigqueue(getpid(), SIGPROF, v) == 0);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  burn(L, 20);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  REQUIRE(sigwaitinfo(&set, &info) == SIGPROF);
  CHECK_EQ(info.si_code, SI_QUEUE);
  CHECK_EQ(info.si_value.sival_int, 4711);
  REQUIRE(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
  sink_free(&sink);
}

int main(void)
{
  lua_State *L = session_vm();
  static const char *const clocks[] = { "cpu", "wall-signal" };
  int mode, i;
  REQUIRE(signal(SIGPROF, SIG_DFL) != SIG_ERR);
  for (mode = LUAM_SYSPROF_DEFAULT; mode <= LUAM_SYSPROF_CALLGRAPH; mode++)
    for (i = 0; i < 2; i++) {
      check_blocked(L, mode, clocks[i], 0);
      check_blocked(L, mode, clocks[i], 1);
    }
  check_own_is_kept(L);
  lua_close(L);
  return check_status();
}
