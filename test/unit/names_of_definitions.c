/* The variable or field that stores a function, from the bytecode and debug information
** of the function around it. Also from damaged ones.
*/

#include <string.h>

#include "lua.h"
#include "lauxlib.h"
#include "lj_obj.h"
#include "lj_bc.h"
#include "profile/symbols/lj_bcname.h"
#include "check.h"

#define ROUNDS 1000

/* The functions by line, from 2 on. */
static const char *const source =
  "local t, M, later = {}, { sub = {} }\n"
  "local function a() end\n"
  "local b = function() end\n"
  "c = function() end\n"
  "function d() end\n"
  "function M.e() end\n"
  "function M:f() end\n"
  "function M.sub.g() end\n"
  "function G.h() end\n"
  "_G.i = function() end\n"
  "later = function() end\n"
  "local u = {}; local function j() later = function() end end\n"
  "local function k() function M.inner() end end\n"
  "M['any key'] = function() end\n"
  "local T = { field = function() end }\n"
  "t[1] = function() end\n"
  "t[later] = function() end\n"
  "later(function() end)\n"
  "M.x = later(function() end)\n"
  "local l, m = function() end,\n"
  "             function() end\n"
  "local n = n or function() end\n"
  "setmetatable(t, { __index = function() end })\n"
  "return function() end\n";

static const struct {
  int line;
  const char *name;
} expected[] = { { 2, "a" },          { 3, "b" },        { 4, "c" },       { 5, "d" },
		 { 6, "M.e" },        { 7, "M.f" },      { 8, "M.sub.g" }, { 9, "G.h" },
		 { 10, "i" },         { 11, "later" },   { 12, "j" },      { 13, "k" },
		 { 14, "M.any key" }, { 15, "field" },   { 16, "" },       { 17, "" },
		 { 18, "" },          { 19, "" },        { 20, "l" },      { 21, "m" },
		 { 22, "n" },         { 23, "__index" }, { 24, "" } };

static SafeLoad pk;
static uint32_t seed = 12345;

static uint32_t rnd(uint32_t n)
{
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % n;
}

static const char *join(const NamePart *part, uint32_t n)
{
  static char buf[NAMEPATH_MAX * (FUNCTAB_NAME_MAX + 1) + 1];
  char *p = buf;
  uint32_t i;
  for (i = 0; i < n; i++) {
    if (i) *p++ = '.';
    memcpy(p, part[i].s, part[i].len);
    p += part[i].len;
  }
  *p = '\0';
  return buf;
}

static void check_names(const GCproto *pt)
{
  NamePart part[NAMEPATH_MAX];
  unsigned nfound = 0, i;
  BCPos pos;
  BCIns ins;
  for (pos = 1; lj_bcname_ins(&pk, pt, pos, &ins); pos++) {
    const GCproto *child;
    const char *name;
    if (bc_op(ins) != BC_FNEW) continue;
    child = gco2pt(proto_kgc(pt, ~(ptrdiff_t)bc_d(ins)));
    name = join(part, lj_bcname_new(&pk, pt, pos, part));
    CHECK_EQ(lj_bcname_isself(&pk, child), child->firstline == 7); /* M:f. */
    for (i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
      if (expected[i].line == child->firstline) {
	nfound++;
	CHECK(strcmp(name, expected[i].name) == 0);
	if (strcmp(name, expected[i].name) != 0)
	  printf("line %d: \"%s\"\n", expected[i].line, name);
      }
    if (child->firstline == 12 || child->firstline == 13) {
      /* The function within, by upvalues. */
      const char *want = child->firstline == 12 ? "later" : "M.inner";
      BCPos q;
      for (q = 1; lj_bcname_ins(&pk, child, q, &ins); q++)
	if (bc_op(ins) == BC_FNEW) {
	  name = join(part, lj_bcname_new(&pk, child, q, part));
	  CHECK(strcmp(name, want) == 0);
	}
    }
  }
  CHECK_EQ(nfound, sizeof(expected) / sizeof(expected[0]));
}

/* Ask for everything; the answers do not matter. */
static void ask_all(const GCproto *pt)
{
  NamePart part[NAMEPATH_MAX];
  NamePath path;
  BCPos pos;
  BCIns ins;
  for (pos = 0; pos < 200 && pos < pt->sizebc; pos++) {
    lj_bcname_new(&pk, pt, pos, part);
    if (lj_bcname_ins(&pk, pt, pos, &ins)) {
      lj_bcname_slot(&pk, pt, pos, bc_a(ins), &path);
      CHECK(path.n <= NAMEPATH_MAX);
      CHECK(lj_bcname_join(&path, part) <= NAMEPATH_MAX);
    }
  }
  lj_bcname_upval(&pk, pt, rnd(300), part);
  lj_bcname_isself(&pk, pt);
}

static void damage(GCproto *pt)
{
  static uint8_t saved[65536];
  size_t size = pt->sizept, from = offsetof(GCproto, k);
  int round, i;
  REQUIRE(size <= sizeof(saved));
  memcpy(saved, pt, size);
  for (round = 0; round < ROUNDS; round++) {
    for (i = (int)rnd(8); i >= 0; i--)
      ((uint8_t *)pt)[from + rnd((uint32_t)(size - from))] ^= 1u << rnd(8);
    if (rnd(4) == 0) /* Anywhere near, where memory may be unreadable. */
      setmref(pt->varinfo, (char *)pt + (int)rnd(1u << 20) - (1 << 19));
    if (rnd(4) == 0) pt->sizept = rnd(1u << 30);
    ask_all(pt);
    memcpy(pt, saved, size);
  }
}

int main(void)
{
  lua_State *L = luaL_newstate();
  GCproto *pt;
  REQUIRE(L != NULL);
  REQUIRE(luaL_loadbuffer(L, source, strlen(source), "=source") == 0);
  pt = funcproto(funcV(L->top - 1));
  lj_safeload_reset(&pk);
  check_names(pt);
  damage(pt);
  check_names(pt);
  lua_close(L);
  return check_status();
}
