/* lua_close() of a profiled VM completes the stream and calls on_stop once. */

#include "session.h"

int main(void)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  uint64_t samples;
  char *folded;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  session_run(L, 20);
  lua_close(L);
  CHECK_EQ(sink.stops, 1);
  samples = session_samples();
  CHECK(samples >= 20);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "", &folded), 0);
  CHECK_EQ(folded_count(folded, ""), samples);
  free(folded);

  /* Another VM, probably at the same address, is not running then. */
  L = session_vm();
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_ERRRUN);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(sink.stops, 2);
  lua_close(L);
  CHECK_EQ(sink.stops, 2);
  return check_status();
}
