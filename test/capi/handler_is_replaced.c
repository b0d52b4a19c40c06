/* A program replaces our handler of the signal during its profile. Its handler stays, and
** gets all signals from then on, ours too. The profile reports that samples are missing.
** A handler that passes our signals on loses no sample, in this profile and in the next. A program
** that resets all signals goes on.
** BASE: none, files, sockets, signals, processes; the VM runs a loop, or none
*/

#include <signal.h>

#include "session.h"

static volatile int got;

static void handler(int sig)
{
  (void)sig;
  got++;
}

static uint32_t replaced(lua_State *L)
{
  struct luam_Sysprof_SelfReport r;
  memset(&r, 0xff, sizeof(r));
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  if (r.replaced) CHECK(strstr(r.limit, "the program set its own handler for SIG") != NULL);
  return r.replaced;
}

static void check(lua_State *L, int mode, int put_back)
{
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, mode, 65536);
  struct sigaction sa, ours, now;
  time_t deadline = time(NULL) + 200;
  uint64_t samples;
  memset(&sa, 0, sizeof(sa));
  sa.sa_handler = handler;
  sa.sa_flags = SA_RESTART;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  CHECK_EQ(replaced(L), 0);
  session_run(L, 20);
  REQUIRE(sigaction(CLOCK_SIGNAL, &sa, &ours) == 0);
  got = 0;
  samples = session_samples();
  while (got < 10 && time(NULL) < deadline) session_work(L);
  CHECK(got >= 10);
  CHECK_EQ(session_samples(), samples);
  CHECK_EQ(replaced(L), 1);
  if (put_back) { /* As a program that needs it for a while only. */
    REQUIRE(sigaction(CLOCK_SIGNAL, &ours, NULL) == 0);
    session_run(L, samples + 20);
  }
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(replaced(L), 1);
  REQUIRE(sigaction(CLOCK_SIGNAL, NULL, &now) == 0);
  if (put_back) {
    CHECK(now.sa_handler == SIG_DFL);
  } else {
    CHECK(now.sa_handler == handler);
    signal(CLOCK_SIGNAL, SIG_DFL);
  }
  if (mode != LUAM_SYSPROF_DEFAULT) {
    char *folded;
    samples = session_samples();
    CHECK_EQ(session_parse(sink.bytes, sink.len, "", &folded), 0);
    CHECK_EQ(folded_count(folded, ""), samples);
    free(folded);
  }
  sink_free(&sink);
}

/* As daemons do: no signal is handled. Ticks of the clock do nothing then. */
static void check_reset(lua_State *L, const char *clocks)
{
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  clock_t till;
  int signo;
  opt.clocks = clocks;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  session_run(L, 5);
  for (signo = 1; signo < 32; signo++) signal(signo, SIG_DFL);
  for (till = clock() + CLOCKS_PER_SEC / 2; clock() < till;) session_work(L);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(replaced(L), 1);
  sink_free(&sink);
}

static struct sigaction chained; /* What chaining() passes on to. */

static void chaining(int sig, siginfo_t *info, void *uc)
{
  got++;
  if (chained.sa_flags & SA_SIGINFO) chained.sa_sigaction(sig, info, uc);
}

/* Set over ours and left there, it stands below ours when the next profile starts:
** a signal of the program's own comes to it, to ours, and that is the end of it.
*/
static void check_chain(lua_State *L)
{
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_DEFAULT, 65536);
  struct sigaction sa;
  int i;
  memset(&sa, 0, sizeof(sa));
  sa.sa_sigaction = chaining;
  sa.sa_flags = SA_SIGINFO | SA_RESTART;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  REQUIRE(sigaction(CLOCK_SIGNAL, &sa, &chained) == 0);
  session_run(L, 20);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  opt.interval = 3600000; /* While a tick is pending, the kernel drops others. */
  opt.interval_ns = 0;
  opt.signo = CLOCK_SIGNAL;
  for (i = 0; i < 2; i++) {
    CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
    got = 0;
    raise(CLOCK_SIGNAL);
    raise(CLOCK_SIGNAL);
    CHECK_EQ(got, 2);
    CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  }
  signal(CLOCK_SIGNAL, SIG_DFL);
  sink_free(&sink);
}

int main(void)
{
  lua_State *L = session_vm();
  int mode;
  for (mode = LUAM_SYSPROF_DEFAULT; mode <= LUAM_SYSPROF_CALLGRAPH; mode++) {
    check(L, mode, 0);
    check(L, mode, 1);
  }
  check_chain(L);
  check_reset(L, "cpu");
  check_reset(L, "ctimer");
  check_reset(L, "wall-signal");
  check_reset(L, "wall,alloc");
  lua_close(L);
  return check_status();
}
