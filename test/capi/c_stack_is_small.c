/* TIMEOUT: 600
** C stacks of 64 KiB without a signal stack are enough: a thread's, and one that the host
** switches to. The profile also starts and stops there. The page behind the end of each
** stack is not writable. With LUAJIT_SYSPROF, a thread of the documented least size is enough.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <ucontext.h>

#include "session.h"
#include "small_stack.h"

#define SIZE (64 * 1024)

static const char profile[] =
  "local path = ...\n"
  "local function deep(n) if n > 0 then return (deep(n - 1)) end local s = 0"
  "  for i = 1, 3e4 do s = s + i % 7 end return s end\n"
  "for _, flush in ipairs { 'vm', 'thread' } do\n"
  "  assert(misc.sysprof.start { mode = 'C', clock = 'wall-signal', hz = 10000, path = path, flush = flush })\n"
  "  local till = os.time() + 200\n"
  "  repeat\n"
  "    pcall(deep, 30) pcall(string.gsub, ('x'):rep(9), 'x', function() deep(3) end)\n"
  "    coroutine.wrap(deep)(10)\n"
  "  until misc.sysprof.report().samples >= 200 or os.time() > till\n"
  "  assert(misc.sysprof.stop())\n"
  "  assert(misc.sysprof.report().samples >= 200)\n"
  "end\n";

static const char *path;

/* A VM of its own. */
static void run(void)
{
  lua_State *L = luaL_newstate();
  REQUIRE(L != NULL);
  luaL_openlibs(L);
  if (luaL_loadbuffer(L, profile, strlen(profile), "@small.lua") != 0) REQUIRE(0);
  lua_pushstring(L, path);
  if (lua_pcall(L, 1, 0, 0) != 0) {
    CHECK(!"the profile");
    printf("%s\n", lua_tostring(L, -1));
  }
  lua_close(L);
}

static void *thread_main(void *arg)
{
  run();
  return arg;
}

static ucontext_t here, there;

static void context_main(void)
{
  run();
}

static void check_file(void)
{
  uint8_t *bytes = (uint8_t *)malloc(SINK_MAX);
  FILE *f = fopen(path, "rb");
  char *folded;
  size_t n;
  REQUIRE(f != NULL && bytes != NULL);
  n = fread(bytes, 1, SINK_MAX, f);
  fclose(f);
  CHECK_EQ(session_parse(bytes, n, "", &folded), 0);
  CHECK(folded_count(folded, "small.lua") >= 150);
  free(folded);
  free(bytes);
}

static void on_thread(size_t size, void *(*f)(void *))
{
  pthread_attr_t attr;
  pthread_t thread;
  REQUIRE(pthread_attr_init(&attr) == 0);
  REQUIRE(pthread_attr_setstacksize(&attr, size) == 0);
  REQUIRE(pthread_create(&thread, &attr, f, NULL) == 0);
  REQUIRE(pthread_join(thread, NULL) == 0);
  REQUIRE(pthread_attr_destroy(&attr) == 0);
}

/* -- LUAJIT_SYSPROF ------------------------------------------------------------ */

static const char works[] =
  "local function deep(n) if n > 0 then return (deep(n - 1)) end local s = 0"
  "  for i = 1, 3e4 do s = s + #tostring(i) end return s end\n"
  "local till = os.time() + 200\n"
  "repeat coroutine.wrap(deep)(10) until misc.sysprof.report().samples >= 20 or os.time() > till\n"
  "assert(misc.sysprof.coroutines('text'))\n"
  "assert(misc.sysprof.report().samples >= 20)\n"
  "misc.sysprof.stop()\n";

/* The library reads the variable in luaL_openlibs. */
static void *env_main(void *arg)
{
  lua_State *L = luaL_newstate();
  REQUIRE(L != NULL);
  luaL_openlibs(L);
  if (luaL_loadbuffer(L, works, strlen(works), "@small.lua") != 0 ||
      lua_pcall(L, 0, 0, 0) != 0) {
    CHECK(!"the program");
    printf("%s\n", lua_tostring(L, -1));
  }
  lua_close(L);
  return arg;
}

static void check_env(void)
{
  static const char *const values[] = {
    "path=env.bin,hz=1000,threads=all,force",
    "path=env.bin,hz=1000,control=SIGUSR2,force",
    "path=env.bin,hz=1000,force,clock=cpu+alloc+coroutine-wait",
  };
  size_t i, need = small_stack_kernel_max() + SMALL_STACK_HANDLER + 10 * 1024;
  need = (need + 4095) & ~(size_t)4095;
  for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
    REQUIRE(setenv("LUAJIT_SYSPROF", values[i], 1) == 0);
    printf("%zu bytes: %s\n", need, values[i]);
    on_thread(need, env_main);
  }
  REQUIRE(unsetenv("LUAJIT_SYSPROF") == 0);
}

int main(void)
{
  if (small_stack_skipped()) return 77;
  check_env();
  path = "thread.bin";
  on_thread(SIZE, thread_main);
  check_file();

  path = "context.bin";
  REQUIRE(getcontext(&there) == 0);
  there.uc_stack.ss_sp = small_stack(SIZE);
  there.uc_stack.ss_size = SIZE;
  there.uc_link = &here;
  makecontext(&there, context_main, 0);
  REQUIRE(swapcontext(&here, &there) == 0);
  check_file();
  return check_status();
}
