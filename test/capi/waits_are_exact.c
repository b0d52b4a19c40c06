/* TIMEOUT: 300
** BASE: none, times that the kernel counts; the VM runs a loop, or none
** WAITS: most of its time
** The program of the on/off-CPU document: each thread waits 20 ms in epoll_wait, then 30 ms in
** usleep, and the event offcpu shows 40:60, as the program's own clock does. No wait ends early. The
** same where perf_event_open is refused or kills, but each wait is as exact as a look. Without
** process_vm_readv the time is right, and no stack is there.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include "forbid.h"
#include "wait_checks.h"

#define ROUNDS    40
#define EPOLL_MS  20
#define USLEEP_US 30000
#define EXACT     0.01 /* Part of a time that may be missing, with records. */
/* Without records, each end of a wait is in the middle of two looks. They are some 3 ms apart, and
** 20 ms if the background thread is at its limit on a slow machine. The error of one end has a
** standard deviation of 20 / sqrt(12) ms. 80 ends of one kind have 52 ms together, and the test
** allows three times that in 800 ms.
*/
#define BY_LOOKS 0.2

/* What a thread has measured. In nanoseconds. */
typedef struct Truth {
  double epoll, usleep;
  int early; /* Waits that ended too early. */
} Truth;

static int epoll_fd;

/* Their frames hang on the frame pointer, as without optimisation. Nobody knows that register of
** a thread that sleeps.
*/
#ifdef __clang__
#define FRAMED __attribute__((noinline))
#else
#define FRAMED __attribute__((noinline, optimize("no-omit-frame-pointer")))
#endif

FRAMED static int wait_epoll(void)
{
  struct epoll_event ev;
  return epoll_wait(epoll_fd, &ev, 1, EPOLL_MS);
}

FRAMED static int wait_usleep(void)
{
  return usleep(USLEEP_US);
}

static void wait_once(Truth *t)
{
  double t0 = real_ns(), t1, t2;
  t->early += (wait_epoll() != 0);
  t1 = real_ns();
  t->early += (wait_usleep() != 0);
  t2 = real_ns();
  t->epoll += t1 - t0;
  t->usleep += t2 - t1;
}

static pthread_barrier_t begun; /* The profile has. */

static void *other_thread(void *arg)
{
  int i;
  pthread_barrier_wait(&begun);
  for (i = 0; i < ROUNDS; i++) wait_once((Truth *)arg);
  return NULL;
}

static Truth of_vm;

static int lua_waits(lua_State *L)
{
  wait_once(&of_vm);
  lua_pushboolean(L, 1);
  return 1;
}

/* elsewhere: time in other stacks that may be part of it. */
static void check_near(const char *what, double got, double elsewhere, double expected,
		       double part)
{
  if (got + elsewhere >= expected * (1 - part) && got <= expected * (1 + part)) return;
  CHECK(!"the profile has another time than the program");
  printf("%s: %.3f ms, the program measured %.3f ms\n", what, got / 1e6, expected / 1e6);
}

/* On a busy machine the background thread may see a wait too late, and a thread that has been woken
** up may get no processor.
*/
static void check_thread(const char *folded, const char *caller, const Truth *t,
			 double part)
{
  double elsewhere = folded_sum(folded, "[stack unknown", "") +
		     folded_sum(folded, "[runnable]", "");
  double epoll = folded_sum(folded, caller, "[waiting: epoll_wait]");
  double sleep = folded_sum(folded, caller, "[waiting: clock_nanosleep]");
  CHECK_EQ(t->early, 0);
  check_near(caller, epoll, elsewhere, t->epoll, part);
  check_near(caller, sleep, elsewhere, t->usleep, part);
  CHECK(epoll > t->epoll / 2 && sleep > t->usleep / 2);
}

/* A system call that is answered in place of the kernel; 0: none. */
typedef struct Case {
  const char *what;
  uint32_t nr, answer;
} Case;

static int profile(const void *arg)
{
  const Case *c = (const Case *)arg;
  uint32_t nr = c->nr;
  lua_State *L = session_vm();
  Truth of_other = { 0, 0, 0 };
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  struct luam_Sysprof_SelfReport r;
  pthread_t thread;
  char *text;
  double all, join;
  int with_stacks = (nr != SYS_process_vm_readv), by_records = (nr != SYS_perf_event_open);
  if (nr && !forbid_call(nr, c->answer)) return NO_FILTER;
  epoll_fd = epoll_create1(0);
  lua_register(L, "waits", lua_waits);
  session_script(L, "function nap() local ok = waits() return ok end\n"
		    "function naps(n) for i = 1, n do nap() end end");
  opt.clocks = "offcpu";
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  REQUIRE(pthread_barrier_init(&begun, NULL, 2) == 0);
  REQUIRE(pthread_create(&thread, NULL, other_thread, &of_other) == 0);
  REQUIRE(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
  pthread_barrier_wait(&begun);
  lua_getglobal(L, "naps");
  lua_pushinteger(L, ROUNDS);
  CHECK_EQ(lua_pcall(L, 1, 0, 0), 0);
  join = real_ns();
  pthread_join(thread, NULL);
  join = real_ns() - join; /* On a busy machine, a wait as long as a round. */
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "--format=folded", &text), 0);
  all = of_vm.epoll + of_vm.usleep + of_other.epoll + of_other.usleep + join;
  check_near("all", folded_sum(text, "", ""), 0, all, EXACT);
  if (with_stacks) {
    double part = by_records ? EXACT : BY_LOOKS;
    check_thread(text, "nap (work.lua:1)", &of_vm, part);
    check_thread(text, "other_thread", &of_other, part);
  } else {
    CHECK(folded_sum(text, "[waiting", "") == 0);
    CHECK(folded_sum(text, "[stack unknown: hidden by the kernel]", "") > all / 2);
  }
  if (check_failures) puts(text);
  free(text);
  sink_free(&sink);
  lua_close(L);
  return check_status();
}

int main(void)
{
  static const Case cases[] = {
    { "with records", 0, 0 },
    { "without perf", SYS_perf_event_open, SECCOMP_RET_ERRNO | EPERM },
    { "perf kills", SYS_perf_event_open, SECCOMP_RET_KILL_PROCESS },
    { "without copies", SYS_process_vm_readv, SECCOMP_RET_ERRNO | EPERM },
  };
  int failed = 0;
  size_t i;
  for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    failed |= child_fails(cases[i].what, profile, &cases[i]);
  return failed;
}
