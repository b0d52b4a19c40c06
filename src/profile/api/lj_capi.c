/*
** Public C API: the functions of lmisclib.h.
** Context: any thread that may use the VM, outside of the handler.
**
** Stores the callbacks, and keeps the reason of a failed start. lj_sysprof.c starts and
** stops profiles, lj_startfile.c opens files.
*/

#define lj_capi_c
#define LUA_CORE

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lj_obj.h"
#include "profile/api/lj_codump.h"
#include "profile/api/lj_live.h"
#include "profile/api/lj_memprof.h"
#include "profile/api/lj_options.h"
#include "profile/api/lj_report.h"
#include "profile/api/lj_startfile.h"
#include "profile/api/lj_sysprof.h"

#define PATH_INTERVAL_MS 10 /* Interval of luaM_sysprof_start_path without options. */

/* The public numbers of broken stacks are those of the stream format. */
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_NO_BASE == SPF_BROKEN_NO_BASE);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_CHAIN == SPF_BROKEN_CHAIN);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_STACK_MOVE == SPF_BROKEN_STACK_MOVE);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_FAULT == SPF_BROKEN_FAULT);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_NO_CFI == SPF_BROKEN_NO_CFI);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_NOT_VM == SPF_BROKEN_NOT_VM);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_JOIN == SPF_BROKEN_JOIN);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_TRACE == SPF_BROKEN_TRACE);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN__MAX == SPF_BROKEN__MAX);

static SysprofCallbacks configured; /* Callbacks from the setters. */

/* -- Callbacks --------------------------------------------------------------- */

LUAMISC_API int luaM_sysprof_set_writer(luam_Sysprof_writer writer)
{
  if (!writer) return PROFILE_ERRUSE;
  configured.writer = writer;
  return PROFILE_SUCCESS;
}

LUAMISC_API int luaM_sysprof_set_on_stop(luam_Sysprof_on_stop on_stop)
{
  if (!on_stop) return PROFILE_ERRUSE;
  configured.on_stop = on_stop;
  return PROFILE_SUCCESS;
}

LUAMISC_API int luaM_sysprof_set_backtracer(luam_Sysprof_backtracer backtracer)
{
  configured.backtracer = backtracer;
  return PROFILE_SUCCESS;
}

/* -- Start, stop and report -------------------------------------------------- */

static void say_null(const char *argument)
{
  snprintf(lj_options_errmsg(), EVENT_ERRMSG_MAX,
	   "the argument %s is NULL; expected a pointer", argument);
}

/* Write the reason of a start that failed without a reason of its own. */
static void errmsg_default(int status, int err)
{
  const char *s = "";
  switch (status) {
  case PROFILE_SUCCESS: break;
  case PROFILE_ERRRUN:
    s = "this VM is profiled already, or jit.profile runs; stop that first";
    break;
  default: s = strerror(err ? err : status == PROFILE_ERRMEM ? ENOMEM : EIO); break;
  }
  snprintf(lj_options_errmsg(), EVENT_ERRMSG_MAX, "%s", s);
}

LUAMISC_API int luaM_sysprof_start(lua_State *L, const struct luam_Sysprof_Options *opt)
{
  char *errmsg = lj_options_errmsg();
  int status = PROFILE_ERRUSE, err;
  errmsg[0] = '\0';
  if (!L || !opt) say_null(L ? "opt" : "L");
  else status = lj_sysprof_start(L, opt, &configured, NULL);
  err = errno;
  if (status == PROFILE_SUCCESS || errmsg[0] == '\0') errmsg_default(status, err);
  errno = err;
  return status;
}

/* Start with a file as the stream. Its writer does not run in the handler. */
static int start_path(lua_State *L, struct luam_Sysprof_Options *opt, const char *path)
{
  StreamFileOptions fo = { .path = path };
  StartResult r;
  if (opt->flush == LUAM_SYSPROF_FLUSH_HANDLER) opt->flush = LUAM_SYSPROF_FLUSH_VM;
  lj_startfile(L, opt, &fo, configured.backtracer, &r);
  if (r.inuse)
    r.problem = "another profile of this process writes to this file; choose another path";
  if (r.problem) snprintf(lj_options_errmsg(), EVENT_ERRMSG_MAX, "%s: %s", path, r.problem);
  errno = r.err;
  return r.status;
}

LUAMISC_API int luaM_sysprof_start_path(lua_State *L,
					const struct luam_Sysprof_Options *opt,
					const char *path)
{
  struct luam_Sysprof_Options o;
  char *errmsg = lj_options_errmsg();
  int status = PROFILE_ERRUSE, err;
  errmsg[0] = '\0';
  if (!L || !path) {
    say_null(L ? "path" : "L");
  } else if (opt && opt->mode == LUAM_SYSPROF_DEFAULT) {
    snprintf(errmsg, EVENT_ERRMSG_MAX,
	     "mode LUAM_SYSPROF_DEFAULT has no stream; expected "
	     "LUAM_SYSPROF_LEAF or _CALLGRAPH");
  } else {
    if (opt) {
      o = *opt;
    } else {
      memset(&o, 0, sizeof(o));
      o.mode = LUAM_SYSPROF_CALLGRAPH;
      o.interval = PATH_INTERVAL_MS;
    }
    status = start_path(L, &o, path);
  }
  err = errno;
  if (status == PROFILE_SUCCESS || errmsg[0] == '\0') errmsg_default(status, err);
  errno = err;
  return status;
}

LUAMISC_API const char *luaM_sysprof_error(void)
{
  return lj_options_errmsg();
}

LUAMISC_API int luaM_sysprof_stop(lua_State *L)
{
  if (!L) return PROFILE_ERRUSE;
  lj_sysprof_collect(L);
  return lj_sysprof_stop(G(L));
}

LUAMISC_API int luaM_sysprof_dump(lua_State *L)
{
  if (!L) return PROFILE_ERRUSE;
  lj_sysprof_collect(L);
  return lj_sysprof_dump(G(L));
}

LUAMISC_API int luaM_sysprof_moved(lua_State *L)
{
  return L ? lj_sysprof_moved(G(L)) : PROFILE_ERRUSE;
}

LUAMISC_API int luaM_sysprof_report(struct luam_Sysprof_Counters *counters)
{
  if (!counters) return PROFILE_ERRUSE;
  lj_report_counters(NULL, counters);
  return PROFILE_SUCCESS;
}

LUAMISC_API int luaM_sysprof_selfreport(lua_State *L, struct luam_Sysprof_SelfReport *r,
					size_t size)
{
  struct luam_Sysprof_SelfReport mine;
  if (!r) return PROFILE_ERRUSE;
  lj_report_self(L ? G(L) : NULL, &mine);
  memset(r, 0, size);
  memcpy(r, &mine, size < sizeof(mine) ? size : sizeof(mine));
  return PROFILE_SUCCESS;
}

/* -- Live control ------------------------------------------------------------ */

LUAMISC_API int luaM_sysprof_live(lua_State *L)
{
  char *errmsg = lj_options_errmsg();
  errmsg[0] = '\0';
  if (!L) {
    say_null("L");
    return PROFILE_ERRUSE;
  }
  return lj_live_add(L) ? PROFILE_ERRIO : PROFILE_SUCCESS;
}

/* -- Coroutines -------------------------------------------------------------- */

LUAMISC_API int luaM_sysprof_coroutines(lua_State *L, const char *format, char **text,
					size_t *len)
{
  CoFormat cf = format ? lj_cotext_format(format) : CO_TEXT;
  char *errmsg = lj_options_errmsg();
  errmsg[0] = '\0';
  if (!L || !text || !len) {
    say_null(!L ? "L" : text ? "len" : "text");
    return PROFILE_ERRUSE;
  }
  if (cf == CO_UNKNOWN) {
    snprintf(errmsg, EVENT_ERRMSG_MAX, "the format is %.64s; expected text, json or folded",
	     format);
    return PROFILE_ERRUSE;
  }
  if (lj_codump_text(L, cf, text, len)) return PROFILE_SUCCESS;
  snprintf(errmsg, EVENT_ERRMSG_MAX, "%s", strerror(ENOMEM));
  return PROFILE_ERRMEM;
}

/* -- Memory ------------------------------------------------------------------ */

LUAMISC_API int luaM_memprof_start(lua_State *L, const struct luam_Sysprof_Options *opt,
				   const char *path)
{
  struct luam_Sysprof_Options o;
  if (opt && opt->clocks) {
    snprintf(lj_options_errmsg(), EVENT_ERRMSG_MAX,
	     "clocks is %.64s; expected NULL: a memory profile samples the event alloc",
	     opt->clocks);
    return PROFILE_ERRUSE;
  }
  memset(&o, 0, sizeof(o));
  if (opt) o = *opt;
  o.mode = LUAM_SYSPROF_CALLGRAPH;
  o.clocks = "alloc";
  o.interval = PATH_INTERVAL_MS;
  return luaM_sysprof_start_path(L, &o, path);
}

LUAMISC_API int luaM_memprof_stop(lua_State *L)
{
  if (!L) return PROFILE_ERRUSE;
  lj_sysprof_collect(L);
  return lj_memprof_stop(G(L));
}

LUAMISC_API int luaM_memprof_count(lua_State *L, uint32_t runs, uint32_t warmup,
				   struct luam_Memprof_Count *count, size_t size)
{
  struct luam_Memprof_Count mine;
  char *errmsg = lj_options_errmsg();
  int status;
  errmsg[0] = '\0';
  if (!L || !count) {
    say_null(L ? "count" : "L");
    return PROFILE_ERRUSE;
  }
  status = lj_memprof_count(L, runs, warmup, &mine);
  if (status != PROFILE_SUCCESS) return status;
  memset(count, 0, size);
  memcpy(count, &mine, size < sizeof(mine) ? size : sizeof(mine));
  return status;
}
