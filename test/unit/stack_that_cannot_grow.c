/*
** A Lua stack cannot grow, because the allocator refuses: the VM is moving no stack then, and
** handlers may read it.
*/

#include <stdlib.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "profile/session/lj_registry.h"
#include "check.h"

#define BLOCK_MAX 65536 /* Bytes that the allocator still gives. */

static int is_scarce, refused;

static void *allocate(void *ud, void *p, size_t old, size_t size)
{
  (void)ud;
  if (size == 0) {
    free(p);
    return NULL;
  }
  if (is_scarce && size > BLOCK_MAX && size > old) {
    refused++;
    return NULL;
  }
  return realloc(p, size);
}

static int scarce(lua_State *L)
{
  is_scarce = lua_toboolean(L, 1);
  return 0;
}

int main(void)
{
  lua_State *L = lua_newstate(allocate, NULL);
  Profile *p;
  REQUIRE(L != NULL);
  luaL_openlibs(L);
  lua_register(L, "scarce", scarce);
  REQUIRE(luaL_dostring(L, "assert(misc.sysprof.start { mode = 'D', interval = 1e6 })") ==
	  0);
  p = lj_registry_of(G(L));
  REQUIRE(p != NULL);
  REQUIRE(luaL_dostring(
	    L,
	    "local function deep(n) if n > 0 then return deep(n - 1) + 1 end return 0 end\n"
	    "scarce(true)\n"
	    "ok = pcall(coroutine.wrap(deep), 20000)\n"
	    "scarce(false)\n") == 0);
  lua_getglobal(L, "ok");
  CHECK(!lua_toboolean(L, -1));
  CHECK(refused > 0);
  CHECK(p->gate.moving == NULL);
  CHECK_EQ(p->gate.changing, 0);
  REQUIRE(luaL_dostring(L, "misc.sysprof.stop()") == 0);
  lua_close(L);
  return check_status();
}
