/* TIMEOUT: 600
** More threads than timers of the kernel: the report counts the threads without a clock. The
** profiler maps no memory for each of them: eight failures in a row end the attempts of a scan.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "session.h"

#define CLOCKS   1024 /* Timers of all processes of the user at most. */
#define THREADS  (CLOCKS + 400)
#define FAILURES 8 /* In a row, then a scan tries no more. */

static volatile long maps; /* Mappings that are made on this thread. */
static pthread_t main_thread;
static pthread_mutex_t over = PTHREAD_MUTEX_INITIALIZER;

/* In the place of the C library's. */
void *mmap64(void *p, size_t len, int prot, int flags, int fd, off_t at)
{
  if (pthread_equal(pthread_self(), main_thread)) maps++;
  return (void *)syscall(SYS_mmap, p, len, prot, flags, fd, at);
}

static void *idle(void *arg)
{
  pthread_mutex_lock(&over);
  pthread_mutex_unlock(&over);
  return arg;
}

int main(void)
{
  static pthread_t thread[THREADS];
  struct luam_Sysprof_SelfReport r;
  struct rlimit limit;
  struct luam_Sysprof_Options opt;
  pthread_attr_t attr;
  lua_State *L = session_vm();
  Sink sink;
  int i, n;
  main_thread = pthread_self();
  opt = session_options(&sink, LUAM_SYSPROF_DEFAULT, 65536);
  opt.clocks = "ctimer"; /* Idle threads have no ticks. */
  opt.interval_ns = 10000000;
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, 65536);
  pthread_mutex_lock(&over);
  for (n = 0; n < THREADS; n++)
    if (pthread_create(&thread[n], &attr, idle, NULL) != 0) break;
  if (n < THREADS) {
    printf("skipped: only %d threads can be made\n", n);
    return 77;
  }
  REQUIRE(getrlimit(RLIMIT_SIGPENDING, &limit) == 0 && limit.rlim_cur >= CLOCKS);
  limit.rlim_cur = CLOCKS;
  REQUIRE(setrlimit(RLIMIT_SIGPENDING, &limit) == 0);
  maps = 0;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  CHECK(maps >= (long)r.sessions); /* They are counted. */
  /* One for each session, and few others. */
  CHECK(maps <= (long)r.sessions + FAILURES + 64);
  CHECK_EQ(r.sessions + r.unsampled, THREADS + 1);
  CHECK(r.sessions > 1 && r.sessions <= CLOCKS);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  pthread_mutex_unlock(&over);
  for (i = 0; i < n; i++) REQUIRE(pthread_join(thread[i], NULL) == 0);
  lua_close(L);
  sink_free(&sink);
  return check_status();
}
