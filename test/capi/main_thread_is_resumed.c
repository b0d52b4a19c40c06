/* A host that runs the main thread itself by lua_resume(). Between two resumes, and after
** an error, the main thread runs nothing, so the host's code has no Lua frames.
*/

#include "session.h"

#define SAMPLES 200 /* In each profile. */

__attribute__((noinline)) void host_works(lua_State *L);

/* Calls of the API that leave the stack as it is. */
__attribute__((noinline)) void host_works(lua_State *L)
{
  int i, top = lua_gettop(L);
  for (i = 0; i < 20000; i++) {
    lua_settop(L, top + 10);
    lua_settop(L, top);
  }
}

/* Profile code, which yields for ever or fails at once, and the host beside it. */
static void run(lua_State *L, const char *code, int status)
{
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 1 << 20);
  time_t deadline = time(NULL) + 200;
  char *folded;
  uint64_t host;
  CHECK_EQ(luaL_loadbuffer(L, code, strlen(code), "@work.lua"), 0);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  CHECK_EQ(lua_resume(L, 0), status);
  while (session_samples() < SAMPLES && time(NULL) < deadline) {
    host_works(L);
    if (status == LUA_YIELD) CHECK_EQ(lua_resume(L, 0), status);
  }
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "", &folded), 0);
  host = folded_count(folded, "main;run;host_works");
  CHECK(host > 0);
  CHECK_EQ(folded_count(folded, "host_works"), host);
  /* The VM takes its frame off the chain before it says that it has yielded. */
  CHECK(folded_count(folded, "unknown") <= 2);
  if (status == LUA_YIELD)
    CHECK(folded_count(folded, "main;run;[coroutine];main chunk (work.lua);"
			       "step (work.lua:2);leaf (work.lua:1)") > 0);
  if (check_failures) puts(folded);
  free(folded);
  sink_free(&sink);
}

int main(void)
{
  lua_State *L = session_vm();
  run(L,
      "local function leaf() local x = 0 for i = 1, 1e5 do x = x + i % 7 end end\n"
      "local function step() leaf() coroutine.yield(1) return step() end\n"
      "step()",
      LUA_YIELD);
  lua_close(L);
  L = session_vm();
  run(L,
      "local function fails() error('as it should') end\n"
      "local function deeper() fails() end\n"
      "deeper()",
      LUA_ERRRUN);
  lua_close(L);
  return check_status();
}
