/* TIMEOUT: 600
** Threads for which the system has no timer have no samples. The report and the stream
** count them. When timers are available again, these threads have samples.
*/

#include <pthread.h>
#include <sys/resource.h>

#include "session.h"
#include "stream_sums.h"

#define THREADS        2
#define SUMS_UNSAMPLED 30

static _Atomic int over;

static void *host_thread(void *arg)
{
  while (!over) usleep(1000);
  return arg;
}

static struct luam_Sysprof_SelfReport report_of(lua_State *L)
{
  struct luam_Sysprof_SelfReport r;
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  return r;
}

/* No timer is made from now on, or as many as before. */
static void timers_allowed(int allowed)
{
  static struct rlimit old;
  struct rlimit limit;
  if (!allowed) REQUIRE(getrlimit(RLIMIT_SIGPENDING, &old) == 0);
  limit = old;
  if (!allowed) limit.rlim_cur = 0;
  REQUIRE(setrlimit(RLIMIT_SIGPENDING, &limit) == 0);
}

int main(void)
{
  static StreamSums sums;
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  pthread_t threads[THREADS];
  lua_State *L = session_vm();
  time_t deadline = time(NULL) + 200;
  uint64_t counted = 0;
  int i;
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  CHECK_EQ(report_of(L).unsampled, 0);
  timers_allowed(0);
  for (i = 0; i < THREADS; i++)
    REQUIRE(pthread_create(&threads[i], NULL, host_thread, NULL) == 0);
  while (report_of(L).unsampled < THREADS && time(NULL) < deadline) session_work(L);
  CHECK_EQ(report_of(L).unsampled, THREADS);
  CHECK_EQ(report_of(L).sessions, 1);
  timers_allowed(1);
  while (report_of(L).sessions < THREADS + 1 && time(NULL) < deadline) session_work(L);
  over = 1;
  for (i = 0; i < THREADS; i++) REQUIRE(pthread_join(threads[i], NULL) == 0);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(report_of(L).unsampled, THREADS);
  CHECK_EQ(report_of(L).sessions, THREADS + 1);
  sums_read(&sums, sink.bytes, sink.len);
  CHECK(sums.fault == NULL);
  for (i = 0; i < sums.n; i++) counted += sums.s[i].counter[SUMS_UNSAMPLED];
  CHECK_EQ(counted, THREADS);
  sink_free(&sink);
  lua_close(L);
  return check_status();
}
