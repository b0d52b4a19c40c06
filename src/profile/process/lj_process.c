/*
** Process-wide state of the profiler: lock, fork, exit, background work.
** Context: VM thread, background thread or any thread, outside of the handler.
*/

#define lj_process_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For lj_osloaded.h. */
#endif
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lj_obj.h"
#include "profile/process/lj_process.h"
#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_oslock.h"
#include "profile/base/lj_osloaded.h"
#include "profile/base/lj_osprocess.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_relaxed.h"
#include "profile/host/lj_rowload.h"
#include "profile/base/lj_bgthread.h"
#include "profile/session/lj_registry.h"
#include "profile/session/lj_sources.h"

static OsLock process_lock;
/* Under the lock. */
static uint32_t process_id; /* Process that the profiles belong to, see lj_osprocess.h. */
static int forker;          /* Thread that is in fork(). */
static int cancel_state;    /* Of the holder before. */

/* -- Tenants ----------------------------------------------------------------- */

#define TENANTS_MAX 4

/* Changed under the lock. The background thread reads it without the lock. */
static const ProcessTenant *tenants[TENANTS_MAX + 1];

/* Return the tenant of an index, or NULL behind the last one. */
static const ProcessTenant *tenant_at(int i)
{
  return __atomic_load_n(&tenants[i], __ATOMIC_ACQUIRE);
}

void lj_process_addtenant(const ProcessTenant *t)
{
  int i;
  for (i = 0; i < TENANTS_MAX && tenants[i]; i++)
    if (tenants[i] == t) return;
  __atomic_store_n(&tenants[i], t, __ATOMIC_RELEASE);
}

/* Call a function of all tenants that have it. */
#define TENANTS(function, arguments) \
  do { \
    const ProcessTenant *t; \
    int i; \
    for (i = 0; (t = tenant_at(i)) != NULL; i++) \
      if (t->function) t->function arguments; \
  } while (0)

void lj_process_moved(global_State *g)
{
  TENANTS(moved, (g));
}

void lj_process_over(Profile *p)
{
  lj_vmprofile_over(p);
  TENANTS(over, (p->gate.g));
}

/* Background thread, without the lock. */
static void tenants_look(void)
{
  TENANTS(look, ());
}

static void tenants_rouse(void)
{
  TENANTS(rouse, ());
}

/* Does a tenant need the background thread? but: leave out this one. Under the lock. */
static int tenants_need(const ProcessTenant *but)
{
  const ProcessTenant *t;
  int i;
  for (i = 0; (t = tenant_at(i)) != NULL; i++)
    if (t != but && t->needed()) return 1;
  return 0;
}

/* -- Jobs of the background thread ------------------------------------------- */

/* Call visit for each running profile. Returns 0 if another thread holds the lock. */
static int each_profile(void (*visit)(Profile *p))
{
  Profile *p;
  if (!lj_oslock_try(&process_lock)) return 0;
  for (p = lj_registry_first(); p; p = p->next)
    if (profile_isrunning(p)) visit(p);
  lj_oslock_drop(&process_lock);
  return 1;
}

/* End the samples of a profile that must end by itself, and ask the VM to complete it. */
static void profile_watch(Profile *p)
{
  if (lj_vmprofile_isdue(p, mono_ns())) lj_process_over(p);
}

static void watch_limits(void)
{
  each_profile(profile_watch);
}

static void profile_look(Profile *p)
{
  if (p->opt.flush == LUAM_SYSPROF_FLUSH_THREAD) lj_vmprofile_look(p);
}

/* Look after sessions without ticks. */
static void look_after(void)
{
  each_profile(profile_look);
}

static void profile_scan(Profile *p)
{
  lj_vmprofile_scan(p, 1);
}

/* Find threads that began or ended, or that block our signals. */
static void scan_threads(void)
{
  each_profile(profile_scan);
}

static void profile_objects(Profile *p)
{
  lj_osloaded_renew();
  if (p->opt.walker == LUAM_SYSPROF_BACKTRACER_LIBUNWIND) lj_rowload_look();
}

/* Find objects that the program has loaded or unloaded. */
static void look_for_objects(void)
{
  each_profile(profile_objects);
}

void lj_process_objects(void)
{
  if (!lj_osloaded_isown || !lj_process_trylock()) return;
  lj_osloaded_renew();
  lj_process_unlock();
}

/* Until a profile must look at its threads again. Background thread only. */
static uint64_t sleepers_ns = ~(uint64_t)0;

static void profile_sleepers(Profile *p)
{
  uint64_t ns = profileopts_haslook(&p->opt) ? lj_vmprofile_sleepers(p) : ~(uint64_t)0;
  if (ns < sleepers_ns) sleepers_ns = ns;
}

/* Look at threads that sleep. */
static void look_at_sleepers(void)
{
  uint64_t before_ns = sleepers_ns;
  sleepers_ns = ~(uint64_t)0;
  if (!each_profile(profile_sleepers)) sleepers_ns = before_ns;
}

/* Claim a queue for the background thread to write. The claim keeps the session until the
** release. Returns NULL if no queue has chunks.
*/
static ChunkQueue *queue_find(void)
{
  Profile *p;
  ChunkQueue *q = NULL;
  if (!lj_oslock_try(&process_lock)) return NULL;
  for (p = lj_registry_first(); p && !q; p = p->next)
    if (profile_isrunning(p) && p->opt.flush == LUAM_SYSPROF_FLUSH_THREAD)
      q = lj_vmprofile_claim(p);
  lj_oslock_drop(&process_lock);
  return q;
}

/* Write all queues. The writer may be slow, so it runs without the lock. */
static void write_queues(void)
{
  ChunkQueue *q;
  while ((q = queue_find()) != NULL) {
    lj_chunkqueue_drain(q);
    lj_chunkqueue_release(q);
  }
}

/* Does a profile need the thread? Under the lock. */
static int has_profile(void)
{
  const Profile *p;
  for (p = lj_registry_first(); p; p = p->next)
    if (lj_vmprofile_needsthread(p)) return 1;
  return 0;
}

#define JOB_SHARE   64 /* A job with a limit takes at most 1/64 of a processor. */
#define SLEEP_SHARE 56 /* The same, with all other work of the thread meanwhile. */
#define SLEEP_LEAST 4  /* But other jobs with a limit leave it a quarter of that. */

typedef struct Job {
  void (*run)(void);
  int at_wake; /* 1: also runs when no look is due. */
  int share;   /* The job takes at most 1/share of a processor. 0: no limit. */
  /* Background thread only. */
  uint64_t next_ns; /* Earliest time of the next run. */
  uint64_t cpu_ns;  /* CPU time of the thread after the last run. */
} Job;

/* They run in this order, every BGTHREAD_LOOK_MS. */
enum { JOB_SLEEPERS };
static Job jobs[] = {
  [JOB_SLEEPERS] = { look_at_sleepers, 1, SLEEP_SHARE, 0, 0 },
  { watch_limits, 1, 0, 0, 0 },
  { tenants_look, 0, 0, 0, 0 },
  { look_after, 0, JOB_SHARE, 0, 0 },
  { write_queues, 1, 0, 0, 0 },
  { scan_threads, 0, JOB_SHARE, 0, 0 },
  { look_for_objects, 1, 0, 0, 0 },
};
#define JOBS (int)(sizeof(jobs) / sizeof(jobs[0]))

/* A job may use its share of so much time at once. Its first run takes longer, as does the first look
** at sleepers: it reads the unwind tables of the libraries.
*/
#define JOB_CREDIT_NS       200000000
#define JOB_FIRST_CREDIT_NS 1000000000

/* CPU time of other jobs with a limit since the last look at sleepers. Background thread only. */
static uint64_t others_ns;

/* The job that makes the thread wake up more often counts all of its time since the last run.
** Threads that come and go keep other jobs at their limits, and must not end the looks.
*/
static uint64_t counted_ns(const Job *job, uint64_t ns)
{
  uint64_t least_ns = ns;
  if (job->at_wake) {
    least_ns = others_ns < ns ? SLEEP_LEAST * (ns - others_ns) : 0;
    others_ns = 0;
  } else {
    others_ns += ns;
  }
  return least_ns < ns ? least_ns : ns;
}

/* With thousands of threads a run takes long, so the next one waits longer. Counts the CPU
** time of this thread: on a busy machine, real time includes that of other threads.
*/
static void job_run(Job *job)
{
  uint64_t begin_ns, cpu_ns, credit_ns;
  int is_first;
  if (!job->share) {
    job->run();
    return;
  }
  begin_ns = mono_ns();
  if (begin_ns < job->next_ns) return;
  cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  is_first = job->cpu_ns == 0 || cpu_ns < job->cpu_ns || /* Of this thread. */
	     (job->at_wake && sleepers_ns == ~(uint64_t)0);
  if (is_first && job->at_wake) others_ns = 0;
  credit_ns = is_first ? JOB_FIRST_CREDIT_NS : JOB_CREDIT_NS;
  if (job->next_ns + credit_ns < begin_ns) job->next_ns = begin_ns - credit_ns;
  if (is_first || !job->at_wake) job->cpu_ns = cpu_ns;
  job->run();
  cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  job->next_ns += (uint64_t)job->share * counted_ns(job, cpu_ns - job->cpu_ns);
  job->cpu_ns = cpu_ns;
}

/* look: BGTHREAD_LOOK_MS have passed. Otherwise another thread has woken this one, or threads that
** sleep are to be looked at.
*/
static uint64_t bgthread_work(int look)
{
  uint64_t now_ns, next_ns;
  int i;
  for (i = 0; i < JOBS; i++)
    if (look || jobs[i].at_wake) job_run(&jobs[i]);
  if (sleepers_ns == ~(uint64_t)0) return sleepers_ns;
  now_ns = mono_ns();
  next_ns = jobs[JOB_SLEEPERS].next_ns;
  return next_ns > now_ns + sleepers_ns ? next_ns - now_ns : sleepers_ns;
}

/* The tenant that alone needs the thread, if it has nothing to do. Under the lock. */
static const ProcessTenant *tenant_idle(void)
{
  const ProcessTenant *t;
  int i;
  if (has_profile()) return NULL;
  for (i = 0; (t = tenant_at(i)) != NULL; i++)
    if (t->is_idle && !tenants_need(t)) return t->is_idle() ? t : NULL;
  return NULL;
}

static int bgthread_rest(void)
{
  const ProcessTenant *t;
  if (!lj_oslock_try(&process_lock)) return 0;
  t = tenant_idle();
  lj_oslock_drop(&process_lock);
  return t && t->wait();
}

static void stop_all(void);

static int set_thread(void)
{
  static const BgWork work = { bgthread_work, bgthread_rest, tenants_rouse, stop_all };
  if (has_profile() || tenants_need(NULL)) return lj_bgthread_begin(&work);
  lj_bgthread_end();
  TENANTS(ended, ());
  return 0;
}

int lj_process_setthread(void)
{
  int err;
  lj_process_lock();
  err = set_thread();
  lj_process_unlock();
  return err;
}

/* -- Start and stop ---------------------------------------------------------- */

/* The background thread did not start. May the VM thread write instead? Also in a child of
** fork(), where no caller would read the status of a failed start.
*/
static int vm_writes(Profile *p, int err)
{
  if (p->opt.threads != LUAM_SYSPROF_THREADS_OWN || profileopts_haslook(&p->opt) ||
      profileopts_ends(&p->opt) || !(p->opt.cb.no_thread || p->inherited))
    return 0;
  if (p->opt.cb.no_thread) p->opt.cb.no_thread(err);
  p->opt.flush = LUAM_SYSPROF_FLUSH_VM;
  return 1;
}

/* The background thread starts before the first tick. */
int lj_process_start(Profile *p, char *errmsg)
{
  int status = lj_vmprofile_open(p, errmsg), err = 0;
  if (status != PROFILE_SUCCESS) return status;
  if (lj_vmprofile_needsthread(p) && (err = set_thread()) != 0) {
    lj_bgthread_why(err, errmsg, EVENT_ERRMSG_MAX);
    if (vm_writes(p, err)) err = 0;
  }
  if (err == 0) err = lj_vmprofile_begin(p, errmsg);
  if (err != 0) {
    lj_vmprofile_abandon(p);
    set_thread();
    errno = err;
    return PROFILE_ERRIO;
  }
  lj_registry_setlatest(p);
  if (profileopts_haslook(&p->opt)) lj_bgthread_wake();
  return PROFILE_SUCCESS;
}

/* The end of a profile may be the last thing that a tenant needed the thread for. */
int lj_process_stop(Profile *p)
{
  int status;
  lj_vmprofile_halt(p);
  set_thread();
  status = lj_vmprofile_end(p);
  set_thread();
  return status;
}

void lj_process_close(Profile *p)
{
  lj_vmprofile_disown(p);
  if (!profile_isrunning(p)) return;
  if (p->opt.mode != LUAM_SYSPROF_DEFAULT && p->opt.cb.unasked)
    p->opt.cb.unasked(p->opt.ctx);
  lj_process_stop(p);
}

/* -- Fork and exit ----------------------------------------------------------- */

/* Drop the parent's profiles in a child; they go on in the parent. The child may start a
** profile of its own for the thread that forked, if that thread was profiled.
*/
static void forget_parent(int forked)
{
  char errmsg[EVENT_ERRMSG_MAX];
  Profile *p;
  relaxed_set(&process_id, lj_osprocess_id());
  lj_sources_forget();
  lj_osthread_forget();
  lj_bgthread_forget();
  TENANTS(forked, (forked));
  for (p = lj_registry_first(); p; p = p->next) p->gate.running = 0;
  for (p = lj_registry_first(); p; p = p->next)
    if (profile_first(p) && lj_vmprofile_fork(p, forked))
      p->inherited = (lj_process_start(p, errmsg) != PROFILE_SUCCESS);
  set_thread();
}

static void fork_prepare(void)
{
  lj_oslock_take(&process_lock);
  forker = lj_osthread_self();
}

static void fork_parent(void)
{
  lj_osprocess_addfork();
  lj_oslock_drop(&process_lock);
}

static void fork_child(void)
{
  lj_oslock_take(&process_lock);
  if (process_id != lj_osprocess_id()) forget_parent(forker);
  lj_oslock_drop(&process_lock);
}

/* Complete all streams at exit(), also without lua_close(). */
static void stop_all(void)
{
  Profile *p;
  lj_process_lock();
  for (p = lj_registry_first(); p; p = p->next) lj_process_close(p);
  TENANTS(exit, ());
  set_thread();
  lj_process_unlock();
}

/* Install the handlers of fork() and exit(), once. Returns 0 or an errno. */
static int install(void)
{
  static int at_exit, at_fork;
  int err;
  relaxed_set(&process_id, lj_osprocess_id());
  if (!at_exit && atexit(stop_all) != 0) return ENOMEM;
  at_exit = 1;
  if (!at_fork && (err = pthread_atfork(fork_prepare, fork_parent, fork_child)) != 0)
    return err;
  at_fork = 1;
  return 0;
}

const char *lj_process_begin(const global_State *g)
{
  static const char closing[] =
    "the VM is closing, and lua_close has ended all profiling of "
    "it; start a profile before lua_close";
  int err;
  lj_process_lock();
  err = lj_registry_isclosed(g) ? EINVAL : install();
  lj_process_unlock();
  if (err == 0) return NULL;
  errno = err;
  return err == EINVAL ? closing : strerror(err);
}

/* -- Lock -------------------------------------------------------------------- */

/* A program may create a child without the C library's fork(), so no fork handler ran. */
static void locked(void)
{
  if (process_id && process_id != lj_osprocess_id()) forget_parent(0);
}

/* The program may cancel a thread at any time. If one ended here, the lock would stay taken. */
void lj_process_lock(void)
{
  int state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  if (lj_oslock_take(&process_lock) == 1) cancel_state = state;
  locked();
}

int lj_process_trylock(void)
{
  int state, depth;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  depth = lj_oslock_try(&process_lock);
  if (depth == 0) pthread_setcancelstate(state, &state);
  if (depth == 1) cancel_state = state;
  if (depth > 0) locked();
  return depth > 0;
}

void lj_process_unlock(void)
{
  int state = cancel_state;
  if (lj_oslock_drop(&process_lock) == 0) pthread_setcancelstate(state, &state);
}

void lj_process_settle(void)
{
  uint32_t id = relaxed_get(&process_id);
  if (!id || id == lj_osprocess_id()) return;
  lj_process_lock();
  lj_process_unlock();
}
