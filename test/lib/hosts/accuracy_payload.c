/*
** Ten C functions of equal cost per iteration. Each exists twice: for calls by FFI, and
** as a C function of Lua. Each iteration waits for the result of the one before, so its
** time does not depend on the place of the code.
*/

#include "lua.h"
#include "lauxlib.h"

static volatile double divisor = 1.1, addend = 1.0;

#define PART(k) \
  __attribute__((noinline)) double accuracy_ffi_##k(double n) \
  { \
    double x = 1.5, a = divisor, b = addend; \
    long i; \
    for (i = (long)n; i > 0; i--) x = (x + b) / a; \
    return x; \
  } \
  static int accuracy_lua_##k(lua_State *L) \
  { \
    double x = 1.5, a = divisor, b = addend; \
    long i; \
    for (i = (long)lua_tonumber(L, 1); i > 0; i--) x = (x + b) / a; \
    lua_pushnumber(L, x); \
    return 1; \
  }

/* clang-format off */
PART(1) PART(2) PART(3) PART(4) PART(5)
PART(6) PART(7) PART(8) PART(9) PART(10)
  /* clang-format on */

  /* Returns the ten C functions. */
  int luaopen_accuracy_payload(lua_State *L)
{
  static const lua_CFunction parts[] = { accuracy_lua_1, accuracy_lua_2, accuracy_lua_3,
					 accuracy_lua_4, accuracy_lua_5, accuracy_lua_6,
					 accuracy_lua_7, accuracy_lua_8, accuracy_lua_9,
					 accuracy_lua_10 };
  int i;
  for (i = 0; i < 10; i++) lua_pushcfunction(L, parts[i]);
  return 10;
}
