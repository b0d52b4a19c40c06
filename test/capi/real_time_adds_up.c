/* TIMEOUT: 300
** BASE: none, times that the kernel counts; the VM runs a loop, or none
** Clock wall: the samples of each thread add up to the real time of the profile, whatever the
** thread does. The same where perf_event_open is refused, and where the threads block all
** signals. Then no tick comes, but the CPU time is there, without a stack.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "forbid.h"
#include "wait_checks.h"

#define SECONDS 2
/* The source balances its sums up to 1 ms. It reads the CPU time of a thread, then the clock; on a
** busy machine another thread may run in between, for a slice of 4 ms. So may one in the first look.
** Together 9 ms.
*/
#define SLACK_NS 10e6

static volatile int over;
static int blocks; /* Threads block all signals. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* The program of the on/off-CPU document. */
static void waits(void)
{
  struct epoll_event ev;
  int fd = epoll_create1(EPOLL_CLOEXEC);
  epoll_wait(fd, &ev, 1, 20);
  close(fd);
  usleep(30000);
}

static void computes(void)
{
  cpu_burn(5000);
}

static void mixes(void)
{
  cpu_burn(5000);
  usleep(5000);
}

/* Thousands of switches a second. */
static void naps(void)
{
  usleep(50);
}

static void locks(void)
{
  pthread_mutex_lock(&mutex);
  usleep(20000);
  pthread_mutex_unlock(&mutex);
  usleep(100);
}

static const struct {
  const char *name;
  void (*work)(void);
} kinds[] = { { "waits", waits }, { "computes", computes }, { "mixes", mixes },
	      { "naps", naps },   { "locks-a", locks },     { "locks-b", locks } };
#define NKINDS (sizeof(kinds) / sizeof(kinds[0]))

static pthread_barrier_t begun;

static void *thread_of(void *arg)
{
  sigset_t all;
  sigfillset(&all);
  prctl(PR_SET_NAME, kinds[*(size_t *)arg].name);
  if (blocks) pthread_sigmask(SIG_BLOCK, &all, NULL);
  pthread_barrier_wait(&begun);
  while (!over) kinds[*(size_t *)arg].work();
  return NULL;
}

static void check_thread(const Sink *sink, const char *name, double least, double most)
{
  char option[64], *text;
  double sum, no_tick;
  snprintf(option, sizeof(option), "--format=folded --thread=%s", name);
  CHECK_EQ(session_parse(sink->bytes, sink->len, option, &text), 0);
  sum = folded_sum(text, "", "");
  if (sum < least - SLACK_NS || sum > most + SLACK_NS) {
    CHECK(!"the time of a thread is not real time");
    printf("%s: %.3f ms, expected %.3f to %.3f ms\n%s", name, sum / 1e6, least / 1e6,
	   most / 1e6, text);
  }
  no_tick = folded_sum(text, "[stack unknown: no tick came]", "");
  if (strcmp(name, "computes") == 0) {
    CHECK(folded_sum(text, "[waiting", "") < sum / 2);
    CHECK((folded_sum(text, "computes", "") > 0) == !blocks);
    CHECK(!blocks || no_tick > 0);
  } else if (strcmp(name, "waits") == 0) {
    CHECK(folded_sum(text, "[waiting: epoll_wait]", "") > sum / 5);
    CHECK(folded_sum(text, "[waiting: clock_nanosleep]", "") > sum / 4);
  } else if (strncmp(name, "locks", 5) == 0) {
    CHECK(folded_sum(text, "[waiting: futex]", "") > sum / 8);
  }
  free(text);
}

typedef struct Case {
  const char *what;
  int with_perf, blocks;
} Case;

static int profile(const void *arg)
{
  const Case *c = (const Case *)arg;
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  pthread_t thread[NKINDS];
  size_t number[NKINDS], i;
  double t0, t1, t2, t3;
  if (!c->with_perf && !forbid_call(SYS_perf_event_open, SECCOMP_RET_ERRNO | EPERM))
    return NO_FILTER;
  blocks = c->blocks;
  opt.clocks = "wall";
  opt.interval_ns = 10000000;
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  REQUIRE(pthread_barrier_init(&begun, NULL, NKINDS + 1) == 0);
  for (i = 0; i < NKINDS; i++) {
    number[i] = i;
    REQUIRE(pthread_create(&thread[i], NULL, thread_of, &number[i]) == 0);
  }
  pthread_barrier_wait(&begun);
  t0 = real_ns();
  REQUIRE(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
  t1 = real_ns();
  sleep(SECONDS);
  t2 = real_ns();
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  t3 = real_ns();
  over = 1;
  for (i = 0; i < NKINDS; i++) pthread_join(thread[i], NULL);
  for (i = 0; i < NKINDS; i++) check_thread(&sink, kinds[i].name, t2 - t1, t3 - t0);
  sink_free(&sink);
  lua_close(L);
  return check_status();
}

int main(void)
{
  static const Case cases[] = {
    { "with perf", 1, 0 },
    { "signals are blocked", 1, 1 },
    { "without perf", 0, 0 },
  };
  int failed = 0;
  size_t i;
  for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    failed |= child_fails(cases[i].what, profile, &cases[i]);
  return failed;
}
