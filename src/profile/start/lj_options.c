/*
** Option checks of a start, and the reason why the last start failed.
** Context: any thread, outside of the handler.
**
** The reason is the thread's, but does not live in its static TLS: that is short, and dlopen
** fails for a library that finds too little of it left.
*/

#define lj_options_c
#define LUA_CORE

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#include "lj_obj.h"
#include "profile/start/lj_options.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_relaxed.h"
#include "profile/stream/lj_stream.h"

#define REASONS_MAX 64 /* Threads that have a reason of their own at a time. */

/* Reasons of the threads that asked last. */
static struct {
  int tid;       /* 0: free. */
  uint32_t used; /* Number of the last use. */
  char why[EVENT_ERRMSG_MAX];
} reasons[REASONS_MAX];

/* Place of a thread's buffer, or -1. */
static int reason_find(int tid)
{
  int i;
  for (i = 0; i < REASONS_MAX; i++)
    if (relaxed_get(&reasons[i].tid) == tid) return i;
  return -1;
}

/* Take the buffer that nobody has used for longest. Returns its place, or -1 if another thread took it. */
static int reason_claim(int tid, uint32_t now)
{
  int i, oldest = 0, owner = relaxed_get(&reasons[0].tid);
  for (i = 1; i < REASONS_MAX; i++) {
    if (now - relaxed_get(&reasons[i].used) <= now - relaxed_get(&reasons[oldest].used))
      continue;
    oldest = i;
    owner = relaxed_get(&reasons[i].tid);
  }
  relaxed_set(&reasons[oldest].used, now); /* First: nobody else takes it from now on. */
  if (!__atomic_compare_exchange_n(&reasons[oldest].tid, &owner, tid, 0, __ATOMIC_RELAXED,
				   __ATOMIC_RELAXED))
    return -1;
  reasons[oldest].why[0] = '\0';
  return oldest;
}

/* Not a key of pthreads: where dlmopen(3) loads a second C library, both give the same keys, and each would
** free what the other has set.
*/
char *lj_options_errmsg(void)
{
  static uint32_t uses;
  int err = errno, tid = lj_osthread_self(), i = reason_find(tid);
  uint32_t now = __atomic_add_fetch(&uses, 1, __ATOMIC_RELAXED);
  while (i < 0) i = reason_claim(tid, now);
  relaxed_set(&reasons[i].used, now);
  errno = err;
  return reasons[i].why;
}

/* Write the reason with a format of printf. Returns 0. */
static int fail(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  vsnprintf(lj_options_errmsg(), EVENT_ERRMSG_MAX, format, args);
  va_end(args);
  return 0;
}

/* Is the signal free for the clocks? While the profiler uses a signal, the signal loses its
** default action. So no signal is allowed that reports a crash or ends a program.
*/
static int signal_isusable(int signo)
{
  switch (signo) {
  case 0:
  case SIGPROF:
  case SIGALRM:
  case SIGVTALRM:
  case SIGUSR1:
  case SIGUSR2:
  case SIGURG:
  case SIGIO:
  case SIGSTKFLT: return 1;
  default: return signo >= SIGRTMIN && signo <= SIGRTMAX;
  }
}

int lj_options_valid(const struct luam_Sysprof_Options *opt, const SysprofCallbacks *cb)
{
  if (opt->mode > LUAM_SYSPROF_CALLGRAPH)
    return fail("mode %d is unknown; expected LUAM_SYSPROF_DEFAULT, _LEAF or "
		"_CALLGRAPH",
		opt->mode);
  if (!opt->clocks && opt->clock > LUAM_SYSPROF_CLOCK_WALL)
    return fail("clock %d is unknown; expected LUAM_SYSPROF_CLOCK_CPU or _WALL, "
		"or names in clocks",
		opt->clock);
  if (opt->threads > LUAM_SYSPROF_THREADS_ALL)
    return fail("threads %d is unknown; expected LUAM_SYSPROF_THREADS_OWN or _ALL",
		opt->threads);
  if (!signal_isusable(opt->signo))
    return fail(
      "signal %d is not allowed for the clocks; expected SIGPROF, SIGALRM, "
      "SIGVTALRM, SIGSTKFLT, SIGUSR1, SIGUSR2, SIGURG, SIGIO, or one from SIGRTMIN to "
      "SIGRTMAX",
      opt->signo);
  if (opt->flush > LUAM_SYSPROF_FLUSH_THREAD)
    return fail("flush %d is unknown; expected LUAM_SYSPROF_FLUSH_HANDLER, _VM or _THREAD",
		opt->flush);
  if (opt->backtracer > LUAM_SYSPROF_BACKTRACER_LIBUNWIND)
    return fail("backtracer %d is unknown; expected LUAM_SYSPROF_BACKTRACER_OWN or "
		"_LIBUNWIND",
		opt->backtracer);
  if (opt->backtracer && cb->backtracer)
    return fail("backtracer is LUAM_SYSPROF_BACKTRACER_LIBUNWIND beside "
		"luaM_sysprof_set_backtracer; expected one of them");
  if (opt->mode == LUAM_SYSPROF_DEFAULT) return 1;
  if (!opt->buf)
    return fail("buf is NULL; expected a buffer of at least %d bytes",
		LUAM_SYSPROF_BUF_MIN);
  if (opt->len < LUAM_SYSPROF_BUF_MIN)
    return fail("len %zu is too small; expected a buffer of at least %d bytes", opt->len,
		LUAM_SYSPROF_BUF_MIN);
  if (opt->flush && opt->len < LUAM_SYSPROF_BUF_MIN * LUAM_SYSPROF_FLUSH_BUFFERS)
    return fail("len %zu is too small for LUAM_SYSPROF_FLUSH_VM and _THREAD; expected a "
		"buffer of at least %d bytes",
		opt->len, LUAM_SYSPROF_BUF_MIN * LUAM_SYSPROF_FLUSH_BUFFERS);
  if (!cb->writer || !cb->on_stop)
    return fail("the stream has no %s; call luaM_sysprof_set_%s first",
		cb->writer ? "on_stop" : "writer", cb->writer ? "on_stop" : "writer");
  return 1;
}

int lj_options_fitevents(const struct luam_Sysprof_Options *opt, int nevent)
{
  size_t parts = opt->flush ? LUAM_SYSPROF_FLUSH_BUFFERS : 1;
  size_t least = LUAM_SYSPROF_BUF_MIN + (size_t)(nevent - 1) * STREAM_RESERVE_EVENT;
  if (opt->mode == LUAM_SYSPROF_DEFAULT || opt->len / parts >= least) return 1;
  return fail("len %zu is too small for %d events; expected a buffer of at least %zu bytes",
	      opt->len, nevent, least * parts);
}
