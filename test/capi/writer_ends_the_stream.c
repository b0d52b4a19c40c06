/* The writer sets *data to NULL in its n-th call: at the start, during samples, and at
** the stop. No error follows and no more calls; on_stop gets NULL.
*/

#include "session.h"

static int profile(lua_State *L, int end_at)
{
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH,
						    LUAM_SYSPROF_BUF_MIN);
  int writes;
  sink.end_at = end_at;
  opt.interval_ns = 300000;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  session_run(L, 200);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  writes = sink.writes;
  CHECK_EQ(sink.stops, 1);
  if (writes >= end_at) {
    CHECK_EQ(writes, end_at);
    CHECK(sink.stop_buf == NULL);
  }
  sink_free(&sink);
  return writes >= end_at;
}

int main(void)
{
  lua_State *L = session_vm();
  int n;
  session_deep(L);
  for (n = 1; n <= 300 && profile(L, n); n++)
    ;
  CHECK(n > 5);
  CHECK(n <= 300); /* The last one reached the end, so all calls were tried. */
  lua_close(L);
  return check_status();
}
