/*
** Option table of misc.sysprof.start: types and ranges.
** Context: VM thread, outside of the handler.
*/

#define lj_luaopts_c
#define LUA_CORE

#include <stdio.h>
#include <string.h>

#include "lua.h"
#include "lauxlib.h"
#include "profile/api/lj_luaopts.h"
#include "profile/start/lj_optname.h"
#include "profile/start/lj_options.h"
#include "profile/start/lj_opttext.h"

/* -- Single options ---------------------------------------------------------- */

/* Return the string on the top of the stack, or NULL if it is not one without zero bytes. */
static const char *value_string(lua_State *L)
{
  size_t len;
  const char *s;
  if (lua_type(L, -1) != LUA_TSTRING) return NULL;
  s = lua_tolstring(L, -1, &len);
  return strlen(s) == len ? s : NULL;
}

/* Put the value on the top of the stack into its field. Returns 0 if it is wrong. */
static int option_take(lua_State *L, const OptionSpec *o, OptionValues *v)
{
  const char *s;
  switch (lua_type(L, -1)) {
  case LUA_TBOOLEAN:
    lj_opttext_flag(o, o->kind == OPTION_FLAG && lua_toboolean(L, -1), v);
    return o->kind == OPTION_FLAG;
  case LUA_TNUMBER: return lj_opttext_number(o, lua_tonumber(L, -1), v);
  case LUA_TSTRING:
    s = value_string(L);
    return s && o->kind != OPTION_FLAG && lj_opttext_take(o, s, v);
  default: return 0;
  }
}

int lj_luaopts_accepts(lua_State *L, const OptionSpec *o)
{
  OptionValues v;
  memset(&v, 0, sizeof(v));
  return option_take(L, o, &v);
}

/* -- Refusals ---------------------------------------------------------------- */

#define VALUE_MAX    48  /* Bytes of a value in a message, with its NUL; */
#define OPTNAMES_MAX 224 /* of the names of all options. */

static int refuse(const char *what, const char *value, const char *expected)
{
  snprintf(lj_options_errmsg(), EVENT_ERRMSG_MAX, "profiler misuse: %s is %s; expected %s",
	   what, value, expected);
  return 0;
}

/* Write the value on the top of the stack for a message. */
static const char *value_text(lua_State *L, char *text)
{
  switch (lua_type(L, -1)) {
  case LUA_TSTRING: snprintf(text, VALUE_MAX, "'%.40s'", lua_tostring(L, -1)); break;
  case LUA_TNUMBER: snprintf(text, VALUE_MAX, "%.14g", lua_tonumber(L, -1)); break;
  case LUA_TBOOLEAN: return lua_toboolean(L, -1) ? "true" : "false";
  case LUA_TNIL: return "missing";
  default: snprintf(text, VALUE_MAX, "a %s", luaL_typename(L, -1)); break;
  }
  return text;
}

/* Refuse the value of an option on the top of the stack. */
static int option_refuse(lua_State *L, const OptionSpec *o)
{
  char what[VALUE_MAX], value[VALUE_MAX], expected[OPTTEXT_EXPECTED_MAX];
  snprintf(what, sizeof(what), "option '%s'", o->name);
  return refuse(what, value_text(L, value), lj_opttext_expected(o, expected));
}

/* Refuse the key on the top of the stack, the name of no option. */
static int key_refuse(lua_State *L)
{
  char what[2 * VALUE_MAX], value[VALUE_MAX], names[OPTNAMES_MAX];
  const OptionSpec *meant;
  size_t len;
  const char *key;
  if (lua_type(L, -1) != LUA_TSTRING) {
    snprintf(what, sizeof(what), "key %s", value_text(L, value));
    return refuse(what, "not a name", "options by name, such as mode = 'C'");
  }
  key = lua_tolstring(L, -1, &len);
  meant = lj_optname_meant(key, len, OPTION_LUA);
  snprintf(what, sizeof(what), "option %s", value_text(L, value));
  if (meant) snprintf(value, sizeof(value), "unknown (did you mean '%s'?)", meant->name);
  lj_optname_list(names, sizeof(names), OPTION_LUA);
  return refuse(what, meant ? value : "unknown", names);
}

/* -- Tables ------------------------------------------------------------------ */

/* Is the table a library, of a call such as misc.sysprof:start()? */
static int is_library(lua_State *L)
{
  int is;
  lua_pushliteral(L, "start");
  lua_rawget(L, 1);
  is = lua_isfunction(L, -1);
  lua_pop(L, 1);
  return is;
}

/* Is each key of the table an option of these places? */
static int keys_known(lua_State *L, int where)
{
  if (is_library(L))
    return refuse("argument #1", "the library itself",
		  "a table of options; call start with '.', not with ':'");
  lua_pushnil(L);
  while (lua_next(L, 1)) {
    size_t len;
    lua_pop(L, 1);
    if (lua_type(L, -1) != LUA_TSTRING) return key_refuse(L);
    lua_tolstring(L, -1, &len);
    if (!lj_optname_find(lua_tostring(L, -1), len, where)) return key_refuse(L);
  }
  return 1;
}

/* Does the option keep its string on the stack? */
static int option_keeps(const OptionSpec *o)
{
  return o->kind == OPTION_TEXT || o->kind == OPTION_LIST;
}

/* Read the options of the table that keep their strings, or the others. Returns 0 if one is
** wrong.
*/
static int table_read(lua_State *L, OptionValues *v, int keeps)
{
  const OptionSpec *o;
  for (o = lj_opttable; o->name; o++) {
    if (!(o->where & OPTION_LUA) || option_keeps(o) != keeps) continue;
    lua_getfield(L, 1, o->name);
    if (lua_isnil(L, -1) ? (o->where & OPTION_REQUIRED) : !option_take(L, o, v))
      return option_refuse(L, o);
    if (!keeps) lua_pop(L, 1);
  }
  return 1;
}

/* Set the interval from interval or hz. Returns 0 if both are given. */
static int set_interval(OptionValues *v)
{
  v->opt.interval_ns = lj_opttext_interval(v);
  return !(v->hz > 0 && v->interval_ms > 0) ||
	 refuse("option 'hz'", "given beside 'interval'", "one of them");
}

/* Does the path have a name? Without a file, it may have none. */
static int path_valid(const OptionValues *v)
{
  return v->opt.mode == LUAM_SYSPROF_DEFAULT || *v->fo.path ||
	 refuse("option 'path'", "''", "the name of a file");
}

int lj_luaopts_read(lua_State *L, int where, struct luam_Sysprof_Options *opt,
		    StreamFileOptions *fo)
{
  OptionValues v;
  char value[VALUE_MAX];
  int ok;
  lj_opttext_begin(&v, OPTION_LUA);
  if (lua_type(L, 1) == LUA_TTABLE) {
    ok = keys_known(L, where) && table_read(L, &v, 0) && table_read(L, &v, 1) &&
	 set_interval(&v) && path_valid(&v);
  } else {
    lua_settop(L, 1); /* The argument may be missing. */
    ok = refuse("argument #1", value_text(L, value), "a table of options");
  }
  *opt = v.opt;
  *fo = v.fo;
  return ok;
}
