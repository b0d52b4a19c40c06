/* A second start is refused and disturbs nothing. stop works once. */

#include "session.h"

int main(void)
{
  lua_State *L = session_vm();
  Sink sink, other;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  struct luam_Sysprof_Options second;
  char *folded;
  int mode;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  session_run(L, 20);
  for (mode = LUAM_SYSPROF_DEFAULT; mode <= LUAM_SYSPROF_CALLGRAPH; mode++) {
    second = session_options(&other, mode, 65536);
    CHECK_EQ(luaM_sysprof_start(L, &second), PROFILE_ERRRUN);
    CHECK_EQ(other.writes + other.stops, 0);
    sink_free(&other);
  }
  /* Misuse comes first. */
  second.mode = 77;
  CHECK_EQ(luaM_sysprof_start(L, &second), PROFILE_ERRUSE);
  session_run(L, 40);
  CHECK_EQ(sink.stops, 0);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(sink.stops, 1);
  CHECK(sink.stop_buf == sink.buf);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_ERRRUN);
  CHECK_EQ(sink.stops, 1);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "", &folded), 0);
  CHECK(folded_count(folded, "") >= 40);
  free(folded);
  lua_close(L);
  CHECK_EQ(sink.stops, 1);
  return check_status();
}
