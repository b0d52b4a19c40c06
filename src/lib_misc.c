/*
** Lua library "misc": misc.sysprof.start, stop and report.
** Context: VM thread.
**
** Checks arguments and turns results into Lua values. The profiler itself is in profile/.
*/

#define lib_misc_c
#define LUA_LIB

#include <errno.h>
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
#include "profile/api/lj_env.h"
#include "profile/api/lj_luaopts.h"
#include "profile/api/lj_options.h"
#include "profile/api/lj_report.h"
#include "profile/api/lj_startfile.h"
#include "profile/api/lj_sysprof.h"

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

static int push_misuse(lua_State *L)
{
  return push_error(L, "profiler misuse", EINVAL);
}

/* Results of a failed system call, in the form that the io library uses. */
static int push_syserror(lua_State *L, const char *path, int err)
{
  lua_pushnil(L);
  if (path) lua_pushfstring(L, "%s: %s", path, strerror(err));
  else lua_pushstring(L, strerror(err));
  lua_pushinteger(L, err);
  return 3;
}

/* -- Functions --------------------------------------------------------------- */

static int push_file_error(lua_State *L, const char *path, const StartResult *r)
{
  lua_pushfstring(L, "%s: %s", path, r->problem);
  return push_error(L, lua_tostring(L, -1), r->err);
}

static int push_start_error(lua_State *L, int status, int err)
{
  const char *why = lj_options_errmsg();
  switch (status) {
  case PROFILE_ERRUSE: return why[0] ? push_error(L, why, EINVAL) : push_misuse(L);
  case PROFILE_ERRRUN:
    return push_error(L, why[0] ? why : "profiler is running already", EINVAL);
  case PROFILE_ERRMEM: return push_syserror(L, NULL, err ? err : ENOMEM);
  default: return why[0] ? push_error(L, why, err) : push_syserror(L, NULL, err);
  }
}

static int sysprof_start(lua_State *L)
{
  struct luam_Sysprof_Options opt;
  StreamFileOptions fo;
  StartResult r;
  if (!lj_luaopts_read(L, &opt, &fo)) return push_misuse(L);
  if (lj_startfile(L, &opt, &fo, NULL, &r)) {
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

static int sysprof_stop(lua_State *L)
{
  int status = lj_sysprof_stop(G(L)), err = errno;
  switch (status) {
  case PROFILE_SUCCESS: lua_pushboolean(L, 1); return 1;
  case PROFILE_ERRRUN: return push_error(L, "profiler is not running", EINVAL);
  default:
    lua_getfield(L, LUA_REGISTRYINDEX, SYSPROF_PATH_KEY);
    return push_syserror(L, lua_tostring(L, -1), err);
  }
}

#else /* LUAJIT_DISABLE_SYSPROF */

static int sysprof_start(lua_State *L)
{
  lua_pushboolean(L, 0);
  return 1;
}

#define sysprof_stop sysprof_start

#endif

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

static const luaL_Reg sysprof_funcs[] = { { "start", sysprof_start },
					  { "stop", sysprof_stop },
					  { "report", sysprof_report },
					  { NULL, NULL } };

static const luaL_Reg misc_funcs[] = { { NULL, NULL } };

LUALIB_API int luaopen_misc(lua_State *L)
{
  luaL_register(L, LUAM_MISCLIBNAME, misc_funcs);
  lua_createtable(L, 0, 4);
  luaL_register(L, NULL, sysprof_funcs);
  lua_pushliteral(L, SYSPROF_VERSION);
  lua_setfield(L, -2, "version");
  lua_setfield(L, -2, "sysprof");
#ifndef LUAJIT_DISABLE_SYSPROF
  lj_env_start(L, sysprof_start);
#endif
  return 1;
}
