/*
** Host program in C++ for the tests: exceptions through Lua and out of it, std::sort
** with a comparator in Lua, noexcept. Runs until the profile has enough samples.
** Argument: file of the profile.
*/

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "lua.hpp"
extern "C" {
#include "lmisclib.h"
}

static const unsigned SAMPLES = 300;

/* Counts live objects: an error of Lua runs the destructors on its way. */
struct Guard {
  static int alive;
  Guard()
  {
    alive++;
  }
  ~Guard()
  {
    alive--;
  }
};
int Guard::alive;

__attribute__((noinline)) static double cxx_leaf(int n) noexcept
{
  volatile double x = 1;
  for (int i = 0; i < n; i++) x = x * 1.0001 + i;
  return x;
}

__attribute__((noinline)) static void cxx_thrower(int depth)
{
  Guard guard;
  if (depth == 0) {
    cxx_leaf(6000);
    throw std::runtime_error("thrown");
  }
  cxx_thrower(depth - 1);
}

static int cxx_throw(lua_State *L)
{
  cxx_thrower((int)lua_tointeger(L, 1));
  return 0;
}

/* std::sort by a Lua function. */
__attribute__((noinline)) static int cxx_sort(lua_State *L)
{
  std::vector<int> v;
  for (int i = 0; i < 40; i++) v.push_back(i * 7919 % 41);
  std::sort(v.begin(), v.end(), [L](int a, int b) {
    lua_pushvalue(L, 1);
    lua_pushinteger(L, a);
    lua_pushinteger(L, b);
    lua_call(L, 2, 1);
    bool less = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return less;
  });
  lua_pushboolean(L, std::is_sorted(v.begin(), v.end()));
  return 1;
}

/* Calls a Lua function that throws, and catches it in C++. */
__attribute__((noinline)) static int cxx_catch(lua_State *L)
{
  Guard guard;
  int caught = 0;
  int top = lua_gettop(L);
  try {
    Guard inner;
    lua_pushvalue(L, 1);
    lua_call(L, 0, 0);
  } catch (const std::exception &) {
    caught = 1;
  } catch (...) {
    caught = 2;
  }
  lua_settop(L, top);
  lua_pushnumber(L, cxx_leaf(10000));
  lua_pushinteger(L, caught);
  return 1;
}

static int cxx_burn(lua_State *L)
{
  lua_pushnumber(L, cxx_leaf(300));
  return 1;
}

static int enough(lua_State *L)
{
  struct luam_Sysprof_Counters c;
  luaM_sysprof_report(&c);
  lua_pushboolean(L, c.samples >= SAMPLES);
  return 1;
}

__attribute__((noinline)) static int cxx_main(lua_State *L, const std::string &path)
{
  luaL_openlibs(L);
  lua_register(L, "cxx_throw", cxx_throw);
  lua_register(L, "cxx_sort", cxx_sort);
  lua_register(L, "cxx_catch", cxx_catch);
  lua_register(L, "cxx_burn", cxx_burn);
  lua_register(L, "enough", enough);
  lua_pushstring(L, path.c_str());
  lua_setglobal(L, "path");
  return luaL_loadstring(
	   L, "local function less(a, b) cxx_burn() return a < b end\n"
	      "local function thrown() for i = 0, 5 do\n"
	      "  local ok, e = pcall(cxx_throw, i) assert(not ok) end end\n"
	      "local function caught() return cxx_catch(function() error('lua') end) end\n"
	      "assert(misc.sysprof.start({ mode = 'C', clock = 'wall-signal', interval = 1,"
	      "  path = path }))\n"
	      "while not enough() do assert(cxx_sort(less)) thrown()\n"
	      "  assert(caught() > 0) end\n"
	      "assert(misc.sysprof.stop())\n") ||
	 lua_pcall(L, 0, 0, 0);
}

int main(int argc, char **argv)
{
  lua_State *L = luaL_newstate();
  if (argc < 2 || !L) return 2;
  int status = cxx_main(L, argv[1]);
  if (status != 0) std::printf("FAILED: %s\n", lua_tostring(L, -1));
  lua_close(L);
  if (Guard::alive != 0) {
    std::printf("FAILED: %d destructors did not run\n", Guard::alive);
    status = 1;
  }
  return status != 0;
}
