/*
** Profiler entry points of a VM: start, stop, dump, move.
** Context: VM thread, outside of the handler. Takes the lock.
*/

#define lj_sysprof_c
#define LUA_CORE

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lj_obj.h"
#include "lj_state.h"
#include "lj_trace.h"
#include "lj_vm.h"
#include "profile/start/lj_options.h"
#include "profile/process/lj_process.h"
#include "profile/start/lj_sysprof.h"
#include "profile/base/lj_osprocess.h"
#include "profile/base/lj_ossignal.h"
#include "profile/base/lj_osstack.h"
#include "profile/base/lj_osthread.h"
#include "profile/host/lj_hostwalk.h"
#include "profile/host/lj_rowload.h"
#include "profile/lua/lj_luamain.h"
#include "profile/session/lj_registry.h"
#include "profile/session/lj_sources.h"

#if !(LJ_TARGET_X64 && LJ_TARGET_LINUX && LJ_FR2)
#error "sysprof needs Linux on x86-64 and a GC64 build of LuaJIT"
#endif

#define INTERVAL_MS_MAX (24 * 3600 * 1000) /* A longer interval counts as this one. */

/* Read the options. Returns 0 if one of them is not valid, and writes the reason. */
static int read_options(ProfileOptions *o, const struct luam_Sysprof_Options *opt,
			const SysprofCallbacks *cb, char *errmsg)
{
  const char *clocks = opt->clocks                             ? opt->clocks
		       : opt->clock == LUAM_SYSPROF_CLOCK_WALL ? "wall"
							       : "cpu";
  uint64_t interval_ns = opt->interval_ns;
  EventDefaults by;
  if (!lj_options_valid(opt, cb)) return 0;
  if (!interval_ns) {
    uint64_t ms = opt->interval < INTERVAL_MS_MAX ? opt->interval : INTERVAL_MS_MAX;
    interval_ns = ms * 1000000;
  }
  by.interval_ns = interval_ns;
  by.period = opt->period;
  by.jitter = opt->jitter;
  by.prefer_tick = opt->prefer_tick;
  o->nspec = lj_sources_parse(clocks, &by, o->spec, errmsg);
  o->mode = opt->mode;
  o->threads = opt->threads;
  o->flush = opt->flush;
  /* Some threads run no VM. While one waits, nobody asks its VM to write. */
  if (o->flush == LUAM_SYSPROF_FLUSH_VM &&
      (o->threads == LUAM_SYSPROF_THREADS_ALL || profileopts_haslook(o)))
    o->flush = LUAM_SYSPROF_FLUSH_THREAD;
  o->signo = opt->signo;
  o->walker = opt->backtracer;
  o->gc = opt->gc;
  o->interval_ns = interval_ns;
  o->cb = *cb;
  o->ctx = opt->ctx;
  o->buf = opt->buf;
  o->len = opt->len;
  o->on_fork = opt->on_fork;
  o->number = opt->session;
  memset(&o->limits, 0, sizeof(o->limits));
  o->end_ns = 0;
  return o->nspec != 0 && lj_options_fitevents(opt, o->nspec);
}

int lj_sysprof_prepare(const global_State *g)
{
  const char *why = lj_process_begin(g);
  if (!why) return PROFILE_SUCCESS;
  snprintf(lj_options_errmsg(), EVENT_ERRMSG_MAX, "%s", why);
  return errno == EINVAL ? PROFILE_ERRUSE : PROFILE_ERRMEM;
}

/* Does the thread's C stack have room for a signal? Otherwise the first one ends the program. */
static int stack_suffices(const VmThread *thread, char *errmsg)
{
  size_t size = thread->stack_hi - thread->stack_lo;
  size_t need = lj_osstack_leastofvm();
  if (size == 0 || size >= need) return 1;
  snprintf(errmsg, EVENT_ERRMSG_MAX,
	   "the C stack of the VM's thread has %zu KB; a profile needs at least %zu KB, "
	   "see ulimit -s",
	   size >> 10, (need + 1023) >> 10);
  return 0;
}

/* Has the calling thread's signal stack room for a signal, if there is one? */
static int signal_stack_suffices(char *errmsg)
{
  size_t need = lj_osthread_signalframe() + OSSIGNAL_STACK;
  stack_t ss;
  if (sigaltstack(NULL, &ss) != 0 || (ss.ss_flags & SS_DISABLE) || ss.ss_size >= need)
    return 1;
  snprintf(
    errmsg, EVENT_ERRMSG_MAX,
    "the signal stack of the thread has %zu bytes; a profile needs at least %zu, see "
    "sigaltstack(2)",
    ss.ss_size, need);
  return 0;
}

int lj_sysprof_startfor(global_State *g, const VmThread *thread,
			const struct luam_Sysprof_Options *opt, const SysprofCallbacks *cb,
			const ProfileLimits *limits, const int *others)
{
  char *errmsg = lj_options_errmsg();
  static ProfileOptions asked; /* Under the lock. Too large for a small stack. */
  Profile *p;
  int status = PROFILE_ERRUSE, err = 0;
  errmsg[0] = '\0';
  lj_osprocess_pin();
  lj_process_lock();
  if (!read_options(&asked, opt, cb, errmsg)) {
    err = errno;
    goto out;
  }
  if ((status = lj_sysprof_prepare(g)) != PROFILE_SUCCESS) {
    err = errno;
    goto out;
  }
  p = lj_registry_get(g);
  status = PROFILE_ERRMEM;
  if (!p) goto out;
  status = PROFILE_ERRRUN;
  if (profile_isrunning(p)) goto out;
  lj_vmprofile_disown(p);
  if (!stack_suffices(thread, errmsg)) {
    status = PROFILE_ERRMEM;
    err = ENOMEM;
    goto out;
  }
  if (!lj_hostwalk_warmup()) {
    status = PROFILE_ERRMEM;
    err = ENOTSUP;
    strcpy(errmsg, HOSTWALK_UNKNOWN);
    goto out;
  }
  if (asked.walker == LUAM_SYSPROF_BACKTRACER_LIBUNWIND &&
      !lj_rowload_begin(errmsg, EVENT_ERRMSG_MAX)) {
    status = PROFILE_ERRIO;
    err = ENOENT;
    goto out;
  }
  p->opt = asked;
  p->opt.thread = *thread;
  p->opt.others = others;
  if (limits) p->opt.limits = *limits;
  errno = 0;
  status = lj_process_start(p, errmsg);
  err = errno;
out:
  lj_process_unlock();
  errno = err;
  return status;
}

int lj_sysprof_start(lua_State *L, const struct luam_Sysprof_Options *opt,
		     const SysprofCallbacks *cb, const ProfileLimits *limits)
{
  VmThread own = { lj_osthread_self(), 0, 0 };
  if (!signal_stack_suffices(lj_options_errmsg())) {
    errno = ENOMEM;
    return PROFILE_ERRMEM;
  }
  lj_osthread_stack(&own.stack_lo, &own.stack_hi);
  return lj_sysprof_startfor(G(L), &own, opt, cb, limits, NULL);
}

int lj_sysprof_joinvm(global_State *g)
{
  char *errmsg = lj_options_errmsg();
  Profile *p;
  int status = PROFILE_ERRRUN, err = 0;
  errmsg[0] = '\0';
  lj_process_lock();
  p = lj_registry_of(g);
  if (p && profile_isrunning(p)) {
    err = lj_vmprofile_joinvm(p, errmsg);
    status = err ? PROFILE_ERRIO : PROFILE_SUCCESS;
  }
  lj_process_unlock();
  errno = err;
  return status;
}

/* -- Collection -------------------------------------------------------------- */

/* Does the profile want a collection now? If so, write the names of functions that it may free. frame: of
** the caller.
*/
static int wants_collection(global_State *g, void *frame)
{
  Profile *p;
  int wants;
  lj_process_lock();
  p = lj_registry_of(g);
  wants = p && profile_isrunning(p) && p->opt.gc && lj_vmgate_isours(&p->gate);
  if (wants) {
    lj_vmprofile_name(p); /* If that fails, so does the stop. */
    relaxed_set(&p->gate.door.collects, (uintptr_t)frame);
  }
  lj_process_unlock();
  return wants;
}

static void end_collection(global_State *g)
{
  Profile *p;
  lj_process_lock();
  p = lj_registry_of(g);
  if (p) relaxed_set(&p->gate.door.collects, (uintptr_t)0);
  lj_process_unlock();
}

/* No function that the VM calls: a hook of the program would see it. */
static TValue *collect(lua_State *L, lua_CFunction none, void *ud)
{
  UNUSED(none);
  UNUSED(ud);
  lua_gc(L, LUA_GCCOLLECT, 0);
  return NULL;
}

/* The compiler may record the program just now. */
void lj_sysprof_collect(lua_State *L)
{
  global_State *g = G(L);
  GCSize threshold = g->gc.threshold;
  uint8_t hooks = hook_save(g);
  int err = errno;
  if (wants_collection(g, __builtin_frame_address(0))) {
    if (lua_checkstack(L, 2)) {
      lj_trace_abort(g);
      if (lj_vm_cpcall(L, NULL, NULL, collect) != 0) { /* A finalizer may throw. */
	hook_restore(g, hooks);
	lua_pop(L, 1);
      }
    }
    end_collection(g);
    if (threshold == LJ_MAX_MEM) g->gc.threshold = threshold; /* It stays stopped. */
  }
  errno = err;
}

/* The profile says that the collection takes what only locals of the main chunk hold. */
static void hide_locals(global_State *g)
{
  Profile *p;
  lj_process_lock();
  p = lj_registry_of(g);
  if (p && profile_isrunning(p) && p->opt.gc) relaxed_set(&p->gate.door.hides_locals, 1);
  lj_process_unlock();
}

void lj_sysprof_collectlast(lua_State *L)
{
  ptrdiff_t top = savestack(L, L->top);
  int is_hidden;
  TValue *end = lj_luamain_end(L, &is_hidden);
  if (is_hidden) hide_locals(G(L));
  if (end) L->top = end;
  lj_sysprof_collect(L);
  if (end) L->top = restorestack(L, top);
}

/* -- Stop, dump, move -------------------------------------------------------- */

int lj_sysprof_stop(global_State *g)
{
  Profile *p;
  int status = PROFILE_ERRRUN;
  lj_process_lock();
  p = lj_registry_of(g);
  if (p) {
    lj_vmprofile_disown(p);
    if (profile_isrunning(p)) status = lj_process_stop(p);
  }
  lj_process_unlock();
  return status;
}

int lj_sysprof_force(global_State *g)
{
  Profile *p;
  int done = 1;
  lj_process_lock();
  p = lj_registry_of(g);
  if (p && profile_isrunning(p) && (done = lj_vmprofile_canhalt(p)) != 0)
    lj_process_stop(p);
  lj_process_unlock();
  return done;
}

int lj_sysprof_dump(global_State *g)
{
  Profile *p;
  int status = PROFILE_ERRRUN, err = 0;
  lj_process_lock();
  p = lj_registry_of(g);
  if (p && profile_isrunning(p)) {
    err = lj_vmprofile_dump(p);
    status = err ? PROFILE_ERRIO : PROFILE_SUCCESS;
  }
  lj_process_unlock();
  errno = err;
  return status;
}

int lj_sysprof_moved(global_State *g)
{
  char *errmsg = lj_options_errmsg();
  VmThread own = { lj_osthread_self(), 0, 0 };
  Profile *p;
  int status = PROFILE_ERRRUN, err = 0;
  lj_process_moved(g);
  lj_osthread_stack(&own.stack_lo, &own.stack_hi);
  lj_process_lock();
  p = lj_registry_of(g);
  if (p && profile_isrunning(p) && p->opt.threads != LUAM_SYSPROF_THREADS_ALL &&
      !stack_suffices(&own, errmsg)) {
    status = PROFILE_ERRMEM;
    err = ENOMEM;
  } else if (p && profile_isrunning(p)) {
    err = lj_vmprofile_move(p, errmsg);
    if (err == 0) err = lj_process_setthread(); /* This one may block our signals. */
    status = err ? PROFILE_ERRIO : PROFILE_SUCCESS;
  }
  lj_process_unlock();
  errno = err;
  return status;
}

void lj_sysprof_over(global_State *g)
{
  Profile *p;
  lj_process_lock();
  p = lj_registry_of(g);
  if (p && profile_isrunning(p) && !p->is_over) lj_process_over(p);
  lj_process_unlock();
}

int lj_sysprof_isover(global_State *g)
{
  Profile *p;
  int over;
  lj_process_lock();
  p = lj_registry_of(g);
  over = (p && profile_isrunning(p) && p->is_over);
  lj_process_unlock();
  return over;
}

int lj_sysprof_isrunning(global_State *g)
{
  Profile *p;
  int running;
  lj_process_lock();
  p = lj_registry_of(g);
  running = (p && profile_isrunning(p));
  lj_process_unlock();
  return running;
}
