/* Host stacks of many levels, of coroutines that the host calls without a resume, and of
** two VMs on one thread: complete, and with the frames in their order.
*/

#include "session.h"

#define LEVELS  180 /* LuaJIT allows about 200. */
#define SAMPLES 200 /* In each profile. */

static lua_State *second_vm;

/* deeper(n): C calls Lua calls C, n levels. */
static int c_level(lua_State *L)
{
  lua_getglobal(L, "lua_level");
  lua_pushvalue(L, 1);
  lua_call(L, 1, 0);
  return 0;
}

static int called_thread(lua_State *L)
{
  lua_State *L1 = lua_newthread(L);
  lua_getglobal(L1, "in_thread");
  lua_call(L1, 0, 0);
  return 0;
}

static int other_vm(lua_State *L)
{
  (void)L;
  session_work(second_vm);
  return 0;
}

static void run(lua_State *L, const char *code, char **folded)
{
  Sink sink;
  struct luam_Sysprof_Options opt;
  session_script(L, code);
  opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 1 << 20);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  session_run(L, SAMPLES);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "", folded), 0);
  CHECK(folded_count(*folded, "missing") <= SAMPLES / 20);
  sink_free(&sink);
}

/* Occurrences of a frame in the longest stack. */
static int deepest(const char *folded, const char *frame)
{
  int n, max = 0;
  while (*folded) {
    const char *end = strchr(folded, '\n'), *p;
    if (!end) end = folded + strlen(folded);
    for (n = 0, p = folded; (p = strstr(p, frame)) != NULL && p < end; p++) n++;
    if (n > max) max = n;
    folded = *end ? end + 1 : end;
  }
  return max;
}

int main(void)
{
  lua_State *L = session_vm();
  char code[512], *folded;
  second_vm = session_vm();
  lua_register(L, "c_level", c_level);
  lua_register(L, "called_thread", called_thread);
  lua_register(L, "other_vm", other_vm);

  snprintf(code, sizeof(code),
	   "local function spin() local x = 0 for i = 1, 2e5 do x = x + i %% 7 end end\n"
	   "function lua_level(n) if n > 0 then c_level(n - 1) else spin() end end\n"
	   "function work() c_level(%d) end\n",
	   LEVELS);
  run(L, code, &folded);
  /* The middle of a stack this long may be left out, its ends are there. */
  CHECK(deepest(folded, ";lua_level (") > LEVELS / 4);
  CHECK(folded_count(folded, "spin (work.lua:1)") > SAMPLES / 2);
  CHECK(folded_count(folded, ";lua_pcall;work (work.lua:3)") > SAMPLES / 2);
  free(folded);

  run(L,
      "function in_thread() local x = 0"
      " for i = 1, 2e5 do x = x + i % 7 end end\n"
      "function work() called_thread() end\n",
      &folded);
  CHECK(folded_count(folded, "work (work.lua:2)") > SAMPLES / 2);
  CHECK(folded_count(folded, "in_thread (work.lua:1)") > SAMPLES / 2);
  free(folded);

  /* The code of the other VM is host code for this one. */
  run(L, "function work() other_vm() end\n", &folded);
  CHECK(folded_count(folded, ";lua_pcall;work (work.lua:1);other_vm") > SAMPLES / 2);
  CHECK_EQ(folded_count(folded, "leaf"), 0);
  free(folded);
  lua_close(L);
  lua_close(second_vm);
  return check_status();
}
