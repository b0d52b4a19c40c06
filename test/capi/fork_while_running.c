/* fork() during a profile: the parent's stream stays complete. The child writes nothing
** into it, keeps its own timers, and can start a profile.
*/

#include <signal.h>

#include "session.h"

static Sink sink;

static int child_exits(lua_State *L)
{
  (void)L;
  return 0;
}

static int child_closes(lua_State *L)
{
  session_work(L);
  CHECK_EQ(sink.stops, 0);
  lua_close(L);
  CHECK_EQ(sink.stops, 1); /* What on_stop frees is the child's too. */
  CHECK_EQ(sink.writes, 0);
  return 0;
}

static int child_stops(lua_State *L)
{
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_ERRRUN); /* It is not profiled. */
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_ERRRUN);
  CHECK_EQ(sink.writes, 0);
  return 0;
}

/* The kernel gives the child's first timer the number of the parent's. */
static int child_has_timers(lua_State *L)
{
  struct itimerspec its;
  struct sigevent ev;
  timer_t timer[4];
  int i;
  memset(&ev, 0, sizeof(ev));
  ev.sigev_notify = SIGEV_NONE;
  for (i = 0; i < 4; i++) REQUIRE(timer_create(CLOCK_MONOTONIC, &ev, &timer[i]) == 0);
  lua_close(L);
  for (i = 0; i < 4; i++) CHECK_EQ(timer_gettime(timer[i], &its), 0);
  return 0;
}

static int child_profiles(lua_State *L)
{
  Sink own;
  struct luam_Sysprof_Options opt = session_options(&own, LUAM_SYSPROF_CALLGRAPH, 65536);
  uint64_t samples;
  char *folded;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  CHECK(session_samples() < 100); /* Not the parent's. */
  session_run(L, 30);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  samples = session_samples();
  REQUIRE(mkdtemp(strcpy((char *)own.buf, "childXXXXXX")) != NULL);
  REQUIRE(chdir((char *)own.buf) == 0);
  CHECK_EQ(session_parse(own.bytes, own.len, "", &folded), 0);
  CHECK_EQ(folded_count(folded, ""), samples);
  CHECK_EQ(sink.writes, 0);
  return 0;
}

static void in_child(lua_State *L, int (*child)(lua_State *))
{
  int status;
  pid_t pid;
  pid = flush_and_fork();
  if (pid == 0) {
    sink.writes = sink.stops = 0;
    check_failures = 0;
    child(L);
    exit(check_status());
  }
  while (waitpid(pid, &status, 0) < 0) REQUIRE(errno == EINTR);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
  static int (*const children[])(lua_State *) = { child_exits, child_closes, child_stops,
						  child_has_timers, child_profiles };
  lua_State *L = session_vm();
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  uint64_t samples;
  char *folded;
  size_t i;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  for (i = 0; i < sizeof(children) / sizeof(children[0]); i++) {
    session_run(L, 20 * (i + 1));
    in_child(L, children[i]);
  }
  session_run(L, 20 * (i + 1));
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(sink.stops, 1);
  samples = session_samples();
  CHECK_EQ(session_parse(sink.bytes, sink.len, "", &folded), 0);
  CHECK_EQ(folded_count(folded, ""), samples);
  lua_close(L);
  return check_status();
}
