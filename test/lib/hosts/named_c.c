/*
** C functions that Lua keeps in different places: a Lua module. Each calls c_work, so that it is
** never the leaf of a stack.
*/

#include "lua.h"
#include "lauxlib.h"

#define KEEP           __attribute__((noinline, visibility("default")))
#define NO_TAIL_CALL() __asm__ volatile("" : : : "memory")

static char key; /* Its address is a key of the registry. */

KEEP double c_work(void)
{
  volatile double sum = 0;
  int i;
  for (i = 0; i < 20000; i++) sum += i;
  return sum;
}

#define FUNCTION(name) \
  KEEP int name(lua_State *L) \
  { \
    lua_pushnumber(L, c_work()); \
    NO_TAIL_CALL(); \
    return 1; \
  }

FUNCTION(c_one)
FUNCTION(c_odd)
FUNCTION(c_shared)
FUNCTION(c_counted)
FUNCTION(c_bare)
FUNCTION(c_method)
FUNCTION(c_meta)
FUNCTION(c_push)
FUNCTION(c_send)
FUNCTION(c_pull)
FUNCTION(c_path)

/* A closure with an upvalue: all have the same lua_CFunction. */
KEEP int c_make(lua_State *L)
{
  lua_settop(L, 1);
  lua_pushcclosure(L, c_counted, 1);
  return 1;
}

/* A closure without upvalues. */
KEEP int c_make_bare(lua_State *L)
{
  lua_pushcfunction(L, c_bare);
  return 1;
}

static const luaL_Reg functions[] = {
  { "one", c_one },   { "left", c_shared },         { "right", c_shared },
  { "make", c_make }, { "make_bare", c_make_bare }, { "an odd\n[name]", c_odd },
  { NULL, NULL }
};

/* An object whose metatable is below the top. */
static void set_object(lua_State *L, const char *field)
{
  lua_newuserdata(L, 1);
  lua_insert(L, -2);
  lua_setmetatable(L, -2);
  lua_setfield(L, -2, field);
}

static void set_function(lua_State *L, lua_CFunction f, const char *name)
{
  lua_pushcfunction(L, f);
  lua_setfield(L, -2, name);
}

KEEP int luaopen_named_c(lua_State *L)
{
  lua_newtable(L);
  luaL_register(L, NULL, functions);

  luaL_newmetatable(L, "named point"); /* Methods in a table of their own. */
  set_function(L, c_meta, "__add");
  lua_newtable(L);
  set_function(L, c_method, "move");
  lua_setfield(L, -2, "__index");
  set_object(L, "point");

  luaL_newmetatable(L, "named ring"); /* Methods in the metatable. */
  set_function(L, c_push, "push");
  lua_pushvalue(L, -1);
  lua_setfield(L, -2, "__index");
  set_object(L, "ring");

  lua_newtable(L); /* The registry has it without a name. */
  set_function(L, c_send, "send");
  lua_pushvalue(L, -1);
  lua_setfield(L, -2, "__index");
  lua_pushlightuserdata(L, &key);
  lua_pushvalue(L, -2);
  lua_rawset(L, LUA_REGISTRYINDEX);
  set_object(L, "socket");

  lua_newtable(L); /* It says its name. */
  lua_pushliteral(L, "named.Pipe");
  lua_setfield(L, -2, "__name");
  set_function(L, c_pull, "pull");
  lua_pushvalue(L, -1);
  lua_setfield(L, -2, "__index");
  set_object(L, "pipe");

  lua_newtable(L); /* Only the object has it. */
  set_function(L, c_path, "walk");
  lua_pushvalue(L, -1);
  lua_setfield(L, -2, "__index");
  set_object(L, "path");
  return 1;
}
