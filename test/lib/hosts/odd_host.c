/*
** Host program for the tests of odd binaries: C calls Lua, which calls C, until the
** profile has enough samples. Argument: file of the profile.
*/

#include <stdio.h>
#include <stdlib.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "lmisclib.h"

#define SAMPLES 300

/* A compiler may omit the frame pointer, and on the early return the whole frame. */
__attribute__((noinline)) unsigned host_leaf(unsigned n, unsigned char *p)
{
  unsigned i, sum = 0;
  if (!p) return n;
  for (i = 0; i < n; i++) sum = sum * 31 + p[i & 63];
  return sum;
}

__attribute__((noinline)) static int host_call(lua_State *L)
{
  unsigned char bytes[64] = { 1, 2, 3 };
  lua_pushnumber(L, host_leaf(2000, bytes) & 7);
  return 1;
}

static int enough(lua_State *L)
{
  struct luam_Sysprof_Counters c;
  luaM_sysprof_report(&c);
  lua_pushboolean(L, c.samples >= SAMPLES);
  return 1;
}

__attribute__((noinline)) static int host_main(lua_State *L, const char *path)
{
  luaL_openlibs(L);
  lua_register(L, "host_call", host_call);
  lua_register(L, "enough", enough);
  lua_pushstring(L, path);
  lua_setglobal(L, "path");
  return luaL_loadstring(
	   L, "local function inner() local x = 0\n"
	      "  for i = 1, 50 do x = x + host_call() end return x end\n"
	      "local function spin() local x = 0\n"
	      "  for i = 1, 3e4 do x = (x + i) % 7 end return x end\n"
	      "assert(misc.sysprof.start({ mode = 'C', clock = 'wall-signal', interval = 1,"
	      "  path = path }))\n"
	      "while not enough() do inner() spin() end\n"
	      "assert(misc.sysprof.stop())\n") ||
	 lua_pcall(L, 0, 0, 0);
}

int main(int argc, char **argv)
{
  lua_State *L = luaL_newstate();
  int status;
  if (argc < 2 || !L) return 2;
  status = host_main(L, argv[1]);
  if (status != 0) printf("FAILED: %s\n", lua_tostring(L, -1));
  lua_close(L);
  return status != 0;
}
