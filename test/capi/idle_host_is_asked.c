/* TIMEOUT: 300
** WAITS: most of its time
** A host whose VM runs no code is asked for its coroutines: after a second, a file tells where the
** host is. The list follows when the VM runs again. Another host closes its VM while it is asked.
*/

#include <signal.h>
#include <string.h>
#include <time.h>

#include "session.h"

#define PATIENCE 2000 /* Looks at a file, */
#define LOOK_MS  50   /* at this distance. */

static char text[65536];

/* Read a file. Returns 0 if it does not exist. */
static int read_file(const char *path)
{
  FILE *f = fopen(path, "r");
  size_t n;
  if (!f) return 0;
  n = fread(text, 1, sizeof(text) - 1, f);
  text[n] = '\0';
  fclose(f);
  return 1;
}

/* Wait in C, as an event loop does, for a file with a text. Signals end no part of it. */
__attribute__((noinline)) static int host_waits(const char *path, const char *part)
{
  struct timespec ms = { 0, LOOK_MS * 1000000 };
  int i;
  for (i = 0; i < PATIENCE; i++) {
    if (read_file(path) && strstr(text, part)) return 1;
    nanosleep(&ms, NULL);
  }
  printf("%s has no '%s'\n", path, part);
  return 0;
}

static lua_State *vm_new(void)
{
  lua_State *L = luaL_newstate();
  REQUIRE(L != NULL);
  luaL_openlibs(L);
  session_script(
    L, "co = coroutine.create(function() coroutine.yield() end) coroutine.resume(co)");
  return L;
}

int main(void)
{
  struct timespec late = { 1, 100000000 };
  lua_State *L;
  remove("idle1.coroutines");
  remove("idle2.coroutines");
  remove("idle3.coroutines");
  REQUIRE(setenv("LUAJIT_SYSPROF", "coroutines=SIGUSR1,paused,path=idle%r", 1) == 0);
  L = vm_new();
  REQUIRE(raise(SIGUSR1) == 0);
  CHECK(host_waits("idle1.coroutines", "\nWhere coroutines wait is known only"));
  CHECK(strstr(
    text, ": the program runs no Lua code now.\nThe list of its coroutines is missing."));
  CHECK(strstr(text, "\nC stack\n"));
  CHECK(strstr(text, "    main\n"));
  CHECK(!strstr(text, "\nrunning\n"));
  CHECK(!read_file("idle2.coroutines"));
  session_script(L, "local s = 0 for i = 1, 10 do s = s + i end");
  CHECK(read_file("idle2.coroutines"));
  CHECK(strstr(text, "2 coroutines of process "));
  CHECK(strstr(text, ": 1 running, 1 suspended\n"));
  /* The stack is offered when the VM is closed. */
  REQUIRE(raise(SIGUSR1) == 0);
  nanosleep(&late, NULL);
  lua_close(L);
  nanosleep(&late, NULL);
  CHECK(!read_file("idle2.coroutines") || strstr(text, "2 coroutines of process "));
  return check_status();
}
