/*
** Dump of coroutines when memory is short: allocation N fails, for N = 1, 2, ..., alone or
** with all after it. The dump fails, or has its whole text. It loses no memory.
*/

#include <string.h>

#include "count_malloc.h"
#include "session.h"

/* Many functions, C functions and groups, so that all lists grow. */
static const char *const program =
  "kept = {} "
  "for i = 1, 600 do "
  "  local code = 'local function leaf() coroutine.yield() end local function f(n) '"
  "    .. 'if n > 0 then f(n - 1) else leaf() end return n end return f' "
  "  local f = loadstring(code, '=chunk' .. i)() "
  "  kept[i] = coroutine.create(f) "
  "  coroutine.resume(kept[i], i % 20) "
  "end "
  "for i = 601, 2100 do kept[i] = coroutine.create(print) end ";

int main(void)
{
  lua_State *L;
  char *whole, *text;
  size_t len;
  long n, live, failed = 0;
  int all;
  if (!COUNT_MALLOC) {
    printf("skipped: the sanitizer has its own malloc\n");
    return 77;
  }
  L = luaL_newstate();
  REQUIRE(L != NULL);
  luaL_openlibs(L);
  session_script(L, program);
  REQUIRE(luaM_sysprof_coroutines(L, "text", &whole, &len) == PROFILE_SUCCESS);
  CHECK(strstr(whole, "2101 coroutines of process") == whole);
  CHECK(strstr(whole, "leaf (chunk600:1)") != NULL);
  live = malloc_live;
  for (all = 0; all < 2; all++) {
    for (n = 1;; n++) {
      int status;
      malloc_fail_all = all;
      malloc_calls = 0;
      malloc_fail_at = n;
      text = whole;
      status = luaM_sysprof_coroutines(L, "text", &text, &len);
      malloc_fail_at = 0;
      if (status == PROFILE_SUCCESS) {
	CHECK(strcmp(text, whole) == 0);
	free(text);
      } else {
	failed++;
	CHECK_EQ(status, PROFILE_ERRMEM);
	CHECK(text == NULL);
	CHECK(strstr(luaM_sysprof_error(), "memory") != NULL);
      }
      CHECK_EQ(malloc_live, live);
      if (malloc_calls < n) break; /* None has failed. */
    }
    printf("%ld allocations\n", n - 1);
  }
  CHECK(failed > 20);
  /* The same by the Lua API. */
  malloc_fail_all = 1;
  malloc_calls = 0;
  malloc_fail_at = 3;
  session_script(L, "result, message, code = misc.sysprof.coroutines()");
  malloc_fail_at = 0;
  session_script(
    L, "assert(result == nil and code == 12 and message:find('memory'), message)");
  free(whole);
  lua_close(L);
  return check_status();
}
