/*
** Library "misc": the Lua API of sysprof. Options and errors only; the
** profiler itself is in profile/.
*/

#define lib_misc_c
#define LUA_LIB

#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* For sigabbrev_np(). */
#endif
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua.h"
#include "lauxlib.h"
#include "lmisclib.h"

#ifndef LUAJIT_DISABLE_SYSPROF

#include "lj_obj.h"
#include "profile/lj_streamfile.h"
#include "profile/lj_sysprof.h"

#define SYSPROF_PATH		"sysprof.bin"	/* Default file. */
#define SYSPROF_INTERVAL_MS	10		/* Default interval. */
#define SYSPROF_INTERVAL_MS_MAX	86400000.0	/* A day. */
#define SYSPROF_HZ_MIN		(1e3/SYSPROF_INTERVAL_MS_MAX)
#define SYSPROF_HZ_MAX		1e9
#define SYSPROF_PERIOD_MAX	9007199254740992.0	/* 2^53, whole numbers. */

/* Key in the registry: path of the last profile. */
#define SYSPROF_PATH_KEY	"sysprof.path"

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

/* Results of a failed system call, as of the io library. */
static int push_syserror(lua_State *L, const char *path, int err)
{
  lua_pushnil(L);
  if (path) lua_pushfstring(L, "%s: %s", path, strerror(err));
  else lua_pushstring(L, strerror(err));
  lua_pushinteger(L, err);
  return 3;
}

/* -- Options ----------------------------------------------------------------- */

static int option_mode(lua_State *L, struct luam_Sysprof_Options *opt)
{
  size_t len;
  const char *s;
  lua_getfield(L, 1, "mode");
  if (lua_type(L, -1) != LUA_TSTRING) return 0;
  s = lua_tolstring(L, -1, &len);
  if (len != 1) return 0;
  switch (*s) {
  case 'D': opt->mode = LUAM_SYSPROF_DEFAULT; break;
  case 'L': opt->mode = LUAM_SYSPROF_LEAF; break;
  case 'C': opt->mode = LUAM_SYSPROF_CALLGRAPH; break;
  default: return 0;
  }
  lua_pop(L, 1);
  return 1;
}

/* A number in [min, max], or the default. 0 if it is neither. */
static int option_number(lua_State *L, const char *name, lua_Number min,
			 lua_Number max, lua_Number *n)
{
  int ok = 1;
  lua_getfield(L, 1, name);
  if (lua_type(L, -1) == LUA_TNUMBER) {
    *n = lua_tonumber(L, -1);
    ok = (*n >= min && *n <= max);  /* NaN is not. */
  } else if (!lua_isnil(L, -1)) {
    ok = 0;
  }
  lua_pop(L, 1);
  return ok;
}

static int option_flag(lua_State *L, const char *name, int *flag)
{
  int type;
  lua_getfield(L, 1, name);
  type = lua_type(L, -1);
  *flag = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return type == LUA_TBOOLEAN || type == LUA_TNIL;
}

/* interval in milliseconds, or hz. */
static int option_interval(lua_State *L, struct luam_Sysprof_Options *opt)
{
  lua_Number ms = 0, hz = 0;
  if (!option_number(L, "interval", 1e-6, SYSPROF_INTERVAL_MS_MAX, &ms) ||
      !option_number(L, "hz", SYSPROF_HZ_MIN, SYSPROF_HZ_MAX, &hz))
    return 0;
  if (hz > 0) {
    if (ms > 0) return 0;
    opt->interval_ns = (uint64_t)(1e9 / hz + 0.5);
  } else {
    if (ms == 0) ms = SYSPROF_INTERVAL_MS;
    opt->interval_ns = (uint64_t)(ms * 1e6 + 0.5);
  }
  return 1;
}

static int option_period(lua_State *L, struct luam_Sysprof_Options *opt)
{
  lua_Number n = 0;
  if (!option_number(L, "period", 1, SYSPROF_PERIOD_MAX, &n)) return 0;
  opt->period = (uint64_t)n;
  return (lua_Number)opt->period == n;
}

/* A string without zeros, which is left on the stack; NULL for another value. */
static int option_string(lua_State *L, const char *name, const char **sp)
{
  size_t len;
  lua_getfield(L, 1, name);
  if (lua_isnil(L, -1)) return 1;
  if (lua_type(L, -1) != LUA_TSTRING) return 0;
  *sp = lua_tolstring(L, -1, &len);
  return strlen(*sp) == len;
}

static int option_threads(lua_State *L, struct luam_Sysprof_Options *opt)
{
  const char *s = "own";
  if (!option_string(L, "threads", &s)) return 0;
  if (strcmp(s, "all") == 0) opt->threads = LUAM_SYSPROF_THREADS_ALL;
  else if (strcmp(s, "own") != 0) return 0;
  lua_pop(L, 1);
  return 1;
}

/* Number of a signal by its name, as in "SIGUSR2" or "SIGRTMIN+3"; or 0. */
static int signal_number(const char *name)
{
  int n;
  if (strncmp(name, "SIG", 3) != 0) return 0;
  name += 3;
  for (n = 1; n <= SIGRTMAX; n++) {
    const char *abbreviation = sigabbrev_np(n);
    char from_min[24] = "RTMIN", from_max[24] = "RTMAX";
    if (n > SIGRTMIN)
      snprintf(from_min, sizeof(from_min), "RTMIN+%d", n - SIGRTMIN);
    if (n < SIGRTMAX)
      snprintf(from_max, sizeof(from_max), "RTMAX-%d", SIGRTMAX - n);
    if (n < SIGRTMIN ? abbreviation && strcmp(name, abbreviation) == 0 :
	strcmp(name, from_min) == 0 || strcmp(name, from_max) == 0)
      return n;
  }
  return 0;
}

static int option_signal(lua_State *L, struct luam_Sysprof_Options *opt)
{
  const char *name = NULL;
  lua_Number n = 0;
  int is_name = option_string(L, "signal", &name);
  if (name) opt->signo = is_name ? signal_number(name) : 0;
  lua_pop(L, 1);
  if (name) return opt->signo != 0;
  if (!option_number(L, "signal", 1, SIGRTMAX, &n)) return 0;
  opt->signo = (int)n;
  return (lua_Number)opt->signo == n;
}

typedef struct FileOptions {
  const char *path;
  int shared;			/* Other sessions may write into it. */
  int children;			/* Children of fork() are profiled, too. */
} FileOptions;

/* Read them all. Leaves strings that are used on the stack. */
static int options_read(lua_State *L, struct luam_Sysprof_Options *opt,
			FileOptions *fo)
{
  int jitter;
  memset(opt, 0, sizeof(*opt));
  fo->path = SYSPROF_PATH;
  if (lua_type(L, 1) != LUA_TTABLE || !option_mode(L, opt) ||
      !option_interval(L, opt) || !option_period(L, opt) ||
      !option_signal(L, opt) || !option_flag(L, "jitter", &jitter) ||
      !option_threads(L, opt) || !option_flag(L, "fork", &fo->children) ||
      !option_flag(L, "shared", &fo->shared) ||
      !option_string(L, "clock", &opt->clocks) ||
      !option_string(L, "path", &fo->path))
    return 0;
  opt->jitter = (uint8_t)jitter;
  if (opt->clocks && strcmp(opt->clocks, "wall") == 0) opt->clock = 1;  /*INTERIM*/
  else if (opt->clocks && strcmp(opt->clocks, "cpu") != 0) return 0;  /*INTERIM*/
  return 1;
}

/* -- Functions --------------------------------------------------------------- */

/* A child's counters need no file. */
static void *counters_fork(void *ctx)
{
  return ctx;
}

/* Returns the results of the Lua function if it fails. */
static int open_file(lua_State *L, struct luam_Sysprof_Options *opt,
		     const FileOptions *fo, StreamFile **sfp)
{
  switch (lj_streamfile_open(fo->path, fo->shared, fo->children, sfp)) {
  case STREAMFILE_OK: break;
  case STREAMFILE_INUSE:
    lua_pushfstring(L, "%s: another profile of this process is being written "
		    "into this file; give each its own path, or all of them "
		    "shared = true", fo->path);
    return push_error(L, lua_tostring(L, -1), EBUSY);
  default: return push_syserror(L, fo->path, errno);
  }
  opt->buf = (*sfp)->buf;
  opt->len = sizeof((*sfp)->buf);
  opt->ctx = *sfp;
  opt->session = (*sfp)->session;
  if (fo->children) opt->on_fork = lj_streamfile_fork;
  return 0;
}

static int push_start_error(lua_State *L, int status, int err)
{
  const char *why = lj_sysprof_why();
  switch (status) {
  case PROFILE_ERRUSE:
    return why[0] ? push_error(L, why, EINVAL) : push_misuse(L);
  case PROFILE_ERRRUN:
    return push_error(L, "profiler is running already", EINVAL);
  case PROFILE_ERRMEM: return push_syserror(L, NULL, err ? err : ENOMEM);
  default:
    return why[0] ? push_error(L, why, err) : push_syserror(L, NULL, err);
  }
}

static int sysprof_start(lua_State *L)
{
  static const SysprofCallbacks none;
  static const SysprofCallbacks file = {
    lj_streamfile_write, lj_streamfile_close, NULL
  };
  static char counters_ctx;
  struct luam_Sysprof_Options opt;
  FileOptions fo;
  StreamFile *sf = NULL;
  int status, err, n;
  if (!options_read(L, &opt, &fo)) return push_misuse(L);
  if (lj_sysprof_isrunning(G(L)))  /* Before the file is touched. */
    return push_error(L, "profiler is running already", EINVAL);
  if (opt.mode != LUAM_SYSPROF_DEFAULT) {
    if ((n = open_file(L, &opt, &fo, &sf)) != 0) return n;
  } else if (fo.children) {
    opt.on_fork = counters_fork;
    opt.ctx = &counters_ctx;
  }
  lj_sysprof_why()[0] = '\0';
  status = lj_sysprof_start(L, &opt, sf ? &file : &none);
  err = errno;
  if (status == PROFILE_SUCCESS) {
    lua_pushstring(L, fo.path);
    lua_setfield(L, LUA_REGISTRYINDEX, SYSPROF_PATH_KEY);
    lua_pushboolean(L, 1);
    return 1;
  }
  n = sf ? sf->err : 0;
  if (sf) lj_streamfile_close(sf, NULL);
  return n ? push_syserror(L, fo.path, n) : push_start_error(L, status, err);
}

static int sysprof_stop(lua_State *L)
{
  int status = lj_sysprof_stop(G(L)), err = errno;
  switch (status) {
  case PROFILE_SUCCESS: lua_pushboolean(L, 1); return 1;
  case PROFILE_ERRRUN:
    return push_error(L, "profiler is not running", EINVAL);
  default:
    lua_getfield(L, LUA_REGISTRYINDEX, SYSPROF_PATH_KEY);
    return push_syserror(L, lua_tostring(L, -1), err);
  }
}

static void get_counters(lua_State *L, struct luam_Sysprof_Counters *c)
{
  lj_sysprof_counters(G(L), c);
}

#else  /* LUAJIT_DISABLE_SYSPROF */

static int sysprof_start(lua_State *L)
{
  lua_pushboolean(L, 0);
  return 1;
}

#define sysprof_stop	sysprof_start

static void get_counters(lua_State *L, struct luam_Sysprof_Counters *c)
{
  (void)L;
  memset(c, 0, sizeof(*c));
}

#endif

static void set_count(lua_State *L, const char *name, uint64_t n)
{
  lua_pushnumber(L, (lua_Number)n);
  lua_setfield(L, -2, name);
}

static int sysprof_report(lua_State *L)
{
  struct luam_Sysprof_Counters c;
  get_counters(L, &c);
  lua_createtable(L, 0, 2);
  set_count(L, "samples", c.samples);
  lua_createtable(L, 0, 10);
  set_count(L, "INTERP", c.vmst_interp);
  set_count(L, "LFUNC", c.vmst_lfunc);
  set_count(L, "FFUNC", c.vmst_ffunc);
  set_count(L, "CFUNC", c.vmst_cfunc);
  set_count(L, "GC", c.vmst_gc);
  set_count(L, "EXIT", c.vmst_exit);
  set_count(L, "RECORD", c.vmst_record);
  set_count(L, "OPT", c.vmst_opt);
  set_count(L, "ASM", c.vmst_asm);
  set_count(L, "TRACE", c.vmst_trace);
  lua_setfield(L, -2, "vmstate");
  return 1;
}

static const luaL_Reg sysprof_funcs[] = {
  { "start", sysprof_start },
  { "stop", sysprof_stop },
  { "report", sysprof_report },
  { NULL, NULL }
};

static const luaL_Reg misc_funcs[] = {
  { NULL, NULL }
};

LUALIB_API int luaopen_misc(lua_State *L)
{
  luaL_register(L, LUAM_MISCLIBNAME, misc_funcs);
  lua_createtable(L, 0, 3);
  luaL_register(L, NULL, sysprof_funcs);
  lua_setfield(L, -2, "sysprof");
  return 1;
}
