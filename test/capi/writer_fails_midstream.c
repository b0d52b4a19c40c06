/* The n-th call of the writer fails. At the start, the start fails and nothing runs.
** Later, the program goes on, stop reports the failure, the counters go on, and the
** reader reads all data before the failure.
*/

#include "session.h"

#define WRITES 8 /* In a profile in which none fails. */

/* Returns 0 if the stream was whole before that call. */
static int profile(lua_State *L, int fail_at)
{
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH,
						    LUAM_SYSPROF_BUF_MIN);
  char *folded;
  int status, result;
  sink.fail_at = fail_at;
  opt.interval_ns = 300000;
  errno = 0;
  result = luaM_sysprof_start(L, &opt);
  if (result != PROFILE_SUCCESS) {
    CHECK_EQ(result, PROFILE_ERRIO);
    CHECK_EQ(errno, ENOSPC);
    CHECK_EQ(sink.writes, fail_at);
    CHECK_EQ(sink.stops, 0);
    CHECK_EQ(luaM_sysprof_stop(L), PROFILE_ERRRUN);
    sink_free(&sink);
    return 1;
  }
  session_run(L, 200);
  while (sink.writes < WRITES && sink.writes < fail_at && check_failures == 0)
    session_run(L, session_samples() + 1);
  errno = 0;
  result = luaM_sysprof_stop(L);
  status = errno;
  CHECK_EQ(sink.stops, 1);
  if (sink.writes < fail_at) {
    CHECK_EQ(result, PROFILE_SUCCESS);
    sink_free(&sink);
    return 0;
  }
  CHECK_EQ(result, PROFILE_ERRIO);
  CHECK_EQ(status, ENOSPC);
  CHECK_EQ(sink.writes, fail_at);  /* Not tried again. */
  CHECK(session_samples() >= 200); /* The counters go on. */
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_ERRRUN);
  status = session_parse(sink.bytes, sink.len, "", &folded);
  if (sink.len == 0) CHECK(status == 1);
  else CHECK_EQ(status, 3); /* Cut. */
  free(folded);
  sink_free(&sink);
  return 1;
}

int main(void)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt;
  int n;
  session_deep(L);
  for (n = 1; n <= 300 && profile(L, n); n++)
    ;
  CHECK(n > WRITES);
  printf("%d calls of the writer\n", n - 1);
  CHECK(n <= 300);

  /* An on_stop that fails, after a good stream. */
  opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  sink.stop_result = 1;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  session_run(L, 5);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_ERRIO);
  CHECK(errno != 0);
  sink_free(&sink);

  /* And then one that works. */
  opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  session_run(L, 5);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  sink_free(&sink);
  lua_close(L);
  return check_status();
}
