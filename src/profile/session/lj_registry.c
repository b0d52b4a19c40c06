/*
** The profiles of all VMs; see the header.
*/

#define lj_registry_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP. */
#endif
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lj_obj.h"
#include "lj_frame.h"
#include "lj_dispatch.h"
#include "profile/api/lj_control.h"
#include "profile/session/lj_bgthread.h"
#include "profile/session/lj_registry.h"
#include "profile/session/lj_session.h"
#include "profile/base/lj_osthread.h"

/* Under the lock. */
static pthread_mutex_t profiles_lock = /* A callback may use the API. */
  PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static Profile *profiles;           /* Of all VMs that had one. */
static Profile *latest;             /* Started last, NULL if its VM is gone: */
static ProfileTotals latest_totals; /* this is what it had counted. */
static pid_t profiles_pid;          /* Process that they belong to. */
static int forker;                  /* Thread that forks now. */

/* -- Helper ------------------------------------------------------------------ */

/* New threads, and those that have ended. */
static void look_at_threads(void)
{
  Profile *p;
  if (pthread_mutex_trylock(&profiles_lock) != 0) return;
  for (p = profiles; p; p = p->next)
    if (p->running && p->opt.threads == LUAM_SYSPROF_THREADS_ALL) lj_vmprofile_scan(p, 1);
  pthread_mutex_unlock(&profiles_lock);
}

/* One that the helper is to write, claimed: its session stays until it is released.
** NULL if there is none.
*/
static ChunkQueue *queue_find(void)
{
  Profile *p;
  Session *s;
  ChunkQueue *q = NULL;
  if (pthread_mutex_trylock(&profiles_lock) != 0) return NULL;
  for (p = profiles; p && !q; p = p->next)
    if (p->running && p->opt.flush == LUAM_SYSPROF_FLUSH_THREAD)
      for (s = p->first; s && !q; s = s->next)
	if (session_isqueued(s) && lj_chunkqueue_claim(&s->queue)) q = &s->queue;
  pthread_mutex_unlock(&profiles_lock);
  return q;
}

/* By the helper. The lock is not held while the writer runs, which may be slow. */
static void help(int look)
{
  ChunkQueue *q;
  while ((q = queue_find()) != NULL) {
    lj_chunkqueue_drain(q);
    lj_chunkqueue_release(q);
  }
  if (!look) return;
  look_at_threads();
  lj_control_look();
}

static int is_helped(void)
{
  const Profile *p;
  for (p = profiles; p; p = p->next)
    if (lj_vmprofile_ishelped(p)) return 1;
  return lj_control_isfile();
}

int lj_registry_sethelper(void)
{
  if (is_helped()) return lj_bgthread_begin(help);
  lj_bgthread_end();
  return 0;
}

/* -- Begin and end ----------------------------------------------------------- */

/* The helper is there before the first tick. */
int lj_registry_start(Profile *p, char *why)
{
  int status = lj_vmprofile_open(p, why), err = 0;
  if (status != PROFILE_SUCCESS) return status;
  if (lj_vmprofile_ishelped(p) && (err = lj_registry_sethelper()) != 0)
    snprintf(why, CLOCK_ERRMSG_MAX, "the profiler's thread cannot be made: %s",
	     strerror(err));
  if (err == 0) err = lj_vmprofile_begin(p, why);
  if (err != 0) {
    lj_vmprofile_abandon(p);
    lj_registry_sethelper();
    errno = err;
    return PROFILE_ERRIO;
  }
  latest = p;
  return PROFILE_SUCCESS;
}

int lj_registry_end(Profile *p)
{
  lj_vmprofile_halt(p);
  lj_registry_sethelper();
  return lj_vmprofile_end(p);
}

void lj_registry_close(Profile *p)
{
  lj_vmprofile_disown(p);
  if (!p->running) return;
  if (p->opt.mode != LUAM_SYSPROF_DEFAULT && p->opt.cb.unasked)
    p->opt.cb.unasked(p->opt.ctx);
  lj_registry_end(p);
}

/* -- Fork and exit ----------------------------------------------------------- */

/* Nothing of the parent is sampled here, and it goes on. The thread that forked, if
** it was profiled, may be profiled here.
*/
static void forget_parent(int forked)
{
  char why[CLOCK_ERRMSG_MAX];
  Profile *p;
  profiles_pid = getpid();
  lj_clock_forget();
  lj_osthread_forget();
  lj_bgthread_forget();
  lj_control_fork(forked);
  for (p = profiles; p; p = p->next) p->running = 0;
  for (p = profiles; p; p = p->next)
    if (p->first && lj_vmprofile_fork(p, forked))
      p->inherited = (lj_registry_start(p, why) != PROFILE_SUCCESS);
  lj_registry_sethelper();
}

static void fork_prepare(void)
{
  pthread_mutex_lock(&profiles_lock);
  forker = lj_osthread_self();
}

static void fork_parent(void)
{
  pthread_mutex_unlock(&profiles_lock);
}

static void fork_child(void)
{
  static const pthread_mutex_t unlocked = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  profiles_lock = unlocked;
  pthread_mutex_lock(&profiles_lock);
  forget_parent(forker);
  pthread_mutex_unlock(&profiles_lock);
}

/* exit() without lua_close() still gives a complete stream. Also when a library
** with the VM is unloaded.
*/
static void stop_all(void)
{
  Profile *p;
  lj_registry_lock();
  for (p = profiles; p; p = p->next) lj_registry_close(p);
  lj_control_end();
  lj_registry_sethelper();
  lj_registry_unlock();
}

int lj_registry_begin(void)
{
  static int at_exit, at_fork;
  int err;
  profiles_pid = getpid();
  if (!at_exit && atexit(stop_all) != 0) return ENOMEM;
  at_exit = 1;
  if (!at_fork && (err = pthread_atfork(fork_prepare, fork_parent, fork_child))) return err;
  at_fork = 1;
  return 0;
}

/* -- List -------------------------------------------------------------------- */

/* A child may have been made without the C library's fork(). */
void lj_registry_lock(void)
{
  pthread_mutex_lock(&profiles_lock);
  if (profiles_pid && profiles_pid != getpid()) forget_parent(0);
}

void lj_registry_unlock(void)
{
  pthread_mutex_unlock(&profiles_lock);
}

Profile *lj_registry_of(global_State *g)
{
  return G2GG(g)->sysprof;
}

Profile *lj_registry_get(global_State *g)
{
  Profile *p = lj_registry_of(g);
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

void lj_registry_remove(Profile *p)
{
  Profile **link = &profiles;
  if (latest == p) {
    lj_vmprofile_totals(p, &latest_totals);
    latest = NULL;
  }
  while (*link != p) link = &(*link)->next;
  *link = p->next;
  G2GG(p->g)->sysprof = NULL;
  free(p);
}

void lj_registry_totals(global_State *g, ProfileTotals *t)
{
  Profile *p;
  lj_registry_lock();
  p = g ? lj_registry_of(g) : latest;
  if (p) lj_vmprofile_totals(p, t);
  else if (!g) *t = latest_totals;
  else memset(t, 0, sizeof(*t));
  lj_registry_unlock();
}
