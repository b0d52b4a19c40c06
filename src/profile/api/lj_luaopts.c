/*
** Option table of misc.sysprof.start: types and ranges.
** Context: VM thread, outside of the handler.
*/

#define lj_luaopts_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For sigabbrev_np(). */
#endif
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lua.h"
#include "lauxlib.h"
#include "profile/api/lj_luaopts.h"
#include "profile/start/lj_optname.h"
#include "profile/start/lj_options.h"

#define SYSPROF_PATH        "sysprof.bin" /* Default file. */
#define SYSPROF_INTERVAL_MS 10            /* Default interval. */

/* -- Single options ---------------------------------------------------------- */

int lj_luaopts_signal(const char *name)
{
  int n;
  if (strncmp(name, "SIG", 3) != 0) return 0;
  name += 3;
  for (n = 1; n <= SIGRTMAX; n++) {
    const char *abbreviation = sigabbrev_np(n);
    char from_min[24] = "RTMIN", from_max[24] = "RTMAX";
    if (n > SIGRTMIN) snprintf(from_min, sizeof(from_min), "RTMIN+%d", n - SIGRTMIN);
    if (n < SIGRTMAX) snprintf(from_max, sizeof(from_max), "RTMAX-%d", SIGRTMAX - n);
    if (n < SIGRTMIN ? abbreviation && strcmp(name, abbreviation) == 0
		     : strcmp(name, from_min) == 0 || strcmp(name, from_max) == 0)
      return n;
  }
  return 0;
}

/* Is it a signal that is free for programs? The clocks use SIGPROF and SIGURG by default, so
** control takes neither.
*/
static int is_free(const char *s)
{
  int signo = lj_luaopts_signal(s);
  return signo == SIGUSR1 || signo == SIGUSR2 || signo >= SIGRTMIN;
}

/* Return the string on the top of the stack, or NULL if it is not one without zero bytes. */
static const char *value_string(lua_State *L)
{
  size_t len;
  const char *s;
  if (lua_type(L, -1) != LUA_TSTRING) return NULL;
  s = lua_tolstring(L, -1, &len);
  return strlen(s) == len ? s : NULL;
}

/* Read the number on the top of the stack. Returns 0 if it is not one in [min, max]. */
static int value_number(lua_State *L, lua_Number min, lua_Number max, lua_Number *n)
{
  if (lua_type(L, -1) != LUA_TNUMBER) return 0;
  *n = lua_tonumber(L, -1);
  return *n >= min && *n <= max; /* False for NaN. */
}

static int value_count(lua_State *L, lua_Number min, lua_Number max, uint64_t *n)
{
  lua_Number number;
  if (!value_number(L, min, max, &number)) return 0;
  *n = (uint64_t)number;
  return (lua_Number)*n == number;
}

static int value_signal(lua_State *L, int *signo)
{
  const char *name = value_string(L);
  uint64_t n = 0;
  if (name) n = (uint64_t)lj_luaopts_signal(name);
  else if (!value_count(L, 1, SIGRTMAX, &n)) return 0;
  *signo = (int)n;
  return n != 0;
}

static int value_choice(lua_State *L, const OptionChoice *c, uint8_t *to)
{
  const char *name = value_string(L);
  if (!name) return 0;
  while (c->name && strcmp(c->name, name) != 0) c++;
  *to = c->value;
  return c->name != NULL;
}

static int value_flag(lua_State *L, const OptionSpec *o, void *to)
{
  if (lua_type(L, -1) != LUA_TBOOLEAN) return 0;
  if (!lua_toboolean(L, -1)) return 1;
  if (o->size == sizeof(int)) *(int *)to |= o->bits;
  else *(uint8_t *)to |= o->bits;
  return 1;
}

/* Put the value on the top of the stack into its field. Returns 0 if it is wrong. */
static int option_take(lua_State *L, const OptionSpec *o, OptionValues *v)
{
  void *to = (char *)v + o->offset;
  const char *s;
  switch ((OptionKind)o->kind) {
  case OPTION_FLAG: return value_flag(L, o, to);
  case OPTION_NUMBER:
  case OPTION_TIME: return value_number(L, o->min, o->max, (lua_Number *)to);
  case OPTION_COUNT:
  case OPTION_SIZE: return value_count(L, o->min, o->max, (uint64_t *)to);
  case OPTION_CHOICE: return value_choice(L, o->choices, (uint8_t *)to);
  case OPTION_SIGNAL: return value_signal(L, (int *)to);
  case OPTION_TEXT:
  case OPTION_LIST:
  case OPTION_FREE:
  case OPTION_CONTROL:
    *(const char **)to = s = value_string(L);
    if (o->kind == OPTION_LIST) return s && *s;
    if (!s || o->kind == OPTION_TEXT) return s != NULL;
    return is_free(s) || (o->kind == OPTION_CONTROL && *s == '/');
  }
  return 0;
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
  char what[VALUE_MAX], value[VALUE_MAX];
  snprintf(what, sizeof(what), "option '%s'", o->name);
  return refuse(what, value_text(L, value),
		o->kind == OPTION_FLAG ? "true or false"
		: o->kind == OPTION_LIST
		  ? "names of clocks and events with ',' between them"
		  : o->expected);
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

/* Set the interval from interval, in milliseconds, or hz. Returns 0 if both are given. */
static int set_interval(OptionValues *v)
{
  double ns = v->hz > 0 ? 1e9 / v->hz
			: (v->interval_ms > 0 ? v->interval_ms : SYSPROF_INTERVAL_MS) * 1e6;
  v->opt.interval_ns = (uint64_t)(ns + 0.5);
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
  memset(&v, 0, sizeof(v));
  v.fo.path = SYSPROF_PATH;
  v.opt.flush = LUAM_SYSPROF_FLUSH_VM;
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
