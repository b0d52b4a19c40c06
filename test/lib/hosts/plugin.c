/* Library for tests that load and unload it: compile with -DINNER=NAME -DFACTOR=N. */

#include "lua.h"

/* Work, call argument 1, and return whether argument 2 returns true: enough. */
__attribute__((noinline)) static int INNER(lua_State *L)
{
  volatile unsigned x = 1;
  int i, enough;
  for (i = 0; i < 20000; i++) x = x * FACTOR + (unsigned)i;
  lua_pushvalue(L, 1);
  lua_call(L, 0, 0);
  lua_pushvalue(L, 2);
  lua_call(L, 0, 1);
  enough = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return enough;
}

int plugin_run(lua_State *L)
{
  while (!INNER(L))
    ;
  return 0;
}
