/* TIMEOUT: 600
** BASE: none, files, sockets, signals, processes; the VM runs a loop, or none
** Clocks on another signal than SIGPROF, which stays the program's. Two profiles use
** different signals; impossible signals are refused.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>

#include "session.h"

static volatile int profs;

static void on_prof(int sig)
{
  CHECK_EQ(sig, SIGPROF);
  profs++;
}

static int is_default(int sig)
{
  struct sigaction sa;
  REQUIRE(sigaction(sig, NULL, &sa) == 0);
  return sa.sa_handler == SIG_DFL;
}

static void check_signal(lua_State *L, int signo, const char *clock)
{
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  struct sigaction sa;
  uint64_t samples;
  char *folded;
  int before = profs;
  opt.signo = signo;
  opt.clocks = clock;
  CHECK(is_default(signo));
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  CHECK(!is_default(signo));
  REQUIRE(sigaction(SIGPROF, NULL, &sa) == 0);
  CHECK(sa.sa_handler == on_prof);
  session_run(L, 20);
  raise(SIGPROF);
  CHECK_EQ(profs, before + 1);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK(is_default(signo));
  samples = session_samples();
  CHECK_EQ(session_parse(sink.bytes, sink.len, "", &folded), 0);
  CHECK_EQ(folded_count(folded, ""), samples);
  free(folded);
  sink_free(&sink);
}

/* Each stops for itself. */
static void check_two(lua_State *A)
{
  lua_State *B = session_vm();
  Sink sinkA, sinkB;
  struct luam_Sysprof_Options a = session_options(&sinkA, LUAM_SYSPROF_CALLGRAPH, 65536);
  struct luam_Sysprof_Options b = session_options(&sinkB, LUAM_SYSPROF_CALLGRAPH, 65536);
  a.signo = SIGUSR2;
  b.signo = SIGRTMIN + 3;
  CHECK_EQ(luaM_sysprof_start(A, &a), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_start(B, &b), PROFILE_SUCCESS);
  session_run(B, 20); /* The latest is B's. */
  CHECK_EQ(luaM_sysprof_stop(A), PROFILE_SUCCESS);
  CHECK(is_default(SIGUSR2) && !is_default(SIGRTMIN + 3));
  session_run(B, session_samples() + 20);
  CHECK_EQ(luaM_sysprof_start(A, &a), PROFILE_SUCCESS);
  session_run(A, 20);
  CHECK_EQ(luaM_sysprof_stop(B), PROFILE_SUCCESS);
  CHECK(!is_default(SIGUSR2) && is_default(SIGRTMIN + 3));
  session_run(A, session_samples() + 20);
  CHECK_EQ(luaM_sysprof_stop(A), PROFILE_SUCCESS);
  CHECK(is_default(SIGUSR2));
  lua_close(B);
  sink_free(&sinkA);
  sink_free(&sinkB);
}

#ifdef __SANITIZE_ADDRESS__
/* It leaves the signals that it would report to the test. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
  return "handle_segv=0:handle_sigbus=0:handle_sigfpe=0";
}
#endif

/* Signals that end or stop a program by default, or that report a fault. */
static void check_impossible(lua_State *L)
{
  static const int bad[] = { -1,      65,     1000,    SIGKILL, SIGSTOP, SIGSEGV,
			     SIGBUS,  SIGFPE, SIGILL,  SIGTRAP, SIGABRT, SIGSYS,
			     SIGTERM, SIGINT, SIGCHLD, SIGPIPE, SIGCONT };
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_DEFAULT, 65536);
  size_t i;
  for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    opt.signo = bad[i];
    CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_ERRUSE);
    CHECK(strstr(luaM_sysprof_error(), "signal") != NULL);
    CHECK(bad[i] < 1 || bad[i] > 64 || is_default(bad[i]));
  }
  sink_free(&sink);
}

int main(void)
{
  lua_State *L = session_vm();
  struct sigaction sa;
  const int signals[] = { SIGUSR2, SIGALRM, SIGVTALRM, SIGRTMIN, SIGRTMIN + 3, SIGRTMAX };
  size_t i;
  memset(&sa, 0, sizeof(sa));
  sa.sa_handler = on_prof;
  sa.sa_flags = SA_RESTART;
  REQUIRE(sigaction(SIGPROF, &sa, NULL) == 0);
  for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
    check_signal(L, signals[i], "cpu");
    check_signal(L, signals[i], "wall-signal");
  }
  check_two(L);
  check_impossible(L);
  lua_close(L);
  return check_status();
}
