/*
** Threads are cancelled while they start and stop profiles. The lock of the profiler stays
** free: other threads start and stop profiles, and the program exits.
*/

#include "cpu_work.h"

#define ROUNDS   60
#define DEADLINE 240 /* Seconds. A lock that a dead thread holds ends the test. */

/* By the C API: the VM's own calls may not be cancelled. */
static void *start_and_stop(void *arg)
{
  lua_State *L = (lua_State *)arg;
  struct luam_Sysprof_Options opt;
  char path[40];
  snprintf(path, sizeof(path), "%p.bin", arg);
  memset(&opt, 0, sizeof(opt));
  opt.mode = LUAM_SYSPROF_CALLGRAPH;
  opt.interval_ns = 1000000;
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  opt.flush = LUAM_SYSPROF_FLUSH_THREAD;
  for (;;) {
    luaM_sysprof_start_path(L, &opt, path);
    luaM_sysprof_stop(L);
  }
  return NULL;
}

int main(void)
{
  static Sink sink;
  lua_State *L = session_vm();
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH,
						    64 * 1024);
  unsigned int i;
  alarm(DEADLINE);
  for (i = 0; i < ROUNDS; i++) {
    pthread_t thread;
    void *result;
    lua_State *other = session_vm(); /* A cancelled thread leaves it in no known state. */
    REQUIRE(pthread_create(&thread, NULL, start_and_stop, other) == 0);
    cpu_sleep_us(200 + i * 397 % 5000);
    CHECK_EQ(pthread_cancel(thread), 0);
    REQUIRE(pthread_join(thread, &result) == 0);
    CHECK(result == PTHREAD_CANCELED);
    CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
    session_work(L);
    CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
    if (check_failures) break;
  }
  sink_free(&sink);
  lua_close(L);
  return check_status();
}
