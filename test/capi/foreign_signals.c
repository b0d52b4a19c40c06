/* TIMEOUT: 600
** The program's own SIGPROF handler, which by its choice shares the signal with the
** profiler. During the profile the handler gets all of the program's signals, and none of
** the profiler's. After the stop it is installed again.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>
#include <sys/time.h>

#include "session.h"

static volatile int got, got_info, ours;
static volatile void *got_value;

static void old_style(int sig)
{
  CHECK_EQ(sig, SIGPROF);
  got++;
}

static void new_style(int sig, siginfo_t *info, void *uc)
{
  CHECK_EQ(sig, SIGPROF);
  CHECK(uc != NULL);
  got_info++;
  got_value = info->si_value.sival_ptr;
  if (info->si_code == SI_TIMER) ours++;
}

static void install(int is_new)
{
  struct sigaction sa;
  memset(&sa, 0, sizeof(sa));
  sa.sa_flags = SA_RESTART | (is_new ? SA_SIGINFO : 0);
  if (is_new) sa.sa_sigaction = new_style;
  else sa.sa_handler = old_style;
  REQUIRE(sigaction(SIGPROF, &sa, NULL) == 0);
  got = got_info = ours = 0;
}

static void send_some(void)
{
  union sigval v;
  v.sival_ptr = (void *)&got_value;
  raise(SIGPROF);
  kill(getpid(), SIGPROF);
  sigqueue(getpid(), SIGPROF, v);
}

int main(void)
{
  static const struct itimerval off;
  struct itimerval tick = { { 0, 4000 }, { 0, 4000 } };
  struct sigaction sa;
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_DEFAULT, 65536);
  int i;

  opt.signo = SIGPROF; /* Without that the clocks avoid the program's signal. */
  install(0);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  session_run(L, 20);
  CHECK_EQ(got, 0); /* The profiler's are its own. */
  send_some();
  i = got; /* The kernel drops raise()'s signal while a tick is pending. */
  CHECK(i == 2 || i == 3);
  session_run(L, 40);
  CHECK_EQ(got, i);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  REQUIRE(sigaction(SIGPROF, NULL, &sa) == 0);
  CHECK(sa.sa_handler == old_style && !(sa.sa_flags & SA_SIGINFO));
  raise(SIGPROF);
  CHECK_EQ(got, i + 1);

  /* With an interval of hours, no tick comes in between. */
  for (i = 0; i < 2; i++) {
    install(i);
    opt.interval_ns = (uint64_t)3600 * 1000000000u;
    CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
    send_some();
    CHECK_EQ(i ? got_info : got, 3);
    if (i) CHECK(got_value == (void *)&got_value); /* With all that came along. */
    CHECK(session_samples() <= 1);                 /* They take no samples. */
    CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  }
  opt.interval_ns = 1000000;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  REQUIRE(setitimer(ITIMER_PROF, &tick, NULL) == 0);
  for (i = 0; i < 1000 && got_info < 10; i++) session_run(L, session_samples() + 10);
  REQUIRE(setitimer(ITIMER_PROF, &off, NULL) == 0);
  CHECK(got_info >= 10);
  CHECK_EQ(ours, 0);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  REQUIRE(sigaction(SIGPROF, NULL, &sa) == 0);
  CHECK(sa.sa_sigaction == new_style && (sa.sa_flags & SA_SIGINFO));

  /* Without a handler of its own, a foreign signal does not end the program
  ** while it is profiled; ignored before, ignored after.
  */
  signal(SIGPROF, SIG_DFL);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  raise(SIGPROF);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  REQUIRE(sigaction(SIGPROF, NULL, &sa) == 0);
  CHECK(sa.sa_handler == SIG_DFL);
  signal(SIGPROF, SIG_IGN);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  send_some();
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  raise(SIGPROF);

  /* A handler that the program set during the profile stays. */
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  install(1);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  REQUIRE(sigaction(SIGPROF, NULL, &sa) == 0);
  CHECK(sa.sa_sigaction == new_style);
  lua_close(L);
  return check_status();
}
