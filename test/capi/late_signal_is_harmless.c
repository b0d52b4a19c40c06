/* TIMEOUT: 600
** A signal of the profiler's timer that is pending at the stop neither ends the program
** nor reaches its handler. The program blocks SIGPROF after the start.
*/

#include <signal.h>

#include "session.h"

static volatile int got;

static void handler(int sig)
{
  (void)sig;
  got++;
}

/* Wait until SIGPROF is pending. */
static void wait_pending(lua_State *L)
{
  time_t deadline = time(NULL) + 200;
  sigset_t set;
  do {
    session_work(L);
    sigpending(&set);
    REQUIRE(time(NULL) < deadline);
  } while (!sigismember(&set, SIGPROF));
}

int main(void)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  sigset_t set, old, pending;
  int i;
  opt.signo = SIGPROF; /* Shared with the program's handler. */
  sigemptyset(&set);
  sigaddset(&set, SIGPROF);
  for (i = 0; i < 2; i++) {
    if (i == 1) signal(SIGPROF, handler);
    CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
    REQUIRE(sigprocmask(SIG_BLOCK, &set, &old) == 0);
    wait_pending(L);
    CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
    CHECK(sigpending(&pending) == 0 && !sigismember(&pending, SIGPROF));
    REQUIRE(sigprocmask(SIG_SETMASK, &old, NULL) == 0);
    CHECK(!sigismember(&old, SIGPROF));
  }
  CHECK_EQ(got, 0);

  /* A foreign one that is pending at the stop is not swallowed. The kernel keeps
  ** one signal of a number, so no tick may be pending when it is sent.
  */
  opt.interval_ns = (uint64_t)3600 * 1000000000u;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  REQUIRE(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
  raise(SIGPROF);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  REQUIRE(sigprocmask(SIG_SETMASK, &old, NULL) == 0);
  CHECK_EQ(got, 1);

  /* Very short profiles: each stop is near a tick. */
  opt.interval_ns = 20000;
  for (i = 0; i < 3000; i++) {
    CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
    CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  }
  CHECK_EQ(got, 1);
  lua_close(L);
  return check_status();
}
