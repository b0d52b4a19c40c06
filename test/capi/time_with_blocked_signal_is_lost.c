/* TIMEOUT: 300
** BASE: none, times that the kernel counts; the VM runs a loop, or none
** Code that blocks the signal gets no tick. Its CPU time is `[lost samples]` when it unblocks the signal,
** or when only a system call lets the signal through. The background thread may look at the thread
** meanwhile: then the time is `[stack unknown: no tick came]`. In no case has it the code that runs later.
** A fork, during which the profiler itself blocks the signal, keeps its time.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <poll.h>
#include <signal.h>

#include "cpu_work.h"

#define PART_US     300000 /* CPU time with the signal blocked, and without. */
#define INTERVAL_NS 5000000
#define FORK_US     60000 /* CPU time of a fork. */
#define FORKS       5

static char *folded;

static uint64_t of(const char *text)
{
  return folded_count(folded, text);
}

static int start(lua_State *L, Sink *sink, const char *clock, uint64_t interval_ns,
		 int threads)
{
  struct luam_Sysprof_Options opt = session_options(sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  opt.clocks = clock;
  opt.interval_ns = interval_ns;
  opt.threads = (uint8_t)threads;
  if (luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS) return 1;
  printf("%s is left out: %s\n", clock, luaM_sysprof_error());
  sink_free(sink);
  return 0;
}

static void stop(lua_State *L, Sink *sink)
{
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(session_parse(sink->bytes, sink->len, "--weight=event", &folded), 0);
  sink_free(sink);
}

/* Lua code runs with the signal blocked. How it lets it through: */
typedef enum Through { UNBLOCKS, SETS_MASK, POLLS, THROUGH__MAX } Through;

static void check(lua_State *L, const char *clock, int threads, Through through)
{
  static const struct timespec now = { 0, 0 };
  sigset_t all, before;
  uint64_t sum, unknown;
  Sink sink;
  int i;
  sigfillset(&all);
  if (!start(L, &sink, clock, INTERVAL_NS, threads)) return;
  REQUIRE(pthread_sigmask(SIG_BLOCK, &all, &before) == 0);
  for (i = 0; i < (through == POLLS ? 20 : 1); i++) {
    cpu_run_lua(L, through == POLLS ? PART_US / 20 : PART_US);
    if (through == POLLS) ppoll(NULL, 0, &now, &before);
  }
  if (through == UNBLOCKS) REQUIRE(pthread_sigmask(SIG_UNBLOCK, &all, NULL) == 0);
  else REQUIRE(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
  cpu_burn(PART_US);
  stop(L, &sink);
  sum = of("");
  unknown = of("[lost samples]") + of("[stack unknown: no tick came]");
  printf("%s, %s, way %d: %.1f %% unknown, %.1f %% not blocked\n", clock,
	 threads ? "all threads" : "own thread", (int)through,
	 100.0 * (double)unknown / (double)sum,
	 100.0 * (double)of("cpu_burn") / (double)sum);
  CHECK(of("cpu_burn") < sum * 3 / 5);
  CHECK(of("work.lua") < sum / 10);
  if (threads == LUAM_SYSPROF_THREADS_OWN) {
    CHECK(unknown > sum * 2 / 5 && unknown < sum * 3 / 5);
    CHECK(of("cpu_burn") > sum * 2 / 5);
  } else {
    CHECK(unknown > sum * 2 / 5); /* Looks come late on a busy machine. */
  }
  free(folded);
}

static int burns; /* In a fork. */

/* The profiler has blocked the signal before: its handler was registered later. */
static void before_fork(void)
{
  if (burns) cpu_burn(FORK_US);
}

static void check_fork(lua_State *L)
{
  Sink sink;
  int i;
  if (!start(L, &sink, "cpu", INTERVAL_NS, LUAM_SYSPROF_THREADS_OWN)) return;
  burns = 1;
  for (i = 0; i < FORKS; i++) {
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) _exit(0);
    REQUIRE(waitpid(pid, NULL, 0) == pid);
  }
  burns = 0;
  stop(L, &sink);
  printf("fork: %llu of %llu us\n", (unsigned long long)of("fork"),
	 (unsigned long long)of(""));
  CHECK(of("fork") > FORKS * FORK_US / 2);
  CHECK_EQ(of("[lost samples]"), 0);
  free(folded);
}

int main(void)
{
  static const char *const clocks[] = { "cpu", "ctimer", "task-clock" };
  lua_State *L;
  size_t i;
  int through;
  REQUIRE(pthread_atfork(before_fork, NULL, NULL) == 0);
  L = session_vm();
  for (i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++)
    for (through = 0; through < THROUGH__MAX; through++)
      check(L, clocks[i], LUAM_SYSPROF_THREADS_OWN, (Through)through);
  check(L, "cpu", LUAM_SYSPROF_THREADS_ALL, UNBLOCKS);
  check_fork(L);
  lua_close(L);
  return check_status();
}
