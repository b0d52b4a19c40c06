/*
** The profile of a VM; see the header.
*/

#define lj_vmprofile_c
#define LUA_CORE

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lj_obj.h"
#include "profile/clock/lj_clockaction.h"
#include "profile/base/lj_nanotime.h"
#include "profile/session/lj_session.h"
#include "profile/base/lj_relaxed.h"
#include "profile/base/lj_osthread.h"
#include "profile/session/lj_vmprofile.h"

/* Start of the latest one that was a file's first. Under the lock. */
static uint64_t origin_ns;

/* -- End --------------------------------------------------------------------- */

/* No hook uses the list of sessions any more as it was before. */
static void wait_for_hook(Profile *p)
{
  int tid;
  while ((tid = __atomic_load_n(&p->in_hook, __ATOMIC_SEQ_CST)) != 0 &&
	 tid != lj_osthread_self() && lj_osthread_exists(tid))
    sched_yield();
}

/* Does no other thread run the VM? If one does, it may free the coroutine that is
** looked at, so this counts as a reader.
*/
static int vm_isours(Profile *p)
{
  uintptr_t cur_L;
  int ours = 0;
  if (profile_runson(p, lj_osthread_self()) || !lj_osthread_exists(relaxed_get(&p->vm_tid)))
    return 1;
  __atomic_fetch_add(&p->readers, 1, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n(&p->changing, __ATOMIC_SEQ_CST)) {
    cur_L = (uintptr_t)relaxed_get(&p->g->cur_L.gcptr64);
    ours = cur_L && lj_osthread_onstack(((lua_State *)cur_L)->cframe);
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
  Session *volatile *link = &p->first;
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
    if (s->event[i].is_open && lj_clockaction_isreplaced(s->event[i].clock.signo))
      p->ended.replaced = 1;
  return p->ended.replaced;
}

void lj_vmprofile_halt(Profile *p)
{
  Session *s;
  p->with_names = vm_isours(p);
  is_replaced(p);
  for (s = p->first; s; s = s->next) lj_session_halt(s);
  __atomic_store_n(&p->running, 0, __ATOMIC_SEQ_CST);
  wait_for_hook(p);
}

int lj_vmprofile_end(Profile *p)
{
  Session *s;
  uint8_t *buf = NULL;
  int err = 0, stop_err;
  while ((s = p->first) != NULL) {
    int res = session_close(s, p->with_names, &buf); /* The first is last. */
    if (res) err = res;
  }
  p->ended.wall_us = p->ended.counters[SPF_COUNTER_WALL_US];
  stop_err = call_on_stop(p, buf);
  if (!err) err = stop_err;
  errno = err;
  return err ? PROFILE_ERRIO : PROFILE_SUCCESS;
}

void lj_vmprofile_disown(Profile *p)
{
  if (!p->inherited) return;
  p->inherited = 0;
  call_on_stop(p, p->opt.buf);
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
  char why[CLOCK_ERRMSG_MAX];
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
  uint64_t unsampled; /* Threads that cannot be sampled. */
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
  if (!thread_begin(scan->p, tid, scan->later) && lj_osthread_exists(tid))
    scan->unsampled++;
}

/* The first session stays, and has what is counted outside of the handlers. */
static void count_unsampled(Profile *p, uint64_t n)
{
  Session *s = p->first;
  while (s->next) s = s->next;
  if (n > relaxed_get(&s->counters[SPF_COUNTER_UNSAMPLED]))
    relaxed_set(&s->counters[SPF_COUNTER_UNSAMPLED], n);
}

static void thread_ignore(void *ctx, int tid)
{
  UNUSED(ctx);
  UNUSED(tid);
}

void lj_vmprofile_scan(Profile *p, int later)
{
  ThreadScan scan;
  Session *s, *next;
  scan.p = p;
  scan.later = later;
  scan.unsampled = 0;
  for (s = p->first; s; s = s->next) s->seen = 0;
  if (!lj_osthread_each(thread_found, &scan)) return;
  count_unsampled(p, scan.unsampled);
  for (s = p->first; s; s = next) {
    next = s->next;
    if (s->seen) {
      lj_session_look(s);
    } else if (next) { /* The first one has the buffer for on_stop: it stays. */
      thread_end(s);
    }
  }
}

/* -- Begin ------------------------------------------------------------------- */

int lj_vmprofile_ishelped(const Profile *p)
{
  return p->running && (p->opt.threads == LUAM_SYSPROF_THREADS_ALL ||
			p->opt.flush == LUAM_SYSPROF_FLUSH_THREAD);
}

int lj_vmprofile_open(Profile *p, char *why)
{
  Session *s;
  int err;
  p->pid = getpid();
  p->start_ns = mono_ns();
  /* Sessions that join a file have its times. */
  if (p->opt.number == 0 || origin_ns == 0) origin_ns = p->start_ns;
  p->origin_ns = origin_ns;
  /* The VM may be in a hook meanwhile, which it leaves by itself. */
  relaxed_set(&p->vm_tid, lj_osthread_self());
  relaxed_set(&p->shared, 0);
  relaxed_set(&p->changing, 0);
  relaxed_set(&p->readers, 0);
  relaxed_set(&p->moving, NULL);
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
  p->nsession = 1;
  p->first = s;
  __atomic_store_n(&p->running, 1, __ATOMIC_SEQ_CST);
  return PROFILE_SUCCESS;
}

int lj_vmprofile_begin(Profile *p, char *why)
{
  int all = (p->opt.threads == LUAM_SYSPROF_THREADS_ALL), err;
  if (all && !lj_osthread_each(thread_ignore, NULL)) {
    err = errno ? errno : EIO;
    snprintf(why, CLOCK_ERRMSG_MAX,
	     "the threads of the process cannot be listed: "
	     "/proc/self/task: %s",
	     strerror(err));
    return err;
  }
  err = lj_session_begin(p->first, why);
  if (err) return err;
  memset(&p->ended, 0, sizeof(p->ended));
  if (all) lj_vmprofile_scan(p, 0);
  return 0;
}

void lj_vmprofile_abandon(Profile *p)
{
  Session *s = p->first;
  lj_session_halt(s);
  __atomic_store_n(&p->running, 0, __ATOMIC_SEQ_CST);
  wait_for_hook(p);
  p->first = NULL;
  lj_session_free(s);
}

/* -- While it runs ----------------------------------------------------------- */

int lj_vmprofile_dump(Profile *p)
{
  int with_names = vm_isours(p), err = 0;
  sigset_t ticks, old;
  Session *s;
  lj_clockaction_signals(&ticks);
  pthread_sigmask(SIG_BLOCK, &ticks, &old);
  for (s = p->first; s; s = s->next) {
    int res = lj_session_dump(s, with_names);
    if (res) err = res;
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return err;
}

int lj_vmprofile_move(Profile *p, char *why)
{
  profile_seton(p, lj_osthread_self());
  if (p->opt.threads != LUAM_SYSPROF_THREADS_ALL) return lj_session_move(p->first, why);
  lj_vmprofile_scan(p, 1);
  return 0;
}

void lj_vmprofile_totals(Profile *p, ProfileTotals *t)
{
  Session *s;
  *t = p->ended;
  for (s = p->first; s; s = s->next) lj_session_count(s, t);
  t->opt = p->opt;
  t->sessions = p->nsession;
  if (!p->running) return;
  t->wall_us = (mono_ns() - p->start_ns) / 1000;
  t->replaced = is_replaced(p);
}

/* -- Fork -------------------------------------------------------------------- */

int lj_vmprofile_fork(Profile *p, int forked)
{
  Session *s = p->first, *next;
  int was_profiled = 0;
  void *ctx = NULL;
  p->in_hook = 0;
  p->first = NULL;
  for (; s; s = next) {
    next = s->next;
    was_profiled |= (s->tid == forked);
    lj_session_forget(s);
  }
  memset(&p->ended, 0, sizeof(p->ended));
  p->inherited = 1;
  if (was_profiled && p->opt.on_fork) ctx = p->opt.on_fork(p->opt.ctx);
  if (!ctx) return 0;
  p->opt.ctx = ctx;
  return 1;
}
