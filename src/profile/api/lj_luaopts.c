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
#include "profile/api/lj_luaopts.h"
#include "profile/output/lj_outfile.h"

#define SYSPROF_PATH            "sysprof.bin" /* Default file. */
#define SYSPROF_INTERVAL_MS     10            /* Default interval. */
#define SYSPROF_INTERVAL_MS_MAX 86400000.0    /* A day. */
#define SYSPROF_HZ_MIN          (1e3 / SYSPROF_INTERVAL_MS_MAX)
#define SYSPROF_HZ_MAX          1e9
#define SYSPROF_PERIOD_MAX      9007199254740992.0 /* 2^53, whole numbers. */

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

/* Read a number in [min, max]. Keeps *n if the option is nil. Returns 0 if it is wrong. */
static int option_number(lua_State *L, const char *name, lua_Number min, lua_Number max,
			 lua_Number *n)
{
  int ok = 1;
  lua_getfield(L, 1, name);
  if (lua_type(L, -1) == LUA_TNUMBER) {
    *n = lua_tonumber(L, -1);
    ok = (*n >= min && *n <= max); /* False for NaN. */
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

/* Read interval, in milliseconds, or hz. */
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

/* Read a string without zero bytes and leave it on the stack. Keeps *sp if the option is
** nil or has another type.
*/
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

static int option_flush(lua_State *L, struct luam_Sysprof_Options *opt)
{
  const char *s = "vm";
  if (!option_string(L, "flush", &s)) return 0;
  if (strcmp(s, "vm") == 0) opt->flush = LUAM_SYSPROF_FLUSH_VM;
  else if (strcmp(s, "thread") == 0) opt->flush = LUAM_SYSPROF_FLUSH_THREAD;
  else return 0;
  lua_pop(L, 1);
  return 1;
}

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

static int option_signal(lua_State *L, struct luam_Sysprof_Options *opt)
{
  const char *name = NULL;
  lua_Number n = 0;
  int is_name = option_string(L, "signal", &name);
  if (name) opt->signo = is_name ? lj_luaopts_signal(name) : 0;
  lua_pop(L, 1);
  if (name) return opt->signo != 0;
  if (!option_number(L, "signal", 1, SIGRTMAX, &n)) return 0;
  opt->signo = (int)n;
  return (lua_Number)opt->signo == n;
}

/* Read the flags that say how the file may be opened. */
static int option_how(lua_State *L, int *how)
{
  int force, follow, regular;
  if (!option_flag(L, "force", &force) || !option_flag(L, "follow", &follow) ||
      !option_flag(L, "regular", &regular))
    return 0;
  *how = (force ? OUTFILE_FORCE : 0) | (follow ? OUTFILE_FOLLOW : 0) |
	 (regular ? OUTFILE_REGULAR : 0);
  return 1;
}

int lj_luaopts_read(lua_State *L, struct luam_Sysprof_Options *opt, StreamFileOptions *fo)
{
  int jitter, prefer_tick;
  memset(opt, 0, sizeof(*opt));
  fo->path = SYSPROF_PATH;
  if (lua_type(L, 1) != LUA_TTABLE || !option_mode(L, opt) || !option_interval(L, opt) ||
      !option_period(L, opt) || !option_signal(L, opt) ||
      !option_flag(L, "jitter", &jitter) || !option_flag(L, "prefer_tick", &prefer_tick) ||
      !option_threads(L, opt) || !option_flush(L, opt) ||
      !option_flag(L, "fork", &fo->children) || !option_flag(L, "shared", &fo->shared) ||
      !option_flag(L, "told", &fo->told) || !option_how(L, &fo->how) ||
      !option_string(L, "clock", &opt->clocks) || !option_string(L, "path", &fo->path))
    return 0;
  opt->jitter = (uint8_t)jitter;
  opt->prefer_tick = (uint8_t)prefer_tick;
  return 1;
}
