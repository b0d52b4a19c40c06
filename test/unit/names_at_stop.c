/* Names of seen functions, from the VM's globals, modules, upvalues and definitions. The
** search only reads the VM, is bounded, and survives damaged memory.
*/

#include <stdlib.h>
#include <string.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "lj_obj.h"
#include "lj_tab.h"
#include "profile/symbols/lj_heapname.h"
#include "profile/symbols/lj_symrecords.h"
#include "check.h"

#define DAMAGES 400    /* Rounds. */
#define MANY    200000 /* Functions, more than are visited. */

static FuncTab ft;
static SafeLoad pk;
static int seen;   /* Reference to the table; no name leads to it. */
static int seen_c; /* The same of C functions. */
static uint32_t seed = 4711;

static uint32_t rnd(uint32_t n)
{
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % n;
}

/* The chunk gets a table: its values are seen in the profile, by their names. */
static const char *const source =
  "local seen = ...\n"
  "local function new() return load('return function() end', '=new')() end\n"
  "local function add(name, f) seen[name] = f or new() return seen[name] end\n"
  "local M = { sub = { sub = { sub = {} } } }\n"
  "package.loaded['a.module'] = M\n"
  "global = add('global')\n"
  "M.f = add('a.module.f')\n"
  "M.sub.f = add('a.module.sub.f')\n"
  "M.sub.sub.f = add('a.module.sub.sub.f')\n"
  "alias = M\n"
  "Class = { method = add('Class.method') }\n"
  "Class.__index = Class\n"
  "Derived = setmetatable({}, { __index = { inherited = add('Derived.inherited') } })\n"
  "loop = { loop = {} } loop.loop.loop = loop loop.f = add('loop.f')\n"
  "local up = add('up')\n"
  "local hidden = { g = add('hidden.g'), [1] = add('') }\n"
  "function user() return up, hidden end\n"
  "local function defined() end\n"
  "add('defined', defined)\n"
  "list = { function() return defined end }\n"
  "keep = { { { { { add('') } } } } }\n"
  "string.own = add('string.own')\n";

/* The same of a chunk that stays: its definitions have names. */
static const char *const source_kept =
  "local seen = ...\n"
  "local function add(name, f) seen[name] = f return f end\n"
  "local M = package.loaded['a.module']\n"
  "local function encode_table() end\n"
  "encoders = { table = add('encode_table [encoders.table]', encode_table) }\n"
  "local function same() end\n"
  "M.same = add('a.module.same', same)\n"
  "local kept = {}\n"
  "local function held_only() end\n"
  "kept.other = add('held_only [kept.other]', held_only)\n"
  "function kept_user() return kept end\n"
  /* Of garbage: only a function that holds itself has a name. */
  "local function lost(text) return load(text, '=lost')() end\n"
  "M.walk = lost('local function walker() return walker end return walker')\n"
  "add('walker [a.module.walk]', M.walk)\n"
  "M.gone = lost('local function other() end return other')\n"
  "add('a.module.gone', M.gone)\n"
  /* Methods. */
  "function Class:render() end\n"
  "add('Class:render', Class.render)\n"
  "Class.plain = function(this) end\n"
  "add('Class.plain', Class.plain)\n"
  "Class.late = lost('return function(self) end')\n"
  "add('Class:late', Class.late)\n"
  "local function on_event(self) end\n"
  "Class.event = add('on_event [Class:event]', on_event)\n";

/* C functions: closures of one function. */
static const char *const source_c =
  "local seen, closure, object = ...\n"
  "local function add(name) seen[name] = closure() return seen[name] end\n"
  "c_global = add('c_global')\n"
  "package.loaded['c.module'] = { f = add('c.module.f'), sub = { f = add('c.module.sub.f') } }\n"
  "c_alias = package.loaded['c.module'].f\n"
  "twice = { b = add('twice.a|twice.b') } twice.a = twice.b\n"
  "local long = ('l'):rep(63)\n"
  "package.loaded[long] = { f = add(long .. '.') }\n" /* Cut. */
  "local up = add('up') function c_user() return up end\n"
  "whole = { f = add('whole.f') } package.loaded['whole.part'] = whole\n"
  "debug.getregistry()['a class'] = { __gc = add('a class.__gc'),\n"
  "  __index = { method = add('a class:method') } }\n"
  "local own = { method = add('c_object:method') } own.__index = own\n"
  "c_object = object own.__metatable = own debug.setmetatable(object, own)\n";

static int nothing(lua_State *L)
{
  (void)L;
  return 0;
}

static int new_closure(lua_State *L)
{
  lua_pushboolean(L, 1);
  lua_pushcclosure(L, nothing, 1);
  return 1;
}

static void make_closures(lua_State *L)
{
  lua_newtable(L);
  lua_pushvalue(L, -1);
  seen_c = luaL_ref(L, LUA_REGISTRYINDEX);
  REQUIRE(luaL_loadstring(L, source_c) == 0);
  lua_insert(L, -2);
  lua_pushcfunction(L, new_closure);
  lua_newuserdata(L, 8);
  if (lua_pcall(L, 3, 0, 0)) {
    printf("%s\n", lua_tostring(L, -1));
    REQUIRE(!"the chunk runs");
  }
}

static void check_closures(lua_State *L)
{
  int n = 0;
  lua_rawgeti(L, LUA_REGISTRYINDEX, seen_c);
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1), n++) {
    const CFuncEntry *e = cfunctab_find(&ft.cfuncs, (uintptr_t)funcV(L->top - 1),
					(uintptr_t)nothing);
    const char *name = lua_tostring(L, -2);
    char text[CFUNCTAB_TEXT_MAX];
    uint32_t len;
    REQUIRE(e != NULL);
    len = lj_cfunctab_text(&ft.cfuncs, e, text);
    if (strlen(name) != len || memcmp(name, text, len) != 0) {
      CHECK(!"name of a C function");
      printf("expected \"%s\", got \"%.*s\"\n", name, (int)len, text);
    }
  }
  lua_pop(L, 1);
  CHECK_EQ(n, 10);
}

/* Let the profile see all functions for the first time. */
static void see_all(lua_State *L)
{
  memset(&ft, 0, sizeof(ft));
  lj_safeload_reset(&pk);
  lua_rawgeti(L, LUA_REGISTRYINDEX, seen);
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
    CHECK(lj_functab_see(&ft, &pk, funcproto(funcV(L->top - 1))) != NULL);
  lua_pop(L, 1);
  lua_rawgeti(L, LUA_REGISTRYINDEX, seen_c);
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
    uintptr_t fn = (uintptr_t)funcV(L->top - 1);
    CHECK(cfunctab_see(&ft.cfuncs, fn, (uintptr_t)nothing) != NULL);
  }
  lua_pop(L, 1);
}

static void check_all(lua_State *L, int least)
{
  int n = 0;
  lua_rawgeti(L, LUA_REGISTRYINDEX, seen);
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
    const FuncEntry *fe = lj_functab_find(&ft, funcproto(funcV(L->top - 1)));
    const char *name = lua_tostring(L, -2);
    char full[2 * FUNCTAB_NAME_MAX + 4];
    REQUIRE(fe != NULL);
    n++;
    snprintf(full, sizeof(full), fe->pathlen ? "%.*s [%.*s]" : "%.*s", fe->namelen,
	     fe->name, fe->pathlen, functab_path(&ft, fe));
    if (strcmp(name, full) != 0) {
      CHECK(!"name");
      printf("expected \"%s\", got \"%s\"\n", name, full);
    }
  }
  lua_pop(L, 1);
  CHECK(n >= least);
}

/* -- Functions with two ids -------------------------------------------------- */

static int is_seen(const FuncEntry *fe)
{
  return fe->fid != 0 && fe->pt != NULL;
}

static int same_name(const FuncEntry *a, const FuncEntry *b)
{
  return a->namelen == b->namelen && a->pathlen == b->pathlen &&
	 memcmp(a->name, b->name, a->namelen) == 0 &&
	 memcmp(functab_path(&ft, a), functab_path(&ft, b), a->pathlen) == 0;
}

static void name_call(FuncEntry *fe, const char *name)
{
  NamePart part = { name, (uint32_t)strlen(name) };
  lj_functab_setname(fe, NAME_CALL, &part, 1);
}

static int commit(void *ctx)
{
  return lj_wbuf_commit((WBuf *)ctx);
}

/* Bytes of the names that a session writes. */
static size_t put_names(Symtab *st)
{
  static uint8_t buf[256 * 1024];
  static WBuf wb;
  CodeStarts none = { NULL, NULL, NULL };
  DefSink to = { &wb, commit, &wb };
  size_t empty;
  lj_wbuf_init(&wb, buf, sizeof(buf), 0, NULL, NULL);
  empty = wb.pos;
  st->named = &ft;
  st->has_funcs = 1;
  lj_symrecords_put(st, &none, &to);
  return wb.pos - empty;
}

/* Each function has a second id, because the table missed the first one. Calls have named it
** differently. Both ids have the same name at the stop, and once in the stream.
*/
static void check_two_ids(lua_State *L)
{
  static Symtab st;
  static SymtabMore more;
  uint32_t n, i, k, pairs = 0;
  memset(&st, 0, sizeof(st));
  memset(&more, 0, sizeof(more));
  st.more = &more;
  see_all(L);
  n = ft.nfid;
  memset(ft.index, 0, sizeof(ft.index));
  lua_rawgeti(L, LUA_REGISTRYINDEX, seen);
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
    CHECK(lj_functab_see(&ft, &pk, funcproto(funcV(L->top - 1))) != NULL);
  lua_pop(L, 1);
  for (i = 0; i < FUNCTAB_FUNCS; i++)
    if (is_seen(&ft.func[i])) name_call(&ft.func[i], ft.func[i].fid > n ? "late" : "early");
  CHECK(put_names(&st) != 0);
  CHECK(lj_heapname_find(&ft, &pk, G(L)));
  for (i = 0; i < FUNCTAB_FUNCS; i++)
    for (k = 0; k < i; k++) {
      const FuncEntry *a = &ft.func[i], *b = &ft.func[k];
      if (!is_seen(a) || a->pt != b->pt) continue;
      pairs++;
      CHECK(same_name(a, b));
      CHECK(a->rank > NAME_CALL || b->rank > NAME_CALL);
    }
  CHECK_EQ(pairs, n);
  for (i = 0; i < FUNCTAB_FUNCS; i++)
    if (is_seen(&ft.func[i])) CHECK_EQ(symtab_def(&st, ft.func[i].fid)->rank, NAME_CALL);
  CHECK(put_names(&st) != 0);
  for (i = 0; i < FUNCTAB_FUNCS; i++)
    if (is_seen(&ft.func[i]))
      CHECK_EQ(symtab_def(&st, ft.func[i].fid)->rank, ft.func[i].rank);
  CHECK_EQ(put_names(&st), 0);

  /* The memory of a prototype has become another one's, which no sample has seen. */
  ft.func[1].key++;
  CHECK(lj_heapname_find(&ft, &pk, G(L)));
  CHECK(ft.func[1].pt == NULL);
}

/* Change an object a little, look for names, change it back. */
static void damage(lua_State *L, void *o, uint32_t size)
{
  uint8_t saved[256];
  int i;
  REQUIRE(size <= sizeof(saved));
  memcpy(saved, o, size);
  for (i = (int)rnd(4); i >= 0; i--) ((uint8_t *)o)[rnd(size)] ^= (uint8_t)(1u << rnd(8));
  lj_safeload_reset(&pk);
  lj_heapname_find(&ft, &pk, G(L));
  memcpy(o, saved, size);
}

static void damage_all(lua_State *L)
{
  GCtab *env = tabref(L->env);
  int i;
  for (i = 0; i < DAMAGES; i++) {
    Node *n = noderef(env->node) + rnd(env->hmask + 1);
    see_all(L);
    switch (rnd(7)) {
    case 0: damage(L, env, sizeof(GCtab)); break;
    case 1: damage(L, n, sizeof(Node)); break;
    case 2:
      if (tvistab(&n->val)) damage(L, tabV(&n->val), sizeof(GCtab));
      break;
    case 3:
      if (tvisfunc(&n->val) && isluafunc(funcV(&n->val)))
	damage(L, funcV(&n->val), offsetof(GCfuncL, uvptr));
      break;
    case 4:
      if (tvisfunc(&n->val) && iscfunc(funcV(&n->val)))
	damage(L, funcV(&n->val), offsetof(GCfuncC, upvalue));
      break;
    case 5: {
      GCudata *ud;
      lua_getglobal(L, "c_object");
      ud = udataV(L->top - 1);
      lua_pop(L, 1);
      if (rnd(2)) damage(L, ud, sizeof(GCudata));
      else damage(L, tabref(ud->metatable), sizeof(GCtab));
      break;
    }
    default:
      if (tvisfunc(&n->val) && isluafunc(funcV(&n->val)))
	damage(L, funcproto(funcV(&n->val)), sizeof(GCproto));
      break;
    }
  }
}

/* Run a chunk. global: name of a variable that keeps it, or NULL. */
static void run(lua_State *L, const char *text, const char *global)
{
  if (luaL_loadstring(L, text)) {
    printf("FAILED: %s\n", lua_tostring(L, -1));
    exit(1);
  }
  if (global) {
    lua_pushvalue(L, -1);
    lua_setglobal(L, global);
  }
  lua_rawgeti(L, LUA_REGISTRYINDEX, seen);
  if (lua_pcall(L, 1, 0, 0)) {
    printf("FAILED: %s\n", lua_tostring(L, -1));
    exit(1);
  }
}

int main(void)
{
  lua_State *L = luaL_newstate();
  int i;
  REQUIRE(L != NULL);
  luaL_openlibs(L);
  lua_newtable(L);
  seen = luaL_ref(L, LUA_REGISTRYINDEX);
  run(L, source, NULL);
  run(L, source_kept, "keeper");
  make_closures(L);
  lua_gc(L, LUA_GCCOLLECT, 0); /* Also main chunks and what defined new(). */
  see_all(L);
  CHECK(lj_heapname_find(&ft, &pk, G(L)));
  check_all(L, 20);
  check_closures(L);
  lj_safeload_reset(&pk);
  CHECK(lj_heapname_find(&ft, &pk, G(L))); /* As a dump, and then a stop. */
  check_all(L, 20);
  check_closures(L);

  check_two_ids(L);
  damage_all(L);
  see_all(L);
  lj_heapname_find(&ft, &pk, G(L));
  check_all(L, 20);
  check_closures(L);

  /* Nothing of it is the VM's: not a byte more. */
  i = lua_gc(L, LUA_GCCOUNT, 0) * 1024 + lua_gc(L, LUA_GCCOUNTB, 0);
  lj_heapname_find(&ft, &pk, G(L));
  CHECK_EQ(lua_gc(L, LUA_GCCOUNT, 0) * 1024 + lua_gc(L, LUA_GCCOUNTB, 0), i);

  /* So many that not all are visited. */
  lua_pushinteger(L, MANY);
  lua_setglobal(L, "MANY");
  CHECK_EQ(luaL_dostring(L,
			 "many = {} for i = 1, MANY do "
			 "many['f'..i] = function() return many end end "
			 "deep = {} local t = deep for i = 1, 1e5 do t.t = {} t = t.t end"),
	   0);
  see_all(L);
  lj_heapname_find(&ft, &pk, G(L));
  CHECK(lj_functab_find(&ft, NULL) == NULL);

  /* A definition behind so many instructions that not all are read. */
  lua_rawgeti(L, LUA_REGISTRYINDEX, seen);
  lua_setglobal(L, "seen");
  CHECK_EQ(luaL_dostring(
	     L, "many, deep = nil "
		"for name in pairs(seen) do seen[name] = nil end "
		"long = loadstring('local function near() end ' .. ('x = 1 '):rep(1.1e6) "
		".. 'local function far() end return near, far') "
		"local t = seen seen = nil "
		"t.near, t[''] = long()"),
	   0);
  see_all(L);
  lj_heapname_find(&ft, &pk, G(L));
  check_all(L, 2);

  /* A function that is only on the stack, and its upvalue. */
  lua_rawgeti(L, LUA_REGISTRYINDEX, seen);
  lua_setglobal(L, "seen");
  CHECK_EQ(luaL_loadstring(L,
			   "local held = loadstring('return function() end', '=held')() "
			   "seen.held = held seen = nil return function() return held end"),
	   0);
  CHECK_EQ(lua_pcall(L, 0, 1, 0), 0);
  see_all(L);
  lj_heapname_find(&ft, &pk, G(L));
  check_all(L, 3);
  lua_close(L);
  return check_status();
}
