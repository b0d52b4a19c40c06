/*
** Labels of coroutines for Lua: misc.sysprof.label, misc.sysprof.labelset.
** Context: VM thread.
*/

#define lj_labelapi_c
#define LUA_LIB

#include <string.h>

#include "lua.h"
#include "lauxlib.h"
#include "lmisclib.h"

#include "lj_obj.h"
#include "lj_dispatch.h"
#include "lj_frame.h"
#include "lj_tab.h"
#include "profile/api/lj_labelapi.h"
#include "profile/base/lj_cleantext.h"
#include "profile/labels/lj_labels.h"
#include "profile/session/lj_registry.h"

#define OBJECT_MAGIC 0x6c6a6c73u
#define OBJECT_AGAIN 1 /* With number 0: no set has it. */

/* The userdata of a set. If the number has another set now, its bytes make it again. */
typedef struct LabelObject {
  uint32_t magic;
  uint32_t number, id; /* Of the set; both 0: no labels. */
  uint32_t len;        /* Bytes of payload. */
  global_State *g;
  uint8_t payload[1];
} LabelObject;

/* Upvalues of both functions. */
enum { UP_OBJECTS, UP_META };
#define OBJECTS_FIRST 64 /* Of so many sets, the table has its array. */

/* -- Handles of C code ------------------------------------------------------- */

#define HANDLE_BITS 13 /* Of the number; the others are of the set's id. */
LJ_STATIC_ASSERT(LABELS_SETS + LABELS_OTHER < 1 << HANDLE_BITS);

static uint32_t handle_of(const Labels *ls, uint32_t number)
{
  return ls->id[number] << HANDLE_BITS | number;
}

uint32_t lj_labelapi_lend(lua_State *L, uint32_t number)
{
  Labels *ls = L2GG(L)->labels;
  if (number == 0) return 0;
  ls->lent[number]++;
  return handle_of(ls, number);
}

int lj_labelapi_number(lua_State *L, uint32_t handle, uint32_t *number)
{
  const Labels *ls = L2GG(L)->labels;
  *number = handle & ((1u << HANDLE_BITS) - 1);
  if (handle == 0) return 1;
  return ls && *number != 0 && *number < ls->used && ls->refs[*number] != 0 &&
	 handle_of(ls, *number) == handle;
}

int lj_labelapi_release(lua_State *L, uint32_t handle)
{
  Labels *ls = L2GG(L)->labels;
  uint32_t number;
  if (!lj_labelapi_number(L, handle, &number)) return 0;
  if (number == 0) return 1;
  if (ls->lent[number] == 0) return 0;
  ls->lent[number]--;
  labels_release(ls, number);
  return 1;
}

/* -- Userdata ---------------------------------------------------------------- */

static cTValue *upvalue(lua_State *L, int i)
{
  return &curr_func(L)->c.upvalue[i];
}

/* Return the object of a set among the arguments, or NULL. debug.setmetatable can give another userdata the
** metatable.
*/
static LJ_AINLINE LabelObject *object_at(lua_State *L, cTValue *o)
{
  if (o < L->top && tvisudata(o) &&
      tabref(udataV(o)->metatable) == tabV(upvalue(L, UP_META)) &&
      udataV(o)->len >= sizeof(LabelObject)) {
    LabelObject *lo = (LabelObject *)uddata(udataV(o));
    if (lo->magic == OBJECT_MAGIC) return lo;
  }
  return NULL;
}

/* Push a new object with room for bytes, without labels. */
static LabelObject *push_new(lua_State *L, uint32_t len)
{
  LabelObject *lo = (LabelObject *)lua_newuserdata(L, sizeof(*lo) + len);
  lo->magic = OBJECT_MAGIC;
  lo->number = lo->id = lo->len = 0;
  lo->g = G(L);
  lua_pushvalue(L, lua_upvalueindex(UP_META + 1));
  lua_setmetatable(L, -2);
  return lo;
}

/* Push the known object of a set. Returns 0 if there is none. */
static LJ_AINLINE int push_known(lua_State *L, const Labels *ls, uint32_t number)
{
  cTValue *o = lj_tab_getint(tabV(upvalue(L, UP_OBJECTS)), (int32_t)number);
  if (LJ_UNLIKELY(!o || !tvisudata(o) ||
		  ((LabelObject *)uddata(udataV(o)))->id != ls->id[number]))
    return 0;
  copyTV(L, L->top, o);
  L->top++;
  return 1;
}

/* Let the object on the top stand for a set with its bytes, and know it. */
static void object_set(lua_State *L, LabelObject *lo, const Labels *ls, uint32_t number)
{
  lo->number = number;
  lo->id = ls->id[number];
  lua_pushvalue(L, -1);
  lua_rawseti(L, lua_upvalueindex(UP_OBJECTS + 1), (int)number);
}

/* Push a new object of the coroutine's set. A finalizer may change that meanwhile. */
static LJ_NOINLINE void push_current_new(lua_State *L, Labels *ls)
{
  uint32_t number = L->sysprof_label;
  const LabelSet *set = labels_at(ls, number);
  LabelObject *lo;
  labels_hold(ls, number);
  lo = push_new(L, set->len);
  lo->len = set->len;
  memcpy(lo->payload, set->payload, set->len);
  labels_release(ls, number);
  object_set(L, lo, ls, number);
}

/* Push the object of the coroutine's set, or nil. */
static LJ_AINLINE void push_current(lua_State *L, Labels *ls)
{
  uint32_t number = L->sysprof_label;
  if (!number || !ls) setnilV(L->top++);
  else if (!push_known(L, ls, number)) push_current_new(L, ls);
}

/* Give a coroutine the set of an object, whose number another set has taken. */
static LJ_NOINLINE void set_again(Labels *ls, lua_State *L, LabelObject *lo)
{
  uint32_t number = lj_labels_get(ls, lo->payload, lo->len);
  if (number != LABELS_OTHER) {
    lo->number = number;
    lo->id = ls->id[number];
  }
  labels_set(ls, L, number);
  labels_release(ls, number);
}

static LJ_AINLINE void set_object(Labels *ls, lua_State *L, LabelObject *lo)
{
  if (LJ_LIKELY(ls->id[lo->number] == lo->id)) labels_set(ls, L, lo->number);
  else set_again(ls, L, lo);
}

/* -- Sets of tables ---------------------------------------------------------- */

static void refuse_value(lua_State *L, const LabelPair *p)
{
  char key[LABELS_KEY + 1];
  lj_cleantext(key, sizeof(key), p->key, p->klen);
  luaL_error(L, "label '%s' is a %s; expected a string, a number or a boolean", key,
	     luaL_typename(L, -2));
}

/* Read the key and the value at -3 and -2. */
static void read_pair(lua_State *L, LabelPair *p)
{
  if (lua_type(L, -3) != LUA_TSTRING)
    luaL_error(L, "the key of a label is a %s; expected a string", luaL_typename(L, -3));
  p->key = lua_tolstring(L, -3, &p->klen);
  if (p->klen == 0) luaL_error(L, "the key of a label is empty; expected a name");
  switch (lua_type(L, -2)) {
  case LUA_TSTRING:
  case LUA_TNUMBER: p->value = lua_tolstring(L, -2, &p->vlen); break;
  case LUA_TBOOLEAN:
    p->value = lua_toboolean(L, -2) ? "true" : "false";
    p->vlen = lua_toboolean(L, -2) ? 4 : 5;
    break;
  default: refuse_value(L, p);
  }
}

/* Read the labels of the table at index 1. Keys and values stay on the stack. */
static int read_pairs(lua_State *L, LabelPair *pair)
{
  int n = 0;
  luaL_checkstack(L, 2 * LABELS_PAIRS + LUA_MINSTACK, "labels");
  lua_pushnil(L);
  while (lua_next(L, 1)) {
    if (n == LABELS_PAIRS)
      luaL_error(L, "a set has more than %d labels; expected fewer", LABELS_PAIRS);
    lua_pushvalue(L, -2);
    read_pair(L, &pair[n++]);
  }
  return n;
}

/* Return the sets of the VM; NULL while it is being closed. */
static Labels *labels_of(lua_State *L)
{
  Labels *ls = lj_registry_isclosed(G(L)) ? NULL : lj_labels_of(G(L));
  if (!ls && !lj_registry_isclosed(G(L)))
    luaL_error(L, "there is no memory for sets of labels");
  return ls;
}

/* A finalizer that runs while memory is allocated may make sets, too. */
static int sysprof_labelset(lua_State *L)
{
  LabelPair pair[LABELS_PAIRS];
  LabelObject *lo;
  Labels *ls;
  uint32_t number = 0, len;
  int n;
  if (!lua_istable(L, 1))
    return luaL_error(L, "the labels are a %s; expected a table", luaL_typename(L, 1));
  lua_settop(L, 1);
  n = read_pairs(L, pair);
  if ((ls = labels_of(L)) == NULL) n = 0;
  len = n ? lj_labels_encode(ls, pair, n) : 0;
  if (n) {
    number = lj_labels_get(ls, ls->made, len);
    labels_release(ls, number);
    if (number != LABELS_OTHER && push_known(L, ls, number)) return 1;
  }
  lo = push_new(L, len);
  if (n == 0) return 1;
  lo->len = lj_labels_encode(ls, pair, n);
  memcpy(lo->payload, ls->made, len);
  if (number == LABELS_OTHER) {
    lo->id = OBJECT_AGAIN;
  } else {
    number = lj_labels_get(ls, lo->payload, len);
    labels_release(ls, number);
    object_set(L, lo, ls, number);
  }
  return 1;
}

/* -- Labels of a coroutine --------------------------------------------------- */

/* The result comes first: its allocation may run finalizers. */
static LJ_NOINLINE int label_by_other(lua_State *L)
{
  LabelPair pair[LABELS_PAIRS];
  Labels *ls = L2GG(L)->labels;
  uint32_t number = 0;
  int type = lua_type(L, 1), n = 0;
  if (type != LUA_TTABLE && type != LUA_TNIL && type != LUA_TNONE)
    return luaL_error(
      L, "the labels are a %s; expected a table, a set of misc.sysprof.labelset or nil",
      luaL_typename(L, 1));
  lua_settop(L, type == LUA_TNONE ? 0 : 1);
  push_current(L, ls);
  if (type == LUA_TNONE) return 1;
  if (type == LUA_TTABLE) n = read_pairs(L, pair);
  if (n) ls = labels_of(L);
  if (ls) {
    if (n) number = lj_labels_get(ls, ls->made, lj_labels_encode(ls, pair, n));
    labels_set(ls, L, number);
    labels_release(ls, number);
  }
  lua_settop(L, 2);
  return 1;
}

static int sysprof_label(lua_State *L)
{
  LabelObject *lo = object_at(L, L->base);
  Labels *ls = L2GG(L)->labels;
  if (LJ_UNLIKELY(!lo)) return label_by_other(L);
  push_current(L, ls);
  if (LJ_LIKELY(ls != NULL)) set_object(ls, L, lo);
  return 1;
}

/* Compiled code passes the address of the userdata. */
LUAMISC_API void luaM_sysprof_uselabels(const void *labelset)
{
  LabelObject *lo = (LabelObject *)labelset;
  GCobj *o;
  if (!lo || lo->magic != OBJECT_MAGIC || !G2GG(lo->g)->labels) return;
  if ((o = gcref(lo->g->cur_L)) != NULL) set_object(G2GG(lo->g)->labels, gco2th(o), lo);
}

/* Set a function of the table on the top, with the upvalues at -3 and -2. */
static void set_function(lua_State *L, const char *name, lua_CFunction f)
{
  lua_pushvalue(L, -3);
  lua_pushvalue(L, -3);
  lua_pushcclosure(L, f, 2);
  lua_setfield(L, -2, name);
}

void lj_labelapi_open(lua_State *L)
{
  lua_createtable(L, OBJECTS_FIRST, 0); /* UP_OBJECTS */
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "v");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  lua_createtable(L, 0, 1); /* UP_META */
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  lua_pushvalue(L, -3);
  set_function(L, "label", sysprof_label);
  set_function(L, "labelset", sysprof_labelset);
  lua_pop(L, 3);
}
