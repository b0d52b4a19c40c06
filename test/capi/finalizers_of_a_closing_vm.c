/* lua_close() ends all profiling of a VM, and runs finalizers after that. What they start is refused
** in one sentence, in a VM that was profiled before, and in one that was not. A client finds no such
** VM, and a new VM at the same address is free.
*/

#include "live_client.h"
#include "session.h"

#define REFUSED "the VM is closing"

/* Functions that begin something, as Lua calls them. */
static const char *const starts[] = {
  "misc.sysprof.start { mode = 'D', clock = 'cpu', hz = 1000 }",
  "misc.sysprof.start { mode = 'C', path = 'closing.bin' }",
  "misc.sysprof.start { mode = 'C', path = 'closing.bin', clock = 'alloc,coroutine-wait' }",
  "misc.sysprof.start { mode = 'C', path = 'closing.bin', delay = 0.001 }",
  "misc.sysprof.start { mode = 'C', path = 'closing.bin', duration = 9 }",
  "misc.sysprof.live()",
  "misc.memprof.start('closing.bin')",
  "misc.memprof.count(function() end)",
};

/* Functions that begin nothing; they may find nothing. */
static const char *const others[] = {
  "misc.sysprof.stop()",   "misc.sysprof.dump()", "misc.sysprof.coroutines()",
  "misc.sysprof.report()", "misc.memprof.stop()",
};

static int called; /* Finalizers that ended. */

/* note(ok, result, message): what a start has returned in a finalizer. */
static int note(lua_State *L)
{
  const char *why = lua_tostring(L, lua_toboolean(L, 1) ? 3 : 2);
  CHECK(why && strstr(why, REFUSED));
  if (why && !strstr(why, REFUSED)) printf("  %s\n", why);
  called++;
  return 0;
}

/* The C API in a finalizer. */
static int c_api(lua_State *L)
{
  struct luam_Sysprof_Options opt;
  struct luam_Memprof_Count count;
  char *text = NULL;
  size_t len;
  memset(&opt, 0, sizeof(opt));
  opt.interval = 1;
  opt.mode = LUAM_SYSPROF_DEFAULT;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_ERRUSE);
  CHECK(strstr(luaM_sysprof_error(), REFUSED));
  opt.mode = LUAM_SYSPROF_CALLGRAPH;
  CHECK_EQ(luaM_sysprof_start_path(L, &opt, "closing.bin"), PROFILE_ERRUSE);
  CHECK(strstr(luaM_sysprof_error(), REFUSED));
  CHECK_EQ(luaM_memprof_start(L, NULL, "closing.bin"), PROFILE_ERRUSE);
  CHECK(strstr(luaM_sysprof_error(), REFUSED));
  CHECK(luaM_sysprof_live(L) != PROFILE_SUCCESS);
  CHECK(strstr(luaM_sysprof_error(), REFUSED));
  luaL_loadstring(L, "");
  CHECK_EQ(luaM_memprof_count(L, 1, 0, &count, sizeof(count)), PROFILE_ERRUSE);
  CHECK(strstr(luaM_sysprof_error(), REFUSED));
  CHECK(luaM_sysprof_stop(L) == PROFILE_ERRRUN || luaM_sysprof_dump(L) == PROFILE_ERRRUN);
  CHECK_EQ(luaM_sysprof_moved(L), PROFILE_ERRRUN);
  CHECK_EQ(luaM_sysprof_coroutines(L, "text", &text, &len), PROFILE_SUCCESS);
  free(text);
  called++;
  return 0;
}

static void finalizer(lua_State *L, const char *code)
{
  lua_pushstring(L, code);
  lua_setglobal(L, "code");
  session_script(L, "local u = newproxy(true)\n"
		    "getmetatable(u).__gc = assert(loadstring(code))\n"
		    "kept = kept or {} kept[#kept + 1] = u");
}

/* A VM with all finalizers. before: what it does before it is closed. */
static lua_State *vm_new(const char *before)
{
  lua_State *L = session_vm();
  char code[256];
  size_t i;
  lua_register(L, "note", note);
  lua_register(L, "c_api", c_api);
  for (i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
    snprintf(code, sizeof(code), "note(pcall(function() return %s end))", starts[i]);
    finalizer(L, code);
  }
  for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) finalizer(L, others[i]);
  finalizer(L, "c_api()");
  session_script(L, before);
  return L;
}

static void close_after(const char *before)
{
  lua_State *L = vm_new(before);
  called = 0;
  lua_close(L);
  CHECK_EQ(called, (int)(sizeof(starts) / sizeof(starts[0])) + 1);
  CHECK(access("closing.bin", F_OK) != 0);
}

/* The process still answers, for another VM, and knows no closed one. */
static void client_finds_one_vm(void)
{
  const char *got;
  lua_State *L = session_vm();
  int fd;
  session_script(L, "assert(misc.sysprof.live())");
  close_after("assert(misc.sysprof.live())");
  fd = live_connect(getpid());
  REQUIRE(fd >= 0);
  live_send(fd, "info", 4, -1, 0);
  got = live_answer(fd);
  CHECK(strstr(got, "vms=1") != NULL);
  close(fd);
  lua_close(L);
}

int main(void)
{
  lua_State *L;
  close_after("");
  close_after("assert(misc.sysprof.start { mode = 'C', path = 'before.bin', "
	      "clock = 'cpu,alloc,coroutine-wait' }) work()");
  close_after("misc.memprof.count(function() end)");
  client_finds_one_vm();
  L = session_vm(); /* Probably at the address of a closed one. */
  session_script(L,
		 "assert(misc.sysprof.start { mode = 'D' }) assert(misc.sysprof.stop())");
  lua_close(L);
  return check_status();
}
