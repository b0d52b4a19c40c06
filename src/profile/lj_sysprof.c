/*
** Sysprof: the profiles of all VMs, from start to stop, and what LuaJIT tells.
**
** One lock for all: start, stop, report and the helper's looks. No handler takes
** it, and no hook. A VM's profile hangs on its GG_State.
**
**   start: memory -> clocks -> stream -> ticks
**   stop:  clocks -> hooks -> streams -> on_stop -> memory
*/

#define lj_sysprof_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lj_obj.h"
#include "lj_frame.h"
#include "lj_dispatch.h"
#include "profile/lj_clocksig.h"
#include "profile/lj_control.h"
#include "profile/lj_now.h"
#include "profile/lj_session.h"
#include "profile/lj_shared.h"
#include "profile/lj_sysprof.h"
#include "profile/lj_threads.h"

#if !(LJ_TARGET_X64 && LJ_TARGET_LINUX && LJ_FR2)
#error "sysprof needs Linux on x86-64 and a GC64 build of LuaJIT"
#endif


/* Under the lock. */
static pthread_mutex_t profiles_lock =	/* A callback may use the API. */
  PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static Profile *profiles;		/* Of all VMs that had one. */
static Profile *latest;			/* Started last, NULL if its VM is gone: */
static SessionTotals latest_totals;	/* this is what it had counted. */
static pid_t profiles_pid;		/* Process that they belong to. */
static uint64_t origin_ns;		/* Start of the latest that is a file's first. */
static int forker;			/* Thread that forks now. */

static __thread int own_tid;		/* The calling thread's id, or 0. */

int lj_sysprof_tid(void)
{
  if (!own_tid) own_tid = lj_clock_tid();
  return own_tid;
}

static Profile *profile_of(global_State *g)
{
  return G2GG(g)->sysprof;
}

/* -- Stop -------------------------------------------------------------------- */

/* Does a profile need the helper? */
static int needs_helper(const ProfileOptions *o)
{
  return o->threads == LUAM_SYSPROF_THREADS_ALL ||
	 o->flush == LUAM_SYSPROF_FLUSH_THREAD;
}

static int is_helped(void)
{
  const Profile *p;
  for (p = profiles; p; p = p->next)
    if (p->running && needs_helper(&p->opt)) return 1;
  return lj_control_isfile();
}

/* No hook uses the list of sessions any more as it was before. */
static void wait_for_hook(Profile *p)
{
  int tid;
  while ((tid = __atomic_load_n(&p->in_hook, __ATOMIC_SEQ_CST)) != 0 &&
	 tid != lj_sysprof_tid() && lj_threads_exists(tid))
    sched_yield();
}

/* Does no other thread run the VM? If one does, it may free the coroutine that is
** looked at, so this counts as a reader.
*/
static int vm_isours(Profile *p)
{
  uintptr_t cur_L;
  int ours = 0;
  if (profile_runson(p, lj_sysprof_tid()) || !lj_threads_exists(shared_get(&p->vm_tid)))
    return 1;
  __atomic_fetch_add(&p->readers, 1, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n(&p->changing, __ATOMIC_SEQ_CST)) {
    cur_L = (uintptr_t)shared_get(&p->g->cur_L.gcptr64);
    ours = cur_L && lj_session_onstack(((lua_State *)cur_L)->cframe);
  }
  __atomic_fetch_sub(&p->readers, 1, __ATOMIC_SEQ_CST);
  return ours;
}

/* Take a session without clocks off its profile, having completed its stream;
** buf gets the buffer that it had last. Returns 0 or the errno of a failed writer.
*/
static int session_close(Session *s, int with_names, uint8_t **buf)
{
  Profile *p = s->p;
  Session * volatile *link = &p->first;
  int err = lj_session_end(s, with_names);
  *buf = session_isqueued(s) ? p->opt.buf : s->stream.wb.buf;
  while (*link != s) link = &(*link)->next;
  __atomic_store_n(link, s->next, __ATOMIC_SEQ_CST);
  wait_for_hook(p);
  lj_session_count(s, &p->ended);
  lj_session_free(s);
  return err;
}

static int call_on_stop(Profile *p, uint8_t *buf)
{
  errno = 0;
  if (p->opt.mode == LUAM_SYSPROF_DEFAULT || p->opt.cb.on_stop(p->opt.ctx, buf) == 0)
    return 0;
  return errno ? errno : EIO;
}

/* Has the program taken the signal away, now or when this was asked before? */
static int is_replaced(Profile *p)
{
  const Session *s = p->first;
  int i;
  for (i = 0; s && i < s->nevent; i++)
    if (s->event[i].is_open && lj_clocksig_isreplaced(s->event[i].clock.signo))
      p->ended.replaced = 1;
  return p->ended.replaced;
}

/* End a profile. Returns a PROFILE_* status and sets errno. */
static int profile_stop(Profile *p)
{
  Session *s;
  uint8_t *buf = NULL;
  int with_names = vm_isours(p), err = 0, stop_err;
  is_replaced(p);
  for (s = p->first; s; s = s->next)
    lj_session_halt(s);
  __atomic_store_n(&p->running, 0, __ATOMIC_SEQ_CST);
  wait_for_hook(p);
  if (!is_helped()) lj_threads_unwatch();
  while ((s = p->first) != NULL) {
    int res = session_close(s, with_names, &buf);  /* The first one is last. */
    if (res) err = res;
  }
  p->ended.wall_us = p->ended.counters[SPF_COUNTER_WALL_US];
  stop_err = call_on_stop(p, buf);
  if (!err) err = stop_err;
  errno = err;
  return err ? PROFILE_ERRIO : PROFILE_SUCCESS;
}

/* End a profile with its VM or process: nobody hears how that went. */
static void profile_end(Profile *p)
{
  if (p->opt.mode != LUAM_SYSPROF_DEFAULT && p->opt.cb.unasked)
    p->opt.cb.unasked(p->opt.ctx);
  profile_stop(p);
}

/* In the process that a profile was inherited by, nothing is left of it but its
** end.
*/
static void inherited_end(Profile *p)
{
  if (!p->inherited) return;
  p->inherited = 0;
  call_on_stop(p, p->opt.buf);
}

static void check_fork(void);

/* exit() without lua_close() still gives a complete stream. Also when a library
** with the VM is unloaded.
*/
static void stop_all(void)
{
  Profile *p;
  pthread_mutex_lock(&profiles_lock);
  check_fork();
  for (p = profiles; p; p = p->next) {
    inherited_end(p);
    if (p->running) profile_end(p);
  }
  lj_control_end();
  if (!is_helped()) lj_threads_unwatch();
  pthread_mutex_unlock(&profiles_lock);
}

/* -- All threads ------------------------------------------------------------- */

/* A thread has ended. */
static void thread_end(Session *s)
{
  uint8_t *buf;
  lj_session_halt(s);
  session_close(s, 0, &buf);
}

/* Sample one more thread. Returns 0 if it cannot be; it may have ended by now. */
static int thread_begin(Profile *p, int tid, int later)
{
  char why[CLOCK_WHY_MAX];
  Session *s = lj_session_new(p, tid, NULL, later);
  if (!s) return 0;
  if (lj_session_open(s, why) != CLOCK_OK) {
    lj_session_free(s);
    return 0;
  }
  p->nsession++;
  s->next = p->first;
  __atomic_store_n(&p->first, s, __ATOMIC_SEQ_CST);
  if (lj_session_begin(s, why) != 0) {
    thread_end(s);
    return 0;
  }
  return 1;
}

typedef struct ThreadScan {
  Profile *p;
  int later;
  uint64_t unsampled;		/* Threads that cannot be sampled. */
} ThreadScan;

static void thread_found(void *ctx, int tid)
{
  ThreadScan *scan = (ThreadScan *)ctx;
  Session *s;
  for (s = scan->p->first; s; s = s->next)
    if (s->tid == tid) {
      s->seen = 1;
      return;
    }
  if (!thread_begin(scan->p, tid, scan->later) && lj_threads_exists(tid))
    scan->unsampled++;
}

/* The first session stays, and has what is counted outside of the handlers. */
static void count_unsampled(Profile *p, uint64_t n)
{
  Session *s = p->first;
  while (s->next) s = s->next;
  if (n > shared_get(&s->counters[SPF_COUNTER_UNSAMPLED]))
    shared_set(&s->counters[SPF_COUNTER_UNSAMPLED], n);
}

static void thread_ignore(void *ctx, int tid)
{
  UNUSED(ctx);
  UNUSED(tid);
}

static void profile_scan(Profile *p, int later)
{
  ThreadScan scan;
  Session *s, *next;
  scan.p = p;
  scan.later = later;
  scan.unsampled = 0;
  for (s = p->first; s; s = s->next)
    s->seen = 0;
  if (!lj_threads_each(thread_found, &scan)) return;
  count_unsampled(p, scan.unsampled);
  for (s = p->first; s; s = next) {
    next = s->next;
    if (s->seen) {
      lj_session_look(s);
    } else if (next) {  /* The first one has the buffer for on_stop: it stays. */
      thread_end(s);
    }
  }
}

/* New threads, and those that have ended. */
static void look_at_threads(void)
{
  Profile *p;
  if (pthread_mutex_trylock(&profiles_lock) != 0) return;
  for (p = profiles; p; p = p->next)
    if (p->running && p->opt.threads == LUAM_SYSPROF_THREADS_ALL)
      profile_scan(p, 1);
  pthread_mutex_unlock(&profiles_lock);
}

/* -- Chunks that wait to be written ------------------------------------------ */

/* One that the helper is to write, claimed: its session stays until it is released.
** NULL if there is none.
*/
static WQueue *queue_find(void)
{
  Profile *p;
  Session *s;
  WQueue *q = NULL;
  if (pthread_mutex_trylock(&profiles_lock) != 0) return NULL;
  for (p = profiles; p && !q; p = p->next)
    if (p->running && p->opt.flush == LUAM_SYSPROF_FLUSH_THREAD)
      for (s = p->first; s && !q; s = s->next)
	if (session_isqueued(s) && lj_wqueue_claim(&s->queue)) q = &s->queue;
  pthread_mutex_unlock(&profiles_lock);
  return q;
}

/* By the helper. The lock is not held while the writer runs, which may be slow. */
static void help(int look)
{
  WQueue *q;
  while ((q = queue_find()) != NULL) {
    lj_wqueue_drain(q);
    lj_wqueue_release(q);
  }
  if (!look) return;
  look_at_threads();
  lj_control_look();
}

/* -- Start ------------------------------------------------------------------- */

/* Read the options. Returns 0 if one of them is not valid, and says why. */
static int read_options(ProfileOptions *o, const struct luam_Sysprof_Options *opt,
			const SysprofCallbacks *cb, char *why)
{
  const char *clocks = opt->clocks ? opt->clocks :
		       opt->clock == LUAM_SYSPROF_CLOCK_WALL ? "wall" : "cpu";
  uint64_t interval_ns = opt->interval_ns;
  if (!lj_sysprof_options_valid(opt, cb)) return 0;
  if (!interval_ns) interval_ns = opt->interval * 1000000;
  o->nspec = lj_clockspec_parse(clocks, interval_ns, opt->period, opt->jitter,
				o->spec, why);
  o->mode = opt->mode;
  o->threads = opt->threads;
  o->flush = opt->flush;
  if (o->flush == LUAM_SYSPROF_FLUSH_VM && o->threads == LUAM_SYSPROF_THREADS_ALL)
    o->flush = LUAM_SYSPROF_FLUSH_THREAD;  /* Some run no VM. */
  o->signo = opt->signo;
  o->interval_ns = interval_ns;
  o->cb = *cb;
  o->ctx = opt->ctx;
  o->buf = opt->buf;
  o->len = opt->len;
  o->on_fork = opt->on_fork;
  o->number = opt->session;
  return o->nspec != 0;
}

/* Begin with the options that are set. Returns a PROFILE_* status. */
static int profile_begin(Profile *p, char *why)
{
  int all = (p->opt.threads == LUAM_SYSPROF_THREADS_ALL), err = 0;
  Session *s;
  p->pid = getpid();
  p->start_ns = mono_ns();
  /* Sessions that join a file have its times. */
  if (p->opt.number == 0 || origin_ns == 0) origin_ns = p->start_ns;
  p->origin_ns = origin_ns;
  /* The VM may be in a hook meanwhile, which it leaves by itself. */
  shared_set(&p->vm_tid, lj_sysprof_tid());
  shared_set(&p->shared, 0);
  shared_set(&p->changing, 0);
  shared_set(&p->readers, 0);
  shared_set(&p->moving, NULL);
  p->nsession = 0;
  s = lj_session_new(p, p->vm_tid, p->opt.buf, 0);
  if (!s) return PROFILE_ERRMEM;
  switch (lj_session_open(s, why)) {
  case CLOCK_OK: break;
  case CLOCK_BUSY: lj_session_free(s); return PROFILE_ERRRUN;
  default:
    err = errno;
    lj_session_free(s);
    errno = err;
    return PROFILE_ERRIO;
  }
  if (needs_helper(&p->opt) && (err = lj_threads_watch(help)) != 0)
    snprintf(why, CLOCK_WHY_MAX, "the profiler's thread cannot be made: %s",
	     strerror(err));
  if (all && err == 0 && !lj_threads_each(thread_ignore, NULL)) {
    err = errno ? errno : EIO;
    snprintf(why, CLOCK_WHY_MAX, "the threads of the process cannot be listed: "
	     "/proc/self/task: %s", strerror(err));
  }
  p->nsession = 1;
  p->first = s;
  __atomic_store_n(&p->running, 1, __ATOMIC_SEQ_CST);
  if (err == 0) err = lj_session_begin(s, why);
  if (err != 0) {
    lj_session_halt(s);
    __atomic_store_n(&p->running, 0, __ATOMIC_SEQ_CST);
    wait_for_hook(p);
    p->first = NULL;
    if (!is_helped()) lj_threads_unwatch();
    lj_session_free(s);
    errno = err;
    return PROFILE_ERRIO;
  }
  memset(&p->ended, 0, sizeof(p->ended));
  latest = p;
  if (all) profile_scan(p, 0);
  return PROFILE_SUCCESS;
}

/* -- Fork -------------------------------------------------------------------- */

/* Nothing of this process is sampled, the parent goes on. Its streams are not
** touched. The thread that forked, if it was profiled, may be profiled here.
*/
static void forget_parent(int forked)
{
  char why[CLOCK_WHY_MAX];
  Profile *p;
  profiles_pid = getpid();
  own_tid = 0;
  lj_clock_forget();
  lj_threads_forget();
  lj_control_fork(forked);
  for (p = profiles; p; p = p->next) {
    Session *s = p->first, *next;
    int was_profiled = 0;
    if (!p->running) continue;
    p->running = p->in_hook = 0;
    p->first = NULL;
    for (; s; s = next) {
      next = s->next;
      was_profiled |= (s->tid == forked);
      lj_session_forget(s);
    }
    memset(&p->ended, 0, sizeof(p->ended));
    p->inherited = 1;
    if (was_profiled && p->opt.on_fork) {
      void *ctx = p->opt.on_fork(p->opt.ctx);
      if (ctx) {
	p->opt.ctx = ctx;
	p->inherited = (profile_begin(p, why) != PROFILE_SUCCESS);
      }
    }
  }
  if (lj_control_isfile()) lj_threads_watch(help);
}

/* A child that was made without the C library's fork(). Under the lock. */
static void check_fork(void)
{
  if (profiles_pid && profiles_pid != getpid()) forget_parent(0);
}

static void fork_prepare(void)
{
  pthread_mutex_lock(&profiles_lock);
  forker = lj_clock_tid();
}

static void fork_parent(void)
{
  pthread_mutex_unlock(&profiles_lock);
}

static void fork_child(void)
{
  static const pthread_mutex_t unlocked =
    PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  profiles_lock = unlocked;
  pthread_mutex_lock(&profiles_lock);
  forget_parent(forker);
  pthread_mutex_unlock(&profiles_lock);
}

/* -- API --------------------------------------------------------------------- */

/* What the process has to do at its end and when it forks. Returns 0 or an errno. */
static int register_once(void)
{
  static int at_exit, at_fork;
  int err;
  if (!at_exit && atexit(stop_all) != 0) return ENOMEM;
  at_exit = 1;
  if (!at_fork && (err = pthread_atfork(fork_prepare, fork_parent, fork_child)))
    return err;
  at_fork = 1;
  return 0;
}

/* Profile of a VM, made if it has none. NULL without memory. */
static Profile *profile_get(global_State *g)
{
  Profile *p = profile_of(g);
  if (!p) {
    p = (Profile *)calloc(1, sizeof(Profile));
    if (!p) return NULL;
    p->g = g;
    p->next = profiles;
    profiles = p;
    __atomic_store_n(&G2GG(g)->sysprof, p, __ATOMIC_RELEASE);
  }
  return p;
}

int lj_sysprof_begin(void)
{
  int err;
  pthread_mutex_lock(&profiles_lock);
  check_fork();
  profiles_pid = getpid();
  err = register_once();
  pthread_mutex_unlock(&profiles_lock);
  return err;
}

int lj_sysprof_sethelper(void)
{
  int err = 0;
  pthread_mutex_lock(&profiles_lock);
  if (is_helped()) err = lj_threads_watch(help);
  else lj_threads_unwatch();
  pthread_mutex_unlock(&profiles_lock);
  return err;
}

int lj_sysprof_start(lua_State *L, const struct luam_Sysprof_Options *opt,
		     const SysprofCallbacks *cb)
{
  char *why = lj_sysprof_why();
  ProfileOptions asked;
  Profile *p;
  int status, err = 0;
  why[0] = '\0';
  if (!read_options(&asked, opt, cb, why)) return PROFILE_ERRUSE;
  pthread_mutex_lock(&profiles_lock);
  check_fork();
  profiles_pid = getpid();
  p = profile_get(G(L));
  status = PROFILE_ERRMEM;
  if (!p || (err = register_once()) != 0) goto out;
  status = PROFILE_ERRRUN;
  if (p->running) goto out;
  inherited_end(p);
  if (!lj_hstack_warmup()) {
    status = PROFILE_ERRMEM;
    err = ENOTSUP;
    goto out;
  }
  p->opt = asked;
  errno = 0;
  status = profile_begin(p, why);
  err = errno;
out:
  pthread_mutex_unlock(&profiles_lock);
  errno = err;
  return status;
}

int lj_sysprof_stop(global_State *g)
{
  Profile *p;
  int status = PROFILE_ERRRUN;
  pthread_mutex_lock(&profiles_lock);
  check_fork();
  p = profile_of(g);
  if (p) {
    inherited_end(p);
    if (p->running) status = profile_stop(p);
  }
  pthread_mutex_unlock(&profiles_lock);
  return status;
}

/* Block the signals of all clocks. */
static void block_ticks(sigset_t *old)
{
  uint64_t inuse = lj_clocksig_inuse();
  sigset_t set;
  int signo;
  sigemptyset(&set);
  for (signo = 1; signo <= 64; signo++)
    if (inuse >> (signo-1) & 1) sigaddset(&set, signo);
  pthread_sigmask(SIG_BLOCK, &set, old);
}

int lj_sysprof_dump(global_State *g)
{
  Profile *p;
  Session *s;
  sigset_t old;
  int status = PROFILE_ERRRUN, err = 0;
  pthread_mutex_lock(&profiles_lock);
  check_fork();
  p = profile_of(g);
  if (p && p->running) {
    int with_names = vm_isours(p);
    block_ticks(&old);
    for (s = p->first; s; s = s->next) {
      int res = lj_session_dump(s, with_names);
      if (res) err = res;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    status = err ? PROFILE_ERRIO : PROFILE_SUCCESS;
  }
  pthread_mutex_unlock(&profiles_lock);
  errno = err;
  return status;
}

int lj_sysprof_moved(global_State *g)
{
  char *why = lj_sysprof_why();
  Profile *p;
  int status = PROFILE_ERRRUN, err = 0;
  lj_control_moved(g);
  pthread_mutex_lock(&profiles_lock);
  check_fork();
  p = profile_of(g);
  if (p && p->running) {
    status = PROFILE_SUCCESS;
    profile_seton(p, lj_sysprof_tid());
    if (p->opt.threads == LUAM_SYSPROF_THREADS_ALL)
      profile_scan(p, 1);
    else if ((err = lj_session_move(p->first, why)) != 0)
      status = PROFILE_ERRIO;
  }
  pthread_mutex_unlock(&profiles_lock);
  errno = err;
  return status;
}

int lj_sysprof_isrunning(global_State *g)
{
  Profile *p;
  int running;
  pthread_mutex_lock(&profiles_lock);
  check_fork();
  p = profile_of(g);
  running = (p && p->running);
  pthread_mutex_unlock(&profiles_lock);
  return running;
}

/* Totals of a profile so far. */
static void profile_totals(Profile *p, SessionTotals *t)
{
  Session *s;
  *t = p->ended;
  for (s = p->first; s; s = s->next)
    lj_session_count(s, t);
  t->opt = p->opt;
  t->sessions = p->nsession;
  if (!p->running) return;
  t->wall_us = (mono_ns() - p->start_ns) / 1000;
  t->replaced = is_replaced(p);
}

void lj_sysprof_totals(global_State *g, SessionTotals *t)
{
  Profile *p;
  pthread_mutex_lock(&profiles_lock);
  check_fork();
  p = g ? profile_of(g) : latest;
  if (p) profile_totals(p, t);
  else if (!g) *t = latest_totals;
  else memset(t, 0, sizeof(*t));
  pthread_mutex_unlock(&profiles_lock);
}

/* The VM is closed: by its own thread. */
void lj_sysprof_close(global_State *g)
{
  Profile *p = profile_of(g), **link = &profiles;
  lj_control_close(g);
  if (!p) return;  /* Never started. */
  pthread_mutex_lock(&profiles_lock);
  check_fork();
  inherited_end(p);
  if (p->running) profile_end(p);
  if (latest == p) {
    profile_totals(p, &latest_totals);
    latest = NULL;
  }
  while (*link != p) link = &(*link)->next;
  *link = p->next;
  G2GG(g)->sysprof = NULL;
  free(p);
  pthread_mutex_unlock(&profiles_lock);
}
