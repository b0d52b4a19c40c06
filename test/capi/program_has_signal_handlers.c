/* TIMEOUT: 600
** A program with handlers for the signals that clocks use. A clock takes a signal without
** a handler, and the program's actions keep their masks and flags. If the program
** requests a signal that it handles, the report says so. Our handler then calls the
** program's like the kernel: with the action's mask, SA_NODEFER and SA_RESETHAND.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>

#include "cpu_work.h"

static const int choices[] = { SIGURG, SIGPROF, SIGVTALRM, SIGSTKFLT };
#define NCHOICES ((int)(sizeof(choices) / sizeof(choices[0])))

static volatile int got, usr1, usr1_inside, depth, deepest, again;

static void handler(int signo)
{
  got++;
  if (++depth > deepest) deepest = depth;
  raise(SIGUSR1);
  if (again-- > 0) raise(signo);
  depth--;
}

static void on_usr1(int signo)
{
  (void)signo;
  usr1++;
  if (depth > 0) usr1_inside++;
}

static struct sigaction action_of(int signo)
{
  struct sigaction sa;
  memset(&sa, 0, sizeof(sa));
  REQUIRE(sigaction(signo, NULL, &sa) == 0);
  return sa;
}

static void set_action(int signo, int flags, int with_mask)
{
  struct sigaction sa;
  memset(&sa, 0, sizeof(sa));
  sa.sa_handler = handler;
  sa.sa_flags = flags;
  if (with_mask) sigaddset(&sa.sa_mask, SIGUSR1);
  REQUIRE(sigaction(signo, &sa, NULL) == 0);
}

static int is_same(const struct sigaction *a, const struct sigaction *b)
{
  return a->sa_handler == b->sa_handler && a->sa_flags == b->sa_flags &&
	 memcmp(&a->sa_mask, &b->sa_mask, 8) == 0;
}

static struct luam_Sysprof_SelfReport report_of(lua_State *L)
{
  struct luam_Sysprof_SelfReport r;
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  return r;
}

static struct luam_Sysprof_Options options(const char *clocks)
{
  struct luam_Sysprof_Options opt;
  memset(&opt, 0, sizeof(opt));
  opt.interval_ns = 4000000;
  opt.clocks = clocks;
  return opt;
}

static const char *name_of(int signo, char *name)
{
  snprintf(name, 16, "SIG%s", sigabbrev_np(signo));
  return name;
}

/* The clock takes the first signal that is free. taken: bits of those that are not. */
static void check_choice(lua_State *L, const char *clocks, unsigned taken)
{
  struct luam_Sysprof_Options opt = options(clocks);
  struct sigaction before[NCHOICES], now;
  int i, first = -1, status;
  char name[16];
  for (i = 0; i < NCHOICES; i++) {
    if (taken & (1u << i)) set_action(choices[i], i & 1 ? SA_RESETHAND : SA_NODEFER, 1);
    else signal(choices[i], SIG_DFL);
    before[i] = action_of(choices[i]);
    if (first < 0 && !(taken & (1u << i))) first = i;
  }
  status = luaM_sysprof_start(L, &opt);
  if (first < 0) {
    CHECK_EQ(status, PROFILE_ERRIO);
    CHECK_EQ(errno, EBUSY);
    CHECK(strstr(luaM_sysprof_error(), "SIGSTKFLT") != NULL);
    return;
  }
  if (status != PROFILE_SUCCESS) {
    printf("%s is left out: %s\n", clocks, luaM_sysprof_error());
    return;
  }
  session_run(L, 3);
  CHECK(strcmp(report_of(L).signal, name_of(choices[first], name)) == 0);
  CHECK_EQ(report_of(L).shared, 0);
  for (i = 0; i < NCHOICES; i++) {
    now = action_of(choices[i]);
    CHECK_EQ(is_same(&now, &before[i]), i != first);
  }
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  for (i = 0; i < NCHOICES; i++) {
    now = action_of(choices[i]);
    CHECK(is_same(&now, &before[i]));
  }
}

/* The timer of the process has one signal. */
static void check_itimer(lua_State *L)
{
  struct luam_Sysprof_Options opt = options("itimer");
  set_action(SIGPROF, 0, 0);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_ERRIO);
  CHECK(strstr(luaM_sysprof_error(), "SIGPROF") != NULL);
  signal(SIGPROF, SIG_DFL);
}

/* Signals that the handler gets, with and without the profiler, give the same counts. */
static void shared(lua_State *L, int flags, int with_mask, int profiled, int counts[4])
{
  struct luam_Sysprof_Options opt = options("wall-signal");
  struct sigaction now;
  opt.signo = SIGVTALRM;
  opt.interval_ns = (uint64_t)3600 * 1000000000u;
  set_action(SIGVTALRM, flags, with_mask);
  if (profiled) {
    CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
    CHECK_EQ(report_of(L).shared, 1);
    CHECK(strcmp(report_of(L).signal, "SIGVTALRM") == 0);
  }
  got = usr1 = usr1_inside = depth = deepest = 0;
  again = flags & (int)SA_RESETHAND ? 0 : 2; /* The next one would end the program. */
  raise(SIGVTALRM);
  if (profiled) CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  now = action_of(SIGVTALRM);
  CHECK(now.sa_handler == (flags & (int)SA_RESETHAND ? SIG_DFL : handler));
  counts[0] = got;
  counts[1] = usr1;
  counts[2] = usr1_inside;
  counts[3] = deepest;
  signal(SIGVTALRM, SIG_DFL);
}

static void check_shared(lua_State *L)
{
  static const int flags[] = { 0, SA_NODEFER, (int)SA_RESETHAND, SA_RESTART,
			       SA_NODEFER | (int)SA_RESETHAND };
  int with[4], without[4], i, mask, k;
  for (i = 0; i < (int)(sizeof(flags) / sizeof(flags[0])); i++)
    for (mask = 0; mask < 2; mask++) {
      shared(L, flags[i], mask, 0, without);
      shared(L, flags[i], mask, 1, with);
      for (k = 0; k < 4; k++) CHECK_EQ(with[k], without[k]);
    }
}

/* jit.profile takes another signal, too. */
static void check_jit_profile(lua_State *L)
{
  struct sigaction before, now;
  set_action(SIGURG, 0, 1);
  before = action_of(SIGURG);
  session_script(
    L, "jit.off()\n"
       "for i = 1, 2 do\n"
       "  local ticks, t = 0, os.clock()\n"
       "  require('jit.profile').start('i4', function(_, n) ticks = ticks + n end)\n"
       "  while ticks < 3 and os.clock() - t < 30 do end\n"
       "  assert(ticks >= 3)\n"
       "  require('jit.profile').stop()\n"
       "end");
  now = action_of(SIGURG);
  CHECK(is_same(&now, &before));
  CHECK_EQ(got, 0);
}

int main(void)
{
  lua_State *L = session_vm();
  unsigned taken;
  signal(SIGUSR1, on_usr1);
  for (taken = 0; taken < 1u << NCHOICES; taken++) {
    check_choice(L, "wall-signal", taken);
    check_choice(L, "ctimer", taken);
    check_choice(L, "task-clock", taken);
  }
  for (taken = 0; taken < (unsigned)NCHOICES; taken++) signal(choices[taken], SIG_DFL);
  check_itimer(L);
  check_shared(L);
  got = 0;
  check_jit_profile(L);
  lua_close(L);
  return check_status();
}
