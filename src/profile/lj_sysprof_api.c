/*
** Sysprof: the public C API of lmisclib.h, and why a start failed. Runs outside
** of the handler; what they do is in lj_sysprof.c.
*/

#define lj_sysprof_api_c
#define LUA_CORE

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lj_obj.h"
#include "profile/lj_clockspec.h"
#include "profile/lj_sysprof.h"

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

static SysprofCallbacks configured;	/* By the setters. */
static int backtracer_configured;	/* NULL is a choice, too. */

/* -- Why a start failed ------------------------------------------------------ */

static __thread char start_why[CLOCK_WHY_MAX];

char *lj_sysprof_why(void)
{
  return start_why;
}

static int fail(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  vsnprintf(start_why, sizeof(start_why), format, args);
  va_end(args);
  return 0;
}

/* Signals that programs can do without, of which none says that one is broken or
** is to end: while the profiler has the signal, its default action is left out.
*/
static int signal_isusable(int signo)
{
  switch (signo) {
  case 0: case SIGPROF: case SIGALRM: case SIGVTALRM: case SIGUSR1: case SIGUSR2:
  case SIGURG: case SIGIO:
    return 1;
  default:
    return signo >= SIGRTMIN && signo <= SIGRTMAX;
  }
}

int lj_sysprof_options_valid(const struct luam_Sysprof_Options *opt,
			     const SysprofCallbacks *cb)
{
  if (opt->mode > LUAM_SYSPROF_CALLGRAPH)
    return fail("mode %d is unknown; expected LUAM_SYSPROF_DEFAULT, _LEAF or "
		"_CALLGRAPH", opt->mode);
  if (!opt->clocks && opt->clock > LUAM_SYSPROF_CLOCK_WALL)
    return fail("clock %d is unknown; expected LUAM_SYSPROF_CLOCK_CPU or _WALL, "
		"or names in clocks", opt->clock);
  if (opt->threads > LUAM_SYSPROF_THREADS_ALL)
    return fail("threads is %d; expected LUAM_SYSPROF_THREADS_OWN or _ALL",
		opt->threads);
  if (!signal_isusable(opt->signo))
    return fail("signal %d cannot be the profiler's; expected SIGPROF, SIGALRM, "
		"SIGVTALRM, SIGUSR1, SIGUSR2, SIGURG, SIGIO, or one from SIGRTMIN to "
		"SIGRTMAX", opt->signo);
  if (!opt->interval_ns && opt->interval > ~(uint64_t)0 / 1000000)
    return fail("an interval of %llu ms is too long",
		(unsigned long long)opt->interval);
  if (opt->flush > LUAM_SYSPROF_FLUSH_THREAD)
    return fail("flush is %d; expected LUAM_SYSPROF_FLUSH_HANDLER, _VM or _THREAD",
		opt->flush);
  if (opt->mode == LUAM_SYSPROF_DEFAULT) return 1;
  if (!opt->buf || opt->len < LUAM_SYSPROF_BUF_MIN)
    return fail("modes with a stream need a buffer of at least %d bytes in buf, its "
		"size in len", LUAM_SYSPROF_BUF_MIN);
  if (opt->flush && opt->len < LUAM_SYSPROF_BUF_MIN*LUAM_SYSPROF_FLUSH_BUFFERS)
    return fail("a buffer that is not written in the handler needs at least %d bytes",
		LUAM_SYSPROF_BUF_MIN*LUAM_SYSPROF_FLUSH_BUFFERS);
  if (!cb->writer || !cb->on_stop)
    return fail("modes with a stream need luaM_sysprof_set_%s to be called before",
		cb->writer ? "on_stop" : "writer");
  return 1;
}

/* A start that failed without a reason of its own. */
static void why_default(int status, int err)
{
  const char *s = "";
  switch (status) {
  case PROFILE_SUCCESS: break;
  case PROFILE_ERRRUN:
    s = "this VM is profiled already, or jit.profile runs; stop that first";
    break;
  default:
    s = strerror(err ? err : status == PROFILE_ERRMEM ? ENOMEM : EIO);
    break;
  }
  snprintf(start_why, sizeof(start_why), "%s", s);
}

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

LUAMISC_API int luaM_sysprof_start(lua_State *L,
				   const struct luam_Sysprof_Options *opt)
{
  int status = PROFILE_ERRUSE, err;
  start_why[0] = '\0';
  if (!L || !opt)
    fail("no VM or no options are given");
  else if (opt->mode != LUAM_SYSPROF_DEFAULT && !backtracer_configured)
    fail("modes with a stream need luaM_sysprof_set_backtracer to be called before, "
	 "with NULL for the built-in one");
  else
    status = lj_sysprof_start(L, opt, &configured);
  err = errno;
  if (status == PROFILE_SUCCESS || start_why[0] == '\0')
    why_default(status, err);
  errno = err;
  return status;
}

LUAMISC_API const char *luaM_sysprof_error(void)
{
  return start_why;
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
  lj_sysprof_counters(NULL, counters);
  return PROFILE_SUCCESS;
}

LUAMISC_API int luaM_sysprof_selfreport(lua_State *L,
					struct luam_Sysprof_SelfReport *r,
					size_t size)
{
  struct luam_Sysprof_SelfReport mine;
  if (!r) return PROFILE_ERRUSE;
  lj_sysprof_selfreport(L ? G(L) : NULL, &mine);
  memset(r, 0, size);
  memcpy(r, &mine, size < sizeof(mine) ? size : sizeof(mine));
  return PROFILE_SUCCESS;
}
