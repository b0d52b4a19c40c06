/* The body hash of a function is the same before and after it ran, with the JIT or without, from
** source or from bytecode, in each VM. Another body has another hash. A function gets one whatever
** functions were hashed before it.
*/

#include <string.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "lj_obj.h"
#include "lj_bc.h"
#include "profile/symbols/lj_bodyhash.h"
#include "profile/symbols/lj_heapname.h"
#include "check.h"

static FuncTab ft;
static SafeLoad pk;

/* Height of the function that pop_body saw last. */
static uint8_t height;

/* Body of the function on the top of the stack, which it pops; 0 for none. */
static uint64_t pop_body(lua_State *L)
{
  FuncEntry *fe;
  memset(&ft, 0, sizeof(ft));
  lj_safeload_reset(&pk);
  fe = lj_functab_see(&ft, &pk, funcproto(funcV(L->top - 1)));
  REQUIRE(fe != NULL);
  CHECK(lj_heapname_find(&ft, &pk, G(L)));
  CHECK(fe->pt != NULL);
  lua_pop(L, 1);
  height = fe->height;
  return fe->body;
}

static lua_State *new_vm(int jit)
{
  lua_State *L = luaL_newstate();
  REQUIRE(L != NULL);
  luaL_openlibs(L);
  if (!jit) REQUIRE(luaL_dostring(L, "jit.off()") == 0);
  return L;
}

/* Push the function that a chunk returns. */
static void push_function(lua_State *L, const char *source, const char *name)
{
  if (luaL_loadbuffer(L, source, strlen(source), name) || lua_pcall(L, 0, 1, 0)) {
    printf("%s\n%s\n", source, lua_tostring(L, -1));
    REQUIRE(!"the source returns a function");
  }
}

static uint64_t body_in(lua_State *L, const char *source, const char *name)
{
  push_function(L, source, name);
  return pop_body(L);
}

/* -- Patched instructions ------------------------------------------------------ */

/* Functions that the VM patches when they run. */
static const char *const hot[] = {
  "return function() local s = 0 for i = 1, 1e4 do s = s + i end return s end",
  "return function() local s = 0 for k = 1, 300 do for i = 1, 300 do s = s + i * k end end end",
  "return function() local i = 0 while i < 1e4 do i = i + 1 end end",
  "return function() local i = 0 repeat i = i + 1 until i > 1e4 end",
  "local t = {} for i = 1, 1e4 do t[i] = i end\n"
  "return function() local s = 0 for _, v in ipairs(t) do s = s + v end return s end",
  "local t = {} for i = 1, 1e4 do t['k' .. i] = i end\n"
  "return function() local s = 0 for _, v in pairs(t) do s = s + v end return s end",
  "local t = {} for i = 1, 1e4 do t[i] = i end\n"
  "return function() local s = 0 for _, v in next, t do s = s + v end return s end",
  "local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end\n"
  "jit.off() fib(3) jit.on() return function(n) if n == nil then fib(20) end return fib end",
  "local f f = function(n) if not n then n = 150 for i = 1, 200 do f(n) end end\n"
  "  if n == 0 then return 0 end return 1 + f(n - 1) end return f",
  /* What the compiler refuses. */
  "return function() local f for i = 1, 1e4 do f = function() return i end end return f end",
  "return function() local i = 0 while i < 1e4 do i = i + 1 local f = function() end end end",
  "local t = {} for i = 1, 1e4 do t[i] = i end\n"
  "return function() for _, v in ipairs(t) do local f = function() end end end",
  "local t = {} for i = 1, 1e4 do t['k' .. i] = i end\n"
  "return function() for _, v in pairs(t) do local f = function() end end end",
  /* No pairs(). */
  "local t = {} for i = 1, 1e4 do t[i] = i end\n"
  "local function pairs(t) return function(t, i) i = i + 1 if t[i] then return i, t[i] end end, t, 0 end\n"
  "return function() local s = 0 for _, v in pairs(t) do s = s + v end return s end",
};

/* Sources whose function is called often by an interpreted caller. */
static const char *const called[] = {
  "return function(a) return a end",
  "return function(...) return (select('#', ...)) end",
  "return function() return function() end end",
  "return function(...) local f = function() end return f, ... end",
};

static int ran[BC__MAX]; /* Opcodes of functions that ran. */

static void note_opcodes(const GCproto *pt)
{
  BCPos i;
  for (i = 0; i < pt->sizebc; i++) {
    BCOp op = bc_op(proto_bc(pt)[i]);
    REQUIRE(op < BC__MAX);
    ran[op]++;
  }
}

/* A caller without compiled code: so its callees get hot. */
static const char *const caller =
  "local function call(f, n) for i = 1, n do f() end end jit.off(call) return call";

static void check_runs(lua_State *plain, lua_State *L, const char *source, int calls)
{
  uint64_t expected = body_in(plain, source, "@other.lua");
  CHECK(expected != 0);
  push_function(L, source, "@this.lua");
  lua_pushvalue(L, -1);
  CHECK(pop_body(L) == expected);
  push_function(L, caller, "=caller");
  lua_pushvalue(L, -2);
  lua_pushinteger(L, calls);
  if (lua_pcall(L, 2, 0, 0)) {
    printf("%s\n", lua_tostring(L, -1));
    REQUIRE(!"the function runs");
  }
  note_opcodes(funcproto(funcV(L->top - 1)));
  if (pop_body(L) != expected) {
    CHECK(!"the same body");
    printf("%s\n", source);
  }
}

static void check_patched(void)
{
  /* The others of their kind never occur: functions with varying arguments do not get hot. */
  static const BCOp patched[] = { BC_JFORL, BC_JFORI, BC_JITERL, BC_JLOOP, BC_JFUNCF,
				  BC_IFORL, BC_ILOOP, BC_IITERL, BC_IFUNCF };
  lua_State *plain = new_vm(0), *L = new_vm(1);
  uint32_t i;
  for (i = 0; i < sizeof(hot) / sizeof(hot[0]); i++) {
    check_runs(plain, L, hot[i], 20);
    CHECK_EQ(luaL_dostring(L, "jit.flush()"), 0);
  }
  for (i = 0; i < sizeof(called) / sizeof(called[0]); i++)
    check_runs(plain, L, called[i], 200000);
  for (i = 0; i < sizeof(patched) / sizeof(patched[0]); i++) {
    CHECK(ran[patched[i]]); /* Else the test shows nothing. */
    if (!ran[patched[i]]) printf("no function has the opcode %d\n", (int)patched[i]);
  }
  lua_close(plain);
  lua_close(L);
}

/* With LUAJIT_ENABLE_TABLE_BUMP, the JIT also changes the size of a new table. */
static void check_bumped(void)
{
  lua_State *L = new_vm(1);
  const char *source = "return function() return {} end";
  uint64_t expected = body_in(L, source, "=a");
  GCproto *pt;
  BCPos i;
  push_function(L, source, "=b");
  pt = funcproto(funcV(L->top - 1));
  for (i = 0; i < pt->sizebc; i++)
    if (bc_op(proto_bc(pt)[i]) == BC_TNEW) setbc_d(&proto_bc(pt)[i], 5 | 2 << 11);
  CHECK(expected != 0 && pop_body(L) == expected);
  lua_close(L);
}

/* -- What counts ---------------------------------------------------------------- */

#define F "return function(a, b) "

static const char *const differ[] = {
  "return function() end",
  "return function(a) end",
  "return function(...) end",
  F "return a + b end",
  F "return a - b end",
  F "return b + a end",
  F "return a + 1 end",
  F "return a + 2 end",
  F "return a + 0.5 end",
  F "return a .. 'x' end",
  F "return a .. 'y' end",
  F "return a.x end",
  F "return a.y end",
  F "return 1LL end",
  F "return 2LL end",
  F "return 2ULL end",
  F "return 2i end",
  F "return {1, 2, 3} end",
  F "return {1, 2, 4} end",
  F "return {x = 1} end",
  F "return {x = 2} end",
  F "return {y = 1} end",
  F "return {x = true} end",
  F "return {x = false} end",
  F "return {[true] = 1} end",
  F "return function() return 1 end end",
  F "return function() return 2 end end",
  F "return function(c) return 2 end end",
  F "return function() return a end end",
  F "return function() return a, b end end",
  F "for i = a, b do print(i) end end",
  F "for i in a, b do print(i) end end",
  F "while a do print(b) end end",
  F "repeat print(b) until a end",
  "local a, b return function() return a end",
  "local a, b return function() return a, b end",
  "local slow, fast return function(n) return slow(n) end",
  "local slow, fast return function(n) return fast(n) end",
  "local slow return (function() return function(n) return slow(n) end end)()",
  "local slow, fast return function() return function(n) return slow(n) end end",
  "local slow, fast return function() return function(n) return fast(n) end end",
};

/* Without debug information, these are equal to one before. */
static int is_equal_stripped(const char *source)
{
  return strstr(source, "fast(n)") != NULL;
}

static const char *const alike[][2] = {
  { F "return a + b end", "-- A comment.\n\n" F "\n-- another\nreturn a + b end" },
  { F "return a + b end", "return function(x, y) return x + y end" },
  { "local u return function() return u end",
    "local v, u = 1, 2 return function() return u end" },
  { "local u return function() return u end",
    "local u = 1 u = 2 return function() return u end" },
  { F "local c = a return c end", F "local d = a return d end" },
  { "local function f() return 1 end return f", "return function() return 1 end" },
};

static uint64_t body_of(const char *source)
{
  lua_State *L = new_vm(1);
  uint64_t body = body_in(L, source, "=any");
  lua_close(L);
  return body;
}

/* From bytecode with debug information. Returns the body without. */
static uint64_t check_dumped(const char *source, uint64_t expected)
{
  lua_State *L = new_vm(1);
  uint64_t stripped = 0;
  int strip;
  for (strip = 0; strip <= 1; strip++) {
    CHECK_EQ(luaL_dostring(
	       L, strip ? "return function(s) return string.dump(loadstring(s), true) end"
			: "return function(s) return string.dump(loadstring(s)) end"),
	     0);
    lua_pushstring(L, source);
    REQUIRE(lua_pcall(L, 1, 1, 0) == 0);
    {
      size_t size;
      const char *code = lua_tolstring(L, -1, &size);
      REQUIRE(luaL_loadbuffer(L, code, size, "=dumped") == 0 && lua_pcall(L, 0, 1, 0) == 0);
    }
    if (!strip) CHECK(pop_body(L) == expected);
    else stripped = pop_body(L);
  }
  lua_close(L);
  return stripped;
}

static void check_content(void)
{
  enum { N = sizeof(differ) / sizeof(differ[0]) };
  uint64_t body[N], stripped[N];
  uint32_t i, k;
  for (i = 0; i < N; i++) {
    body[i] = body_of(differ[i]);
    CHECK(body[i] != 0);
    stripped[i] = check_dumped(differ[i], body[i]);
    CHECK(stripped[i] != 0);
    for (k = 0; k < i; k++)
      if (body[k] == body[i] || (stripped[k] == stripped[i]) !=
				  (is_equal_stripped(differ[i]) &&
				   i == k + (strstr(differ[k], "slow, fast") != NULL))) {
	CHECK(!"another body");
	printf("%s\n%s\n", differ[k], differ[i]);
      }
  }
  for (i = 0; i < sizeof(alike) / sizeof(alike[0]); i++)
    if (body_of(alike[i][0]) != body_of(alike[i][1])) {
      CHECK(!"the same body");
      printf("%s\n", alike[i][1]);
    }
}

/* -- Bounds ---------------------------------------------------------------------- */

static void nested(char *to, int depth, const char *inside)
{
  int i;
  *to = '\0';
  for (i = 0; i < depth; i++) strcat(to, "return function() ");
  strcat(to, inside);
  for (i = 0; i < depth; i++) strcat(to, " end");
}

/* Nested functions. All are on the stack, so the table has all. */
static void check_levels(int depth)
{
  static char source[4096];
  FuncEntry *fe[64];
  lua_State *L = new_vm(1);
  int order, i, k;
  nested(source, depth, "return 1");
  push_function(L, source, "=nested");
  for (i = 1; i < depth; i++) {
    lua_pushvalue(L, -1);
    REQUIRE(lua_pcall(L, 0, 1, 0) == 0);
  }
  for (order = 0; order < 3; order++) {
    memset(&ft, 0, sizeof(ft));
    lj_safeload_reset(&pk);
    for (i = 0; i < depth; i++) {
      k = order == 0 ? i : order == 1 ? depth - 1 - i : (i * 7 + 3) % depth;
      fe[k] = lj_functab_see(&ft, &pk, funcproto(funcV(L->top - depth + k)));
      REQUIRE(fe[k] != NULL);
      /* The hash may also come in parts. */
      if (i == depth / 2) CHECK(lj_heapname_find(&ft, &pk, G(L)));
    }
    CHECK(lj_heapname_find(&ft, &pk, G(L)));
    for (k = 0; k < depth; k++) {
      int levels = depth - k;
      CHECK_EQ(fe[k]->height, levels <= BODYHASH_LEVELS ? levels : FUNC_NO_BODY);
      CHECK((fe[k]->body != 0) == (levels <= BODYHASH_LEVELS));
    }
  }
  lua_close(L);
}

/* Push a function whose tables have so many strings each. */
static void push_tables(lua_State *L, int tables, int strings)
{
  CHECK_EQ(luaL_dostring(L, "return function(tables, n)\n"
			    "  local t = '{' .. ('\"x\",'):rep(n) .. '},'\n"
			    "  return assert(loadstring('return function() return ' ..\n"
			    "    t:rep(tables) .. 'nil end', '=tables'))()\n"
			    "end"),
	   0);
  lua_pushinteger(L, tables);
  lua_pushinteger(L, strings);
  REQUIRE(lua_pcall(L, 2, 1, 0) == 0);
}

/* See the function on the top of the stack. */
static FuncEntry *see_top(lua_State *L)
{
  FuncEntry *fe = lj_functab_see(&ft, &pk, funcproto(funcV(L->top - 1)));
  REQUIRE(fe != NULL);
  return fe;
}

/* The work of a call has a limit. The next call goes on. A function is tried once. */
static void check_work(void)
{
  enum { N = 12, STRINGS = BODYHASH_WORK / 256 / 6 };
  lua_State *L = new_vm(1);
  FuncEntry *large, *fe[N];
  int i, n = 0, before, calls = 0;
  REQUIRE(lua_checkstack(L, N + 10));
  memset(&ft, 0, sizeof(ft));
  lj_safeload_reset(&pk);
  push_tables(L, 8, STRINGS);
  large = see_top(L);
  for (i = 0; i < N; i++) {
    push_tables(L, 1, STRINGS);
    fe[i] = see_top(L);
  }
  do {
    before = n;
    CHECK(lj_heapname_find(&ft, &pk, G(L)));
    CHECK_EQ(large->height, FUNC_NO_BODY);
    for (i = n = 0; i < N; i++) n += fe[i]->body != 0;
    REQUIRE(++calls == 1 ? n == 0 : n > before);
  } while (n < N);
  CHECK(calls > 2);
  lua_close(L);
}

static void check_bounds(void)
{
  char one[4096], other[4096];
  static char text[2][3 * BODYHASH_STRING];
  static const char head[] = "return function() return '";
  int i;
  nested(one, BODYHASH_LEVELS, "return 1");
  nested(other, BODYHASH_LEVELS, "return 2");
  CHECK(body_of(one) != 0 && body_of(one) != body_of(other));
  nested(one, BODYHASH_LEVELS + 1, "return 1");
  CHECK(body_of(one) == 0);
  check_levels(BODYHASH_LEVELS);
  check_levels(BODYHASH_LEVELS + 1);
  check_levels(2 * BODYHASH_LEVELS + 5);
  check_work();
  /* A long constant counts by its beginning, its end and its length. */
  for (i = 0; i < 2; i++) {
    strcpy(text[i], head);
    memset(text[i] + strlen(text[i]), 'x', 2 * BODYHASH_STRING);
    strcat(text[i], "' end");
  }
  CHECK(body_of(text[0]) == body_of(text[1]));
  text[1][100] = 'y';
  CHECK(body_of(text[0]) != body_of(text[1]));
  text[1][100] = 'x';
  for (i = 1; i <= 2; i++) {
    char *p = text[1] + sizeof(head) - 1 + 2 * BODYHASH_STRING -
	      (i == 1 ? BODYHASH_TAIL : BODYHASH_TAIL + 1);
    *p = 'y';
    CHECK((body_of(text[0]) == body_of(text[1])) == (i == 2));
    *p = 'x';
  }
  memmove(text[1] + 101, text[1] + 100, strlen(text[1] + 100) + 1);
  CHECK(body_of(text[0]) != body_of(text[1]));
}

int main(void)
{
  check_patched();
  check_bumped();
  check_content();
  check_bounds();
  return check_status();
}
