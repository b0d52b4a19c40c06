/* TIMEOUT: 300
** luaM_sysprof_coroutines in hosts that drive coroutines themselves: threads without code,
** C functions as bodies, a call from any of them, a collector that works step by step, an
** allocator of the host, and wrong arguments.
*/

#include <stdlib.h>
#include <string.h>

#include "own_allocator.h"
#include "session.h"

static char *text; /* Of the last dump. */
static size_t text_len;

/* Dump into text. Returns the status. */
static int dump(lua_State *L, const char *format)
{
  int status, top = lua_gettop(L);
  free(text);
  text = (char *)"not set";
  text_len = 12345;
  status = luaM_sysprof_coroutines(L, format, &text, &text_len);
  CHECK_EQ(lua_gettop(L), top);
  if (status != PROFILE_SUCCESS) {
    text = NULL;
    CHECK(*luaM_sysprof_error() != '\0');
    CHECK(strchr(luaM_sysprof_error(), '\n') == NULL);
    return status;
  }
  CHECK(*luaM_sysprof_error() == '\0');
  CHECK_EQ(strlen(text), text_len);
  return status;
}

static void check_contains(const char *part, int line)
{
  if (strstr(text, part)) return;
  printf("line %d: no '%s' in\n%s\n", line, part, text);
  CHECK(0);
}
#define CONTAINS(part) check_contains(part, __LINE__)

static lua_State *vm_new(void)
{
  lua_State *L = luaL_newstate();
  REQUIRE(L != NULL);
  luaL_openlibs(L);
  return L;
}

/* -- Bodies ------------------------------------------------------------------ */

/* The names of these functions are in the dynamic symbol table or in .symtab. */
int yield_here(lua_State *L);
int yield_here(lua_State *L)
{
  return lua_yield(L, lua_gettop(L));
}

int dump_here(lua_State *L);
int dump_here(lua_State *L)
{
  CHECK_EQ(dump(L, "text"), PROFILE_SUCCESS);
  return 0;
}

int call_lua(lua_State *L);
int call_lua(lua_State *L)
{
  lua_getglobal(L, "inner");
  lua_call(L, 0, 0);
  return 0;
}

int fail_here(lua_State *L);
int fail_here(lua_State *L)
{
  return luaL_error(L, "failed on purpose");
}

/* Resumes its argument. */
int resume_it(lua_State *L);
int resume_it(lua_State *L)
{
  lua_State *co = lua_tothread(L, 1);
  CHECK(lua_resume(co, 0) <= LUA_YIELD);
  return 0;
}

/* -- Tests ------------------------------------------------------------------- */

static void test_arguments(void)
{
  lua_State *L = vm_new();
  char *s = (char *)1;
  size_t n = 1;
  CHECK_EQ(luaM_sysprof_coroutines(NULL, "text", &s, &n), PROFILE_ERRUSE);
  CHECK(strstr(luaM_sysprof_error(), "NULL") != NULL);
  CHECK_EQ(luaM_sysprof_coroutines(L, "text", NULL, &n), PROFILE_ERRUSE);
  CHECK_EQ(luaM_sysprof_coroutines(L, "text", &s, NULL), PROFILE_ERRUSE);
  CHECK_EQ(luaM_sysprof_coroutines(L, "yaml", &s, &n), PROFILE_ERRUSE);
  CHECK(strstr(luaM_sysprof_error(), "the format is yaml") != NULL);
  CHECK_EQ(luaM_sysprof_coroutines(L, "", &s, &n), PROFILE_ERRUSE);
  CHECK(s == (char *)1 && n == 1);
  CHECK_EQ(dump(L, NULL), PROFILE_SUCCESS);
  CONTAINS("1 coroutine of process");
  CHECK_EQ(dump(L, "json"), PROFILE_SUCCESS);
  CONTAINS("\"running\":1");
  CHECK_EQ(dump(L, "folded"), PROFILE_SUCCESS);
  CHECK(strcmp(text, "[running] 1\n") == 0);
  lua_close(L);
}

/* Threads in all states, and the main thread that runs no code. */
static void test_states(void)
{
  lua_State *L = vm_new(), *co[8];
  int i;
  session_script(L, "function body() local x = 1 coroutine.yield() return x end "
		    "function inner() coroutine.yield() end");
  for (i = 0; i < 8; i++) co[i] = lua_newthread(L);
  /* 0 and 1 never get code. 2 and 3 get a function: Lua and C. */
  lua_getglobal(co[2], "body");
  lua_pushcfunction(co[3], yield_here);
  lua_getglobal(co[4], "body");
  CHECK_EQ(lua_resume(co[4], 0), LUA_YIELD);
  lua_pushcfunction(co[5], yield_here);
  lua_pushinteger(co[5], 7);
  CHECK_EQ(lua_resume(co[5], 1), LUA_YIELD);
  lua_pushcfunction(co[6], fail_here);
  CHECK_EQ(lua_resume(co[6], 0), LUA_ERRRUN);
  lua_pushcfunction(co[7], call_lua); /* It may not yield across the call. */
  CHECK_EQ(lua_resume(co[7], 0), LUA_ERRRUN);
  CHECK_EQ(dump(L, "text"), PROFILE_SUCCESS);
  CONTAINS("9 coroutines of process");
  CONTAINS("1 running, 2 suspended, 2 not started, 2 dead with error, 2 dead\n");
  CONTAINS("\n1 running\n");
  CONTAINS("\n2 dead\n");
  CONTAINS("\n1 not started\n    body (");
  CONTAINS("\n1 not started\n    yield_here\n");
  CONTAINS("\n1 suspended\n    coroutine.yield\n    body (");
  CONTAINS("\n1 suspended\n    yield_here\n");
  CONTAINS("\n1 dead with error: failed on purpose\n    fail_here\n");
  /* The way to the caller has unwound the frames. The slot may hold an argument as well. */
  CONTAINS("\n1 dead with error\n    call_lua\n");
  /* The host pops the error, and the collector clears the slot. */
  lua_pop(co[6], 1);
  CHECK_EQ(dump(L, "text"), PROFILE_SUCCESS);
  CONTAINS("\n1 dead with error: failed on purpose\n    fail_here\n");
  lua_gc(L, LUA_GCCOLLECT, 0);
  CHECK_EQ(dump(L, "text"), PROFILE_SUCCESS);
  CONTAINS("1 running, 2 suspended, 2 not started, 2 dead with error, 2 dead\n");
  CONTAINS("\n1 dead with error\n    fail_here\n");
  /* The rest of the work changes the states. */
  CHECK_EQ(lua_resume(co[2], 0), LUA_YIELD);
  CHECK_EQ(lua_resume(co[4], 0), 0);
  CHECK_EQ(lua_resume(co[5], 0), 0);
  CHECK_EQ(dump(L, "folded"), PROFILE_SUCCESS);
  CONTAINS(";coroutine.yield;[suspended] 1\n");
  CONTAINS("[dead] 4\n");
  lua_close(L);
}

/* The caller is a coroutine: from a C function, and from a host that only has L. */
static void test_from_a_coroutine(void)
{
  lua_State *L = vm_new(), *outer, *co;
  session_script(L, "");
  outer = lua_newthread(L);
  co = lua_newthread(L);
  lua_pushcfunction(co, dump_here);
  lua_pushcfunction(outer, resume_it);
  lua_pushthread(co);
  lua_xmove(co, outer, 1);
  CHECK_EQ(lua_resume(outer, 1), 0);
  CONTAINS("3 coroutines of process");
  CONTAINS("1 running, 1 normal, 1 dead\n");
  CONTAINS("\n1 running\n    dump_here\n");
  CONTAINS("\n1 normal\n    resume_it\n");
  CONTAINS("\n1 dead\n");
  /* L has no code of its own, and may have only values. */
  co = lua_newthread(L);
  lua_pushinteger(co, 5);
  CHECK_EQ(dump(co, "text"), PROFILE_SUCCESS);
  CONTAINS("1 running, 3 dead\n");
  lua_pushcfunction(co, yield_here); /* A value on top of another one. */
  CHECK_EQ(dump(L, "text"), PROFILE_SUCCESS);
  CONTAINS("4 coroutines of process");
  /* From a protected call of C. */
  lua_register(L, "dump_here", dump_here);
  session_script(L, "local function f() dump_here() end (function() f() end)()");
  CONTAINS("\n1 running\n    dump_here\n    f (");
  CONTAINS("    main chunk (");
  lua_close(L);
}

/* The collector works between dumps: coroutines die, are swept, and come back. */
static void test_collector(lua_State *L)
{
  int i;
  session_script(
    L,
    "local yield = coroutine.yield "
    "local function leaf(i) yield(i) end "
    "local function body(i) local t = { i } leaf(t[1]) if i % 3 == 0 then error('x' .. i) end end "
    "kept = {} "
    "function more(i) "
    "  local co = coroutine.create(body) "
    "  kept[i % 17] = co "
    "  for _ = 1, i % 4 do coroutine.resume(co, i) end "
    "  coroutine.wrap(body)(i) "
    "end "
    "function deep(n) if n > 0 then return 1 + deep(n - 1) end coroutine.yield() return 0 end "
    "function deep_ones() local co = coroutine.create(deep) coroutine.resume(co, 300) end");
  for (i = 0; i < 3000; i++) {
    static const char *const formats[] = { "text", "json", "folded" };
    lua_getglobal(L, "more");
    lua_pushinteger(L, i);
    REQUIRE(lua_pcall(L, 1, 0, 0) == 0);
    if (i % 50 == 0) {
      lua_getglobal(L, "deep_ones");
      REQUIRE(lua_pcall(L, 0, 0, 0) == 0);
    }
    lua_gc(L, LUA_GCSTEP, i % 5);
    if (i % 3 == 0) CHECK_EQ(dump(L, formats[i / 3 % 3]), PROFILE_SUCCESS);
  }
  lua_gc(L, LUA_GCCOLLECT, 0);
  lua_gc(L, LUA_GCCOLLECT, 0);
  CHECK_EQ(dump(L, "text"), PROFILE_SUCCESS);
  CONTAINS("18 coroutines of process");
}

/* A dump allocates nothing of the VM. */
static void test_own_allocator(void)
{
  Host host;
  uint64_t blocks;
  lua_State *L;
  int i;
  memset(&host, 0, sizeof(host));
  L = lua_newstate(host_alloc, &host);
  REQUIRE(L != NULL);
  luaL_openlibs(L);
  test_collector(L);
  blocks = given.blocks;
  for (i = 0; i < 100; i++) CHECK_EQ(dump(L, "json"), PROFILE_SUCCESS);
  CHECK_EQ(given.blocks, blocks);
  lua_close(L);
  CHECK_EQ(host.live, 0);
}

/* A profile and its dumps of coroutines do not disturb each other. */
static void test_beside_a_profile(void)
{
  lua_State *L = vm_new();
  struct luam_Sysprof_Options opt;
  memset(&opt, 0, sizeof(opt));
  opt.mode = LUAM_SYSPROF_DEFAULT;
  opt.interval = 1;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  test_collector(L);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  lua_close(L);
}

int main(void)
{
  lua_State *L;
  test_arguments();
  test_states();
  test_from_a_coroutine();
  L = vm_new();
  test_collector(L);
  lua_close(L);
  test_own_allocator();
  test_beside_a_profile();
  free(text);
  return check_status();
}
