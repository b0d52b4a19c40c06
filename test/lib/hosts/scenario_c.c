/*
** C functions for the scenarios in test/stack: a Lua module. Scenarios also call its
** functions through the FFI. Each function burns time or calls back in a known place. So
** the compiler inlines none, and none ends in a tail call.
*/

#include "lua.h"
#include "lauxlib.h"

#ifdef __clang__ /* Clang makes no clones, and lacks the attribute. */
#define KEEP __attribute__((noinline, visibility("default")))
#else
#define KEEP __attribute__((noinline, noclone, visibility("default")))
#endif
#define NO_TAIL_CALL() __asm__ volatile("" : : : "memory")

/* -- Called through the FFI -------------------------------------------------- */

KEEP double c_burn(int n)
{
  volatile double sum = 0;
  int i;
  for (i = 0; i < n; i++) sum += i;
  return sum;
}

/* A C function that calls another one. */
KEEP double c_burn_outer(int n)
{
  double r = c_burn(n);
  NO_TAIL_CALL();
  return r;
}

KEEP double c_call_back(double (*f)(double), int n)
{
  double r = f((double)n);
  NO_TAIL_CALL();
  return r;
}

/* -- Called by Lua ------------------------------------------------------------ */

KEEP int c_spin(lua_State *L)
{
  lua_pushnumber(L, c_burn_outer((int)luaL_checkinteger(L, 1)));
  NO_TAIL_CALL();
  return 1;
}

KEEP int c_call(lua_State *L)
{
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  NO_TAIL_CALL();
  return lua_gettop(L);
}

KEEP int c_pcall(lua_State *L)
{
  int status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
  lua_pushboolean(L, status == 0);
  return 1;
}

static int cpcall_target(lua_State *L)
{
  void *n = lua_touserdata(L, 1);
  c_burn_outer(*(int *)n);
  NO_TAIL_CALL();
  return 0;
}

/* Call a C function by lua_cpcall(). */
KEEP int c_cpcall(lua_State *L)
{
  int n = (int)luaL_checkinteger(L, 1);
  lua_pushboolean(L, lua_cpcall(L, cpcall_target, &n) == 0);
  return 1;
}

/* Run a function on a new coroutine, without a resume. */
KEEP int c_call_on_thread(lua_State *L)
{
  lua_State *co = lua_newthread(L);
  int nargs = lua_gettop(L) - 2;
  lua_insert(L, 1);
  lua_xmove(L, co, nargs + 1);
  lua_call(co, nargs, 1);
  lua_xmove(co, L, 1);
  return 1;
}

/* Run a function as a coroutine to its end, by lua_resume(). */
KEEP int c_resume(lua_State *L)
{
  lua_State *co = lua_newthread(L);
  int nargs = lua_gettop(L) - 2;
  lua_insert(L, 1);
  lua_xmove(L, co, nargs + 1);
  while (lua_resume(co, nargs) == LUA_YIELD) {
    lua_settop(co, 0);
    nargs = 0;
  }
  lua_settop(co, 0);
  return 0;
}

KEEP int luaopen_scenario_c(lua_State *L)
{
  static const luaL_Reg functions[] = { { "spin", c_spin },
					{ "call", c_call },
					{ "pcall", c_pcall },
					{ "cpcall", c_cpcall },
					{ "call_on_thread", c_call_on_thread },
					{ "resume", c_resume },
					{ NULL, NULL } };
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  return 1;
}
