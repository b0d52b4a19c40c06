/*
** Programs that use the whole VM, and print a text: test/lib/programs/semantics.lua.
*/

#ifndef SEMANTICS_H
#define SEMANTICS_H

#include <stdio.h>
#include <string.h>

#include "lauxlib.h"
#include "check.h"

/* Run code that returns a text; the caller frees it. */
static char *semantics_run(lua_State *L, const char *code)
{
  char *s;
  if (luaL_dostring(L, code) != 0) printf("%s: ", code);
  REQUIRE(lua_isstring(L, -1));
  s = strdup(lua_tostring(L, -1));
  REQUIRE(s != NULL);
  lua_settop(L, 0);
  return s;
}

/* Define the function all, which runs these programs. The modules of LuaJIT are found from its own
** program, which a test is not.
*/
static void semantics_load(lua_State *L)
{
  free(semantics_run(L,
		     "package.path = package.path .. ';' .. os.getenv('SYSPROF_BUILD') .. "
		     "'/share/luajit-2.1/?.lua' "
		     "all = require('semantics').run_all return ''"));
}

#endif
