/* TIMEOUT: 600
** A signal handler requests safe points at any time. They come, and the program does the
** same as without: with the compiler, without it, while that changes, in hooks,
** finalizers and coroutines. Afterwards no request is left.
*/

#include <stdio.h>
#include <string.h>

#include "safepoints.h"

#define INTERVAL_US 40 /* At most so often. */
#define ROUNDS      100

/* Each returns a text that is the same each time. */
static const char *const programs[] = {
  "local function fib(n) return n < 2 and n or fib(n-1) + fib(n-2) end return fib(20)",
  "local t = {} for i = 1, 20000 do t[#t+1] = (i * 7919) % 1009 end "
  "local s = 0 for i, v in ipairs(t) do s = (s * 31 + v) % 1000003 end return s",
  "local t = {} for i = 1, 300 do t[i] = (i * 7919) % 1009 end "
  "table.sort(t, function(a, b) return a < b end) return table.concat(t, ',')",
  "local n = 0 for i = 1, 400 do local ok, e = pcall(function() error({i}) end) "
  "if not ok then n = n + e[1] end end return n",
  "local co = coroutine.wrap(function() local i = 0 while true do i = i + 1 "
  "coroutine.yield(i) end end) local s = 0 for i = 1, 500 do s = s + co() end return s",
  "return (('x'):rep(500):gsub('x', function(c) return c:upper() .. '1' end))",
  /* Finalizers. */
  "local n = 0 for i = 1, 200 do local u = newproxy(true) "
  "getmetatable(u).__gc = function() for k = 1, 10 do n = n + k end end u = nil "
  "if i % 20 == 0 then collectgarbage() end end collectgarbage() return n",
  /* Hooks that change the dispatch table; compiled code has no hooks. */
  "local calls, count = 0, 0 local function f(i) return i * 2 end jit.off(f) "
  "local function run(k) debug.sethook(function(e) calls = calls + 1 end, 'c') "
  "f(k) f(k) debug.sethook() "
  "debug.sethook(function() count = count + 1 end, '', 1) f(k) debug.sethook() end "
  "jit.off(run) for k = 1, 20 do run(k) end return calls .. ' ' .. count",
  "local lines = {} local function run() "
  "debug.sethook(function(_, l) lines[#lines+1] = l end, 'l')\n"
  "local x = 0\nfor i = 1, 30 do\nx = x + i\nend\ndebug.sethook() end\n"
  "jit.off(run) run() return table.concat(lines, ' ')",
  /* The compiler is switched, its code thrown away. */
  "local s = 0 for i = 1, 30 do if jit.status() then jit.off() jit.on() end "
  "for k = 1, 200 do s = s + k % 7 end if jit.status() then jit.flush() end end return s",
  "local s = 0 if jit.status() then jit.opt.start('hotloop=1', 'hotexit=1') end "
  "for i = 1, 3000 do if i % 3 == 0 then s = s + i elseif i % 5 == 0 then s = s - 1 "
  "else s = s + ('' .. i):len() end end "
  "if jit.status() then jit.opt.start('hotloop=56', 'hotexit=10') end return s",
  /* The compiler reports its events. */
  "local n = 0 local f = function(what) n = n + 1 end if jit.status() then "
  "jit.flush() jit.attach(f, 'trace') end local s = 0 for i = 1, 5000 do s = s + i % 3 end "
  "jit.attach(f) return s"
};
#define NPROGRAM (int)(sizeof(programs) / sizeof(programs[0]))

static void result(lua_State *L, int i, char *buf, size_t len)
{
  const char *s;
  if (luaL_dostring(L, programs[i]) != 0) printf("program %d: ", i);
  s = lua_tostring(L, -1);
  REQUIRE(s != NULL);
  snprintf(buf, len, "%s", s);
  lua_settop(L, 0);
}

static void compare(lua_State *L, const char *mode)
{
  static char expected[NPROGRAM][4096], got[4096];
  int i, k;
  REQUIRE(luaL_dostring(L, mode) == 0);
  for (i = 0; i < NPROGRAM; i++) result(L, i, expected[i], sizeof(expected[i]));
  safepoints_begin(INTERVAL_US);
  for (k = 0; k < ROUNDS; k++)
    for (i = 0; i < NPROGRAM; i++) {
      result(L, i, got, sizeof(got));
      if (strcmp(got, expected[i]) != 0) {
	printf("%s, program %d: '%.80s', expected '%.80s'\n", mode, i, got, expected[i]);
	CHECK(!"the same result");
      }
    }
  safepoints_end(L, mode);
}

int main(void)
{
  lua_State *L = safepoints_new();
  compare(L, "jit.off()");
  compare(L, "jit.on()");
  lua_close(L);
  return check_status();
}
