/* A library that is loaded and unloaded: compile with -DINNER=NAME -DFACTOR=N. */

#include "lua.h"

/* Work, call argument 1, ask argument 2 whether that is enough. */
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
