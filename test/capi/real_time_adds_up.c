/* TIMEOUT: 300
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

#include "cpu_work.h"
#include "forbid.h"
#include "session.h"

#define SECONDS 2
/* The source balances its sums up to 1 ms. It begins with a thread while the profile starts, and
** ends while it stops. The test allows one thing more: a thread that gets no processor between
** the reading of its CPU time and of the clock. A busy machine switches each 4 ms.
*/
#define SLACK_NS 10e6

static volatile int over;
static int blocks; /* Threads block all signals. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static double now_ns(void)
{
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

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

/* Sum of the folded stacks that contain a text. */
static double folded_sum(const char *folded, const char *what)
{
  double sum = 0;
  while (*folded) {
    const char *end = strchr(folded, '\n'), *hit = strstr(folded, what), *count;
    if (!end) end = folded + strlen(folded);
    for (count = end; count > folded && count[-1] != ' '; count--)
      ;
    if (hit && hit < end) sum += atof(count);
    folded = *end ? end + 1 : end;
  }
  return sum;
}

static void check_thread(const Sink *sink, const char *name, double least, double most)
{
  char option[64], *text;
  double sum, no_tick;
  snprintf(option, sizeof(option), "--format=folded --thread=%s", name);
  CHECK_EQ(session_parse(sink->bytes, sink->len, option, &text), 0);
  sum = folded_sum(text, "");
  if (sum < least - SLACK_NS || sum > most + SLACK_NS) {
    CHECK(!"the time of a thread is not real time");
    printf("%s: %.3f ms, expected %.3f to %.3f ms\n%s", name, sum / 1e6, least / 1e6,
	   most / 1e6, text);
  }
  no_tick = folded_sum(text, "[stack unknown: no tick came]");
  if (strcmp(name, "computes") == 0) {
    CHECK(folded_sum(text, "[waiting") < sum / 2);
    CHECK((folded_sum(text, "computes") > 0) == !blocks);
    CHECK(!blocks || no_tick > 0);
  } else if (strcmp(name, "waits") == 0) {
    CHECK(folded_sum(text, "[waiting: epoll_wait]") > sum / 5);
    CHECK(folded_sum(text, "[waiting: clock_nanosleep]") > sum / 4);
  } else if (strncmp(name, "locks", 5) == 0) {
    CHECK(folded_sum(text, "[waiting: futex]") > sum / 8);
  }
  free(text);
}

static int profile(int with_perf)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  pthread_t thread[NKINDS];
  size_t number[NKINDS], i;
  double t0, t1, t2, t3;
  if (!with_perf && !forbid_call(SYS_perf_event_open, SECCOMP_RET_ERRNO | EPERM)) return 77;
  opt.clocks = "wall";
  opt.interval_ns = 10000000;
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  REQUIRE(pthread_barrier_init(&begun, NULL, NKINDS + 1) == 0);
  for (i = 0; i < NKINDS; i++) {
    number[i] = i;
    REQUIRE(pthread_create(&thread[i], NULL, thread_of, &number[i]) == 0);
  }
  pthread_barrier_wait(&begun);
  t0 = now_ns();
  REQUIRE(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
  t1 = now_ns();
  sleep(SECONDS);
  t2 = now_ns();
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  t3 = now_ns();
  over = 1;
  for (i = 0; i < NKINDS; i++) pthread_join(thread[i], NULL);
  for (i = 0; i < NKINDS; i++) check_thread(&sink, kinds[i].name, t2 - t1, t3 - t0);
  sink_free(&sink);
  lua_close(L);
  return check_status();
}

static int in_child(const char *what, int with_perf, int with_blocks)
{
  int status = -1;
  pid_t pid = flush_and_fork();
  blocks = with_blocks;
  if (pid == 0) _exit(profile(with_perf));
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK(WIFEXITED(status));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) printf("%s: no filter\n", what);
  else if (status) printf("%s: failed\n", what);
  return status != 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 77);
}

int main(void)
{
  int failed = in_child("with perf", 1, 0);
  failed |= in_child("signals are blocked", 1, 1);
  failed |= in_child("without perf", 0, 0);
  return failed;
}
