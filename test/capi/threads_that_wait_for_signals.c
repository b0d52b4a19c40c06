/* TIMEOUT: 600
** BASE: none, files, sockets, signals, processes; the VM runs a loop, or none
** Threads that block all signals, and take them by sigwait() or signalfd(). They get no
** signal of a profile of all threads, and the report counts them. A thread that unblocks
** the signals has samples from then on. A thread that blocks them has no more samples,
** and is counted.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>
#include <sys/signalfd.h>

#include "cpu_work.h"

#define THREADS 3

static _Atomic int waits, ready, unblock, blocks_again;
static _Atomic int got[2]; /* Signals, by sigwait and signalfd. */

static void block_all(int how)
{
  sigset_t all;
  sigfillset(&all);
  REQUIRE(pthread_sigmask(how, &all, NULL) == 0);
}

static void *in_sigwait(void *arg)
{
  sigset_t all;
  int signo = 0;
  (void)arg;
  sigfillset(&all);
  block_all(SIG_BLOCK);
  for (waits++; signo != SIGTERM;)
    if (sigwait(&all, &signo) == 0 && signo != SIGTERM) got[0]++;
  return NULL;
}

static void *in_signalfd(void *arg)
{
  struct signalfd_siginfo info;
  sigset_t all;
  int fd;
  (void)arg;
  sigfillset(&all);
  block_all(SIG_BLOCK);
  fd = signalfd(-1, &all, SFD_CLOEXEC);
  REQUIRE(fd >= 0);
  info.ssi_signo = 0;
  for (waits++; info.ssi_signo != SIGTERM;)
    if (read(fd, &info, sizeof(info)) == sizeof(info) && info.ssi_signo != SIGTERM)
      got[1]++;
  close(fd);
  return NULL;
}

/* Blocks the signals, lets them through, and blocks them again. */
static void *changes_its_mind(void *arg)
{
  (void)arg;
  block_all(SIG_BLOCK);
  waits++;
  while (!unblock) cpu_burn(1000);
  block_all(SIG_UNBLOCK);
  while (!blocks_again) cpu_burn(1000);
  block_all(SIG_BLOCK);
  while (!ready) cpu_burn(1000);
  return NULL;
}

static uint32_t unsampled(lua_State *L)
{
  struct luam_Sysprof_SelfReport r;
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  return r.unsampled;
}

/* The counters of all sessions have the samples of the threads without a VM as C code. */
static uint64_t samples_in_c(void)
{
  struct luam_Sysprof_Counters c;
  CHECK_EQ(luaM_sysprof_report(&c), PROFILE_SUCCESS);
  return c.vmst_cfunc;
}

/* Work until the threads without a VM have more samples. Returns 0 after minutes. */
static int more_in_c(lua_State *L, uint64_t n)
{
  time_t deadline = time(NULL) + 200;
  uint64_t end = samples_in_c() + n;
  while (samples_in_c() < end && time(NULL) < deadline) session_work(L);
  return samples_in_c() >= end;
}

static void check(lua_State *L, const char *clocks)
{
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  pthread_t t[THREADS];
  int i;
  waits = unblock = blocks_again = ready = got[0] = got[1] = 0;
  t[0] = cpu_thread(in_sigwait, NULL);
  t[1] = cpu_thread(in_signalfd, NULL);
  t[2] = cpu_thread(changes_its_mind, NULL);
  while (waits < THREADS) cpu_sleep_us(1000);
  opt.clocks = clocks;
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  if (luaM_sysprof_start(L, &opt) != PROFILE_SUCCESS) {
    printf("%s is left out: %s\n", clocks, luaM_sysprof_error());
  } else {
    session_run(L, 100);
    CHECK_EQ(unsampled(L), THREADS);
    unblock = 1;
    CHECK(more_in_c(L, 100));
    blocks_again = 1;
    session_run(L, session_samples() + 300);
    CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
    CHECK_EQ(unsampled(L), THREADS);
  }
  ready = unblock = blocks_again = 1;
  for (i = 0; i < 2; i++) REQUIRE(pthread_kill(t[i], SIGTERM) == 0);
  for (i = 0; i < THREADS; i++) REQUIRE(pthread_join(t[i], NULL) == 0);
  CHECK_EQ(got[0], 0);
  CHECK_EQ(got[1], 0);
  sink_free(&sink);
}

int main(void)
{
  lua_State *L = session_vm();
  check(L, "wall-signal");
  check(L, "cpu");
  check(L, "task-clock,page-faults:u");
  lua_close(L);
  return check_status();
}
