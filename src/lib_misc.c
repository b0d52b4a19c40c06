/*
** Lua library "misc": misc.sysprof, misc.memprof.
** Context: VM thread.
**
** Checks arguments and turns results into Lua values. The profiler itself is in profile/.
*/

#define lib_misc_c
#define LUA_LIB

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua.h"
#include "lauxlib.h"
#include "lmisclib.h"

/* Version of sysprof, and name and version of the LuaJIT that contains it. */
#ifndef SYSPROF_VERSION
#error "SYSPROF_VERSION is set by GNUmakefile"
#endif

#ifndef LUAJIT_DISABLE_SYSPROF

#include "lj_obj.h"
#include "profile/alloc/lj_alloctype.h"
#include "profile/api/lj_labelapi.h"
#include "profile/control/lj_codump.h"
#include "profile/api/lj_env.h"
#include "profile/live/lj_live.h"
#include "profile/api/lj_luaopts.h"
#include "profile/api/lj_memprof.h"
#include "profile/start/lj_options.h"
#include "profile/start/lj_report.h"
#include "profile/control/lj_timed.h"
#include "profile/start/lj_sysprof.h"
#include "profile/base/lj_seccomp.h"

/* Registry key for the path of the last profile. */
#define SYSPROF_PATH_KEY "sysprof.path"

/* -- Results ----------------------------------------------------------------- */

static int push_error(lua_State *L, const char *msg, int err)
{
  lua_pushnil(L);
  lua_pushstring(L, msg);
  lua_pushinteger(L, err);
  return 3;
}

/* Results of a failed system call, in the form that the io library uses. */
static int push_syserror(lua_State *L, const char *path, int err)
{
  lua_pushnil(L);
  if (path) lua_pushfstring(L, "%s: %s", path, lj_seccomp_strerror(err));
  else lua_pushstring(L, lj_seccomp_strerror(err));
  lua_pushinteger(L, err);
  return 3;
}

/* -- Start and stop ---------------------------------------------------------- */

static int push_file_error(lua_State *L, const char *path, const StartResult *r)
{
  lua_pushfstring(L, "%s: %s", path, r->problem);
  return push_error(L, lua_tostring(L, -1), r->err);
}

static int push_start_error(lua_State *L, int status, int err)
{
  const char *why = lj_options_errmsg();
  switch (status) {
  case PROFILE_ERRUSE: return push_error(L, why[0] ? why : "profiler misuse", EINVAL);
  case PROFILE_ERRRUN:
    return push_error(L, why[0] ? why : "profiler is running already", EINVAL);
  case PROFILE_ERRMEM: err = err ? err : ENOMEM; /* fallthrough */
  default: return why[0] ? push_error(L, why, err) : push_syserror(L, NULL, err);
  }
}

static int sysprof_start(lua_State *L)
{
  struct luam_Sysprof_Options opt;
  StreamFileOptions fo;
  StartResult r;
  if (!lj_luaopts_read(L, OPTION_LUA, &opt, &fo))
    return push_error(L, lj_options_errmsg(), EINVAL);
  if (lj_timed_start(L, &opt, &fo, &r)) {
    lua_pushstring(L, fo.path);
    lua_setfield(L, LUA_REGISTRYINDEX, SYSPROF_PATH_KEY);
    lua_pushboolean(L, 1);
    return 1;
  }
  if (r.inuse)
    r.problem = "another profile of this process is being written into this file; give "
		"each its own path, or all of them shared = true";
  return r.problem ? push_file_error(L, fo.path, &r) : push_start_error(L, r.status, r.err);
}

static int push_stopped(lua_State *L, int status, int err)
{
  switch (status) {
  case PROFILE_SUCCESS: lua_pushboolean(L, 1); return 1;
  case PROFILE_ERRRUN: return push_error(L, "profiler is not running", EINVAL);
  default:
    lua_getfield(L, LUA_REGISTRYINDEX, SYSPROF_PATH_KEY);
    return push_syserror(L, lua_tostring(L, -1), err);
  }
}

static int sysprof_stop(lua_State *L)
{
  int status = lj_timed_stop(L, lj_sysprof_stop);
  return push_stopped(L, status, errno);
}

static int sysprof_dump(lua_State *L)
{
  int status;
  lj_sysprof_collect(L);
  status = lj_sysprof_dump(G(L));
  return push_stopped(L, status, errno);
}

static int sysprof_coroutines(lua_State *L)
{
  const char *name = lua_isnoneornil(L, 1) ? "text" : lua_tostring(L, 1);
  CoFormat format = name ? lj_cotext_format(name) : CO_UNKNOWN;
  char *text;
  size_t len;
  if (format == CO_UNKNOWN || lua_objlen(L, 1) > strlen(name)) {
    char problem[160];
    snprintf(problem, sizeof(problem),
	     "profiler misuse: the format is %.64s; expected text, json or folded",
	     name ? name : luaL_typename(L, 1));
    return push_error(L, problem, EINVAL);
  }
  if (!lj_codump_text(L, format, &text, &len)) return push_syserror(L, NULL, ENOMEM);
  lua_pushlstring(L, text, len);
  free(text);
  return 1;
}

static int sysprof_live(lua_State *L)
{
  const char *why = lj_live_add(L);
  if (why) return push_error(L, why, EINVAL);
  lua_pushboolean(L, 1);
  return 1;
}

/* Does the table at index 1 have a field? */
static int has_field(lua_State *L, const char *name)
{
  int has;
  lua_getfield(L, 1, name);
  has = !lua_isnil(L, -1);
  lua_pop(L, 1);
  return has;
}

static void set_field(lua_State *L, const char *name, const char *value)
{
  lua_pushstring(L, value);
  lua_setfield(L, 1, name);
}

/* Replace the argument of memprof.start, a path or a table, by a new table. */
static int memprof_options(lua_State *L)
{
  lua_settop(L, 1);
  lua_createtable(L, 0, 4);
  if (lua_type(L, 1) == LUA_TSTRING) {
    lua_pushvalue(L, 1);
    lua_setfield(L, 2, "path");
  } else if (lua_istable(L, 1)) {
    lua_pushnil(L);
    while (lua_next(L, 1)) {
      lua_pushvalue(L, -2);
      lua_insert(L, -2);
      lua_rawset(L, 2);
    }
  } else if (!lua_isnil(L, 1)) {
    return 0;
  }
  lua_replace(L, 1);
  return 1;
}

static int memprof_start(lua_State *L)
{
  if (!memprof_options(L)) {
    lua_pushfstring(
      L, "profiler misuse: argument #1 is a %s; expected a path or a table of options",
      luaL_typename(L, 1));
    return push_error(L, lua_tostring(L, -1), EINVAL);
  }
  if (has_field(L, "clock") || has_field(L, "mode"))
    return push_error(L,
		      "misc.memprof.start takes no clock and no mode: it samples the event "
		      "alloc; misc.sysprof.start takes them",
		      EINVAL);
  if (!has_field(L, "path")) set_field(L, "path", "memprof.bin");
  set_field(L, "mode", "C");
  set_field(L, "clock", "alloc");
  return sysprof_start(L);
}

static int memprof_stop(lua_State *L)
{
  int status = lj_timed_stop(L, lj_memprof_stop), err = errno;
  if (status == PROFILE_ERRRUN && lj_sysprof_isrunning(G(L)))
    return push_error(
      L, "the running profile has no event alloc; misc.sysprof.stop stops it", EINVAL);
  return push_stopped(L, status, err);
}

/* Is an option of the table at an index set, or else by default? Raises an error if it is no boolean. */
static int has_flag(lua_State *L, int idx, const char *name, int by_default)
{
  int is_set;
  lua_getfield(L, idx, name);
  if (!lua_isnil(L, -1) && !lua_isboolean(L, -1))
    luaL_error(L, "option '%s' is a %s; expected true or false", name,
	       luaL_typename(L, -1));
  is_set = lua_isnil(L, -1) ? by_default : lua_toboolean(L, -1);
  lua_pop(L, 1);
  return is_set;
}

static int memprof_snapshot(lua_State *L)
{
  static const char *const known[] = { "no_strings", "wait" };
  const char *path = luaL_checkstring(L, 1);
  int no_strings = 0, wait = 1, err;
  lua_settop(L, 2);
  if (!lua_isnil(L, 2)) {
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_pushnil(L);
    while (lua_next(L, 2)) {
      lua_pop(L, 1);
      if (lua_type(L, -1) != LUA_TSTRING ||
	  (strcmp(lua_tostring(L, -1), known[0]) && strcmp(lua_tostring(L, -1), known[1])))
	return luaL_error(L, "option '%s' is unknown; expected no_strings or wait",
			  lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1)
							 : luaL_typename(L, -1));
    }
    no_strings = has_flag(L, 2, known[0], 0);
    wait = has_flag(L, 2, known[1], 1);
  }
  if (lua_objlen(L, 1) > strlen(path)) return push_syserror(L, path, EINVAL);
  if (lj_memprof_snapshot(L, path, no_strings, wait) != PROFILE_SUCCESS) {
    err = errno;
    return push_error(L, lj_options_errmsg(), err);
  }
  lua_pushboolean(L, 1);
  return 1;
}

#else /* LUAJIT_DISABLE_SYSPROF */

static int sysprof_start(lua_State *L)
{
  lua_pushboolean(L, 0);
  return 1;
}

#define sysprof_stop       sysprof_start
#define sysprof_dump       sysprof_start
#define sysprof_coroutines sysprof_start
#define sysprof_live       sysprof_start
#define sysprof_label      sysprof_start
#define sysprof_labelset   sysprof_start
#define memprof_start      sysprof_start
#define memprof_stop       sysprof_start
#define memprof_count      sysprof_start
#define memprof_snapshot   sysprof_start

#endif

/* -- Report ------------------------------------------------------------------ */

static void set_number(lua_State *L, const char *name, lua_Number n)
{
  lua_pushnumber(L, n);
  lua_setfield(L, -2, name);
}

static void set_count(lua_State *L, const char *name, uint64_t n)
{
  set_number(L, name, (lua_Number)n);
}

static void set_counters(lua_State *L, const struct luam_Sysprof_Counters *c)
{
  set_count(L, "samples", c->samples);
  lua_createtable(L, 0, 10);
  set_count(L, "INTERP", c->vmst_interp);
  set_count(L, "LFUNC", c->vmst_lfunc);
  set_count(L, "FFUNC", c->vmst_ffunc);
  set_count(L, "CFUNC", c->vmst_cfunc);
  set_count(L, "GC", c->vmst_gc);
  set_count(L, "EXIT", c->vmst_exit);
  set_count(L, "RECORD", c->vmst_record);
  set_count(L, "OPT", c->vmst_opt);
  set_count(L, "ASM", c->vmst_asm);
  set_count(L, "TRACE", c->vmst_trace);
  lua_setfield(L, -2, "vmstate");
}

#ifndef LUAJIT_DISABLE_SYSPROF

static void set_broken(lua_State *L, const char *name, const uint64_t *n)
{
  static const char *const reasons[LUAM_SYSPROF_BROKEN__MAX] = {
    "no_base", "chain", "stack_move", "fault", "no_cfi", "not_vm", "join", "trace"
  };
  int i;
  lua_createtable(L, 0, LUAM_SYSPROF_BROKEN__MAX);
  for (i = 0; i < LUAM_SYSPROF_BROKEN__MAX; i++) set_count(L, reasons[i], n[i]);
  lua_setfield(L, -2, name);
}

static void set_selfreport(lua_State *L, const struct luam_Sysprof_SelfReport *r)
{
  lua_pushstring(L, r->clock);
  lua_setfield(L, -2, "clock");
  set_number(L, "asked_hz", r->asked_hz);
  set_number(L, "hz", r->achieved_hz);
  set_number(L, "cpu_s", (lua_Number)r->cpu_us * 1e-6);
  set_number(L, "wall_s", (lua_Number)r->wall_us * 1e-6);
  set_count(L, "sessions", r->sessions);
  set_count(L, "overruns", r->overruns);
  set_count(L, "throttled", r->throttled);
  set_count(L, "unsampled", r->unsampled);
  set_count(L, "uncopied", r->uncopied);
  lua_pushboolean(L, r->replaced != 0);
  lua_setfield(L, -2, "replaced");
  lua_pushstring(L, r->signal);
  lua_setfield(L, -2, "signal");
  lua_pushstring(L, r->limit);
  lua_setfield(L, -2, "limit");
  lua_pushboolean(L, r->shared != 0);
  lua_setfield(L, -2, "shared");
  lua_createtable(L, 0, 4);
  set_count(L, "buffer", r->lost_buffer);
  set_count(L, "queue", r->lost_queue);
  set_count(L, "writer", r->lost_writer);
  set_count(L, "nested", r->lost_nested);
  lua_setfield(L, -2, "lost");
  lua_createtable(L, 0, 2);
  set_broken(L, "lua", r->lua_broken);
  set_broken(L, "host", r->host_broken);
  lua_setfield(L, -2, "broken");
  lua_createtable(L, 0, 4);
  set_number(L, "mean_us", (lua_Number)r->handler_mean_ns * 1e-3);
  set_number(L, "p99_us", (lua_Number)r->handler_p99_ns * 1e-3);
  set_number(L, "max_us", (lua_Number)r->handler_max_ns * 1e-3);
  set_number(L, "signal_us", (lua_Number)r->signal_mean_ns * 1e-3);
  lua_setfield(L, -2, "handler");
}

static int sysprof_report(lua_State *L)
{
  struct luam_Sysprof_Counters c;
  struct luam_Sysprof_SelfReport r;
  lj_report_counters(G(L), &c);
  lj_report_self(G(L), &r);
  lua_createtable(L, 0, 16);
  set_counters(L, &c);
  set_selfreport(L, &r);
  return 1;
}

#else /* LUAJIT_DISABLE_SYSPROF */

static int sysprof_report(lua_State *L)
{
  static const struct luam_Sysprof_Counters none;
  lua_createtable(L, 0, 2);
  set_counters(L, &none);
  return 1;
}

#endif

/* -- Allocations of a function ----------------------------------------------- */

#ifndef LUAJIT_DISABLE_SYSPROF

#define COUNT_RUNS 100 /* Default, */
#define COUNT_MAX  1e9 /* and maximum. */

/* The value at an index as a whole number, nil: the default. */
static uint32_t check_count(lua_State *L, int idx, const char *name, lua_Number min,
			    lua_Number default_n)
{
  lua_Number n = lua_isnil(L, idx) ? default_n : lua_tonumber(L, idx);
  if (!lua_isnil(L, idx) &&
      (lua_type(L, idx) != LUA_TNUMBER || !(n >= min && n <= COUNT_MAX) ||
       n != (lua_Number)(uint32_t)n)) {
    const char *value = lua_type(L, idx) == LUA_TNUMBER ? lua_tostring(L, idx)
							: luaL_typename(L, idx);
    luaL_error(L, "%s is %s; expected a whole number from %d to %d", name, value, (int)min,
	       (int)COUNT_MAX);
  }
  return (uint32_t)n;
}

/* Set allocs and bytes of the table on the top, for one of so many calls. */
static void set_amount(lua_State *L, const struct luam_Memprof_Amount *amount,
		       uint32_t runs)
{
  set_number(L, "allocs", (lua_Number)amount->allocs / runs);
  set_number(L, "bytes", (lua_Number)amount->bytes / runs);
}

static void push_types(lua_State *L, const struct luam_Memprof_Count *c, uint32_t runs)
{
  int i;
  lua_createtable(L, 0, LUAM_MEMPROF__MAX);
  for (i = 0; i < LUAM_MEMPROF__MAX; i++) {
    if (c->type[i].allocs == 0) continue;
    lua_createtable(L, 0, 2);
    set_amount(L, &c->type[i], runs);
    lua_setfield(L, -2, lj_alloctype_name((AllocType)i));
  }
}

/* Return warmup of the table of options at index 3. */
static uint32_t count_warmup(lua_State *L)
{
  luaL_checktype(L, 3, LUA_TTABLE);
  lua_pushnil(L);
  while (lua_next(L, 3)) {
    lua_pop(L, 1);
    if (lua_type(L, -1) != LUA_TSTRING || strcmp(lua_tostring(L, -1), "warmup") != 0)
      luaL_error(L, "option '%s' is unknown; expected warmup",
		 lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1)
						: luaL_typename(L, -1));
  }
  lua_getfield(L, 3, "warmup");
  return check_count(L, 4, "warmup", 0, 1);
}

static int memprof_count(lua_State *L)
{
  struct luam_Memprof_Count c;
  uint32_t runs, warmup = 1;
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 3);
  runs = check_count(L, 2, "runs", 1, COUNT_RUNS);
  if (!lua_isnil(L, 3)) warmup = count_warmup(L);
  lua_pushvalue(L, 1);
  if (lj_memprof_count(L, runs, warmup, &c) != PROFILE_SUCCESS)
    return luaL_error(L, "%s", lj_options_errmsg());
  lua_createtable(L, 0, 5);
  set_amount(L, &c.all, runs);
  set_number(L, "freed", (lua_Number)c.freed / runs);
  lua_createtable(L, 0, 2);
  set_amount(L, &c.compiler, runs);
  lua_setfield(L, -2, "compiler");
  push_types(L, &c, runs);
  lua_setfield(L, -2, "types");
  return 1;
}

#endif

static const luaL_Reg sysprof_funcs[] = { { "start", sysprof_start },
					  { "stop", sysprof_stop },
					  { "dump", sysprof_dump },
					  { "report", sysprof_report },
					  { "coroutines", sysprof_coroutines },
					  { "live", sysprof_live },
#ifdef LUAJIT_DISABLE_SYSPROF
					  { "label", sysprof_label },
					  { "labelset", sysprof_labelset },
#endif
					  { NULL, NULL } };

static const luaL_Reg memprof_funcs[] = { { "start", memprof_start },
					  { "stop", memprof_stop },
					  { "count", memprof_count },
					  { "snapshot", memprof_snapshot },
					  { NULL, NULL } };

static const luaL_Reg misc_funcs[] = { { NULL, NULL } };

LUALIB_API int luaopen_misc(lua_State *L)
{
  luaL_register(L, LUAM_MISCLIBNAME, misc_funcs);
  lua_createtable(L, 0, 9);
  luaL_register(L, NULL, sysprof_funcs);
#ifndef LUAJIT_DISABLE_SYSPROF
  lj_labelapi_open(L);
#endif
  lua_pushliteral(L, SYSPROF_VERSION);
  lua_setfield(L, -2, "version");
  lua_setfield(L, -2, "sysprof");
  lua_createtable(L, 0, 4);
  luaL_register(L, NULL, memprof_funcs);
  lua_setfield(L, -2, "memprof");
#ifndef LUAJIT_DISABLE_SYSPROF
  lj_env_start(L, sysprof_start);
#endif
  return 1;
}
