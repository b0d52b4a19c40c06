/*
** Sysprof: the public C API of lmisclib.h. Runs outside of the handler; what its
** functions do is in lj_sysprof.c.
*/

#define lj_capi_c
#define LUA_CORE

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lj_obj.h"
#include "profile/clock/lj_clockspec.h"
#include "profile/api/lj_sysprof.h"

/* The public names of what the format counts. */
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_NO_BASE == SPF_BROKEN_NO_BASE);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_CHAIN == SPF_BROKEN_CHAIN);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_STACK_MOVE == SPF_BROKEN_STACK_MOVE);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_FAULT == SPF_BROKEN_FAULT);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_NO_CFI == SPF_BROKEN_NO_CFI);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_NOT_VM == SPF_BROKEN_NOT_VM);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_JOIN == SPF_BROKEN_JOIN);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_TRACE == SPF_BROKEN_TRACE);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN__MAX == SPF_BROKEN__MAX);

static SysprofCallbacks configured; /* By the setters. */
static int backtracer_configured;   /* NULL is a choice, too. */

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
  backtracer_configured = 1;
  return PROFILE_SUCCESS;
}

/* -- Start, stop and report -------------------------------------------------- */

/* A start that failed without a reason of its own. */
static void why_default(int status, int err)
{
  const char *s = "";
  switch (status) {
  case PROFILE_SUCCESS: break;
  case PROFILE_ERRRUN:
    s = "this VM is profiled already, or jit.profile runs; stop that first";
    break;
  default: s = strerror(err ? err : status == PROFILE_ERRMEM ? ENOMEM : EIO); break;
  }
  snprintf(lj_options_errmsg(), CLOCK_ERRMSG_MAX, "%s", s);
}

LUAMISC_API int luaM_sysprof_start(lua_State *L, const struct luam_Sysprof_Options *opt)
{
  char *why = lj_options_errmsg();
  int status = PROFILE_ERRUSE, err;
  why[0] = '\0';
  if (!L || !opt) snprintf(why, CLOCK_ERRMSG_MAX, "no VM or no options are given");
  else if (opt->mode != LUAM_SYSPROF_DEFAULT && !backtracer_configured)
    snprintf(why, CLOCK_ERRMSG_MAX,
	     "modes with a stream need luaM_sysprof_set_backtracer "
	     "to be called before, with NULL for the built-in one");
  else status = lj_sysprof_start(L, opt, &configured);
  err = errno;
  if (status == PROFILE_SUCCESS || why[0] == '\0') why_default(status, err);
  errno = err;
  return status;
}

LUAMISC_API const char *luaM_sysprof_error(void)
{
  return lj_options_errmsg();
}

LUAMISC_API int luaM_sysprof_stop(lua_State *L)
{
  return L ? lj_sysprof_stop(G(L)) : PROFILE_ERRUSE;
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
