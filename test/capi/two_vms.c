/* Two VMs of a process, profiled at the same time, each into its own stream. They stop
** independently.
*/

#include "session.h"

int main(void)
{
  lua_State *L[2] = { session_vm(), session_vm() };
  Sink sink[2];
  struct luam_Sysprof_Options opt[2];
  char *folded;
  size_t len;
  int i;
  session_script(L[0], "jit.off() function work() for i = 1, 1e5 do end end");
  session_script(L[1], "jit.off()\n\n\nfunction work() for i = 1, 1e5 do end end");
  for (i = 0; i < 2; i++) {
    opt[i] = session_options(&sink[i], LUAM_SYSPROF_CALLGRAPH, 65536);
    CHECK_EQ(luaM_sysprof_start(L[i], &opt[i]), PROFILE_SUCCESS);
  }
  for (i = 0; i < 2; i++) CHECK_EQ(luaM_sysprof_start(L[i], &opt[i]), PROFILE_ERRRUN);
  session_run(L[0], 100);
  session_run(L[1], 200);
  CHECK_EQ(luaM_sysprof_stop(L[0]), PROFILE_SUCCESS);
  CHECK_EQ(sink[0].stops, 1);
  CHECK_EQ(sink[1].stops, 0);
  CHECK_EQ(luaM_sysprof_stop(L[0]), PROFILE_ERRRUN);
  len = sink[0].len;
  session_run(L[1], 300); /* The other goes on. */
  CHECK_EQ(luaM_sysprof_stop(L[1]), PROFILE_SUCCESS);
  CHECK_EQ(sink[1].stops, 1);
  CHECK_EQ(sink[0].len, len);
  for (i = 0; i < 2; i++) {
    const char *own = i ? "work.lua:4" : "work.lua:1";
    const char *other = i ? "work.lua:1" : "work.lua:4";
    CHECK_EQ(session_parse(sink[i].bytes, sink[i].len, "", &folded), 0);
    CHECK(folded_count(folded, own) > 50);
    CHECK_EQ(folded_count(folded, other), 0);
    free(folded);
    lua_close(L[i]);
    sink_free(&sink[i]);
  }
  return check_status();
}
