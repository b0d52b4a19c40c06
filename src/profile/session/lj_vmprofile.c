/*
** Profile of a VM: begins, scans and ends its sessions.
** Context: under the lock, on any thread, outside of the handler.
*/

#define lj_vmprofile_c
#define LUA_CORE

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lj_obj.h"
#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_osstack.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_relaxed.h"
#include "profile/base/lj_seccomp.h"
#include "profile/base/lj_bgthread.h"
#include "profile/sample/lj_eventlist.h"
#include "profile/sample/lj_handover.h"
#include "profile/session/lj_session.h"
#include "profile/sample/lj_vmdoor.h"
#include "profile/session/lj_vmprofile.h"

#define MASKS_MAX 64 /* Signal masks that a scan reads, about. */

/* Start of the latest profile that began a file. Under the lock. */
static uint64_t origin_ns;

static void tables_free(Profile *p)
{
  lj_vmtables_free(p->plan.vm);
  p->plan.vm = NULL;
}

/* The session of the VM's thread began first, so it is the last in the list. It stays to the end. */
static Session *session_ofvm(const Profile *p)
{
  Session *s = profile_first(p), *next;
  while ((next = session_next(s)) != NULL) s = next;
  return s;
}

/* -- End --------------------------------------------------------------------- */

/* Complete the stream of a settled session, and remove the session from its profile.
** Sets buf to the session's last buffer. Returns 0 or the errno of a failed writer.
*/
static int session_close(Profile *p, Session *s, FuncTab *named, uint8_t **buf)
{
  int err = lj_session_end(s, named);
  *buf = sampler_isqueued(&s->sm) ? p->opt.buf : s->sm.stream.wb.buf;
  lj_vmgate_remove(&p->gate, &s->sm.reader);
  lj_totals_add(&s->sm, &p->ended.of);
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

/* Has the program replaced the signal's handler, now or at an earlier call? */
static int is_replaced(Profile *p)
{
  const Session *s = profile_first(p);
  if (s && lj_eventlist_isreplaced(&s->sm)) p->ended.replaced = 1;
  return p->ended.replaced;
}

int lj_vmprofile_isdue(const Profile *p, uint64_t now_ns)
{
  if (p->is_over) return p->nlate > 0;
  return (p->opt.end_ns && now_ns >= p->opt.end_ns) ||
	 sizelimit_isreached(&p->size, SIZELIMIT_NEAR);
}

/* CPU time of all threads that the profile samples, if it can. 0: it is unknown. */
static uint64_t threads_ns(const Profile *p)
{
  uint64_t ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID), own_ns = lj_bgthread_ns();
  const int *at;
  if (own_ns > ns) return 0;
  ns -= own_ns;
  for (at = p->opt.others; at && *at; at++) {
    uint64_t other_ns = thread_ns(*at);
    if (other_ns == 0 || other_ns > ns) return 0;
    ns -= other_ns;
  }
  return ns;
}

/* CPU time of all threads from the begin to a time of threads_ns, of a profile that samples all.
** 0: it is unknown.
*/
static uint64_t threads_us(const Profile *p, uint64_t to_ns)
{
  if (p->opt.threads != LUAM_SYSPROF_THREADS_ALL || p->cpu_from_ns == 0 ||
      to_ns <= p->cpu_from_ns)
    return 0;
  return (to_ns - p->cpu_from_ns) / 1000;
}

#define SAMPLE_WAIT_NS \
  10000000 /* A sample takes less, unless the system stops its thread. */

/* Count the CPU time of the background thread. more: as lj_bgthread_share says. */
static void count_thread(Profile *p, int more)
{
  uint64_t ns = lj_bgthread_share(more);
  if (more > 0) p->thread_from_ns = ns;
  relaxed_set(&session_ofvm(p)->sm.counters[SPF_COUNTER_THREAD_NS], ns - p->thread_from_ns);
}

/* Note what has ended the samples. A program's stop may precede the background thread. */
static void note_end(Profile *p)
{
  is_replaced(p);
  if (p->is_over) return;
  p->size.is_hit = sizelimit_isreached(&p->size, SIZELIMIT_NEAR);
  p->cpu_to_ns = threads_ns(p);
  count_thread(p, -1);
}

/* The samples of some threads may go on. The next call does not wait for them again. */
void lj_vmprofile_over(Profile *p)
{
  uint64_t wait_ns = p->is_over ? 0 : SAMPLE_WAIT_NS;
  Session *s;
  if (!p->is_over) note_end(p);
  p->is_over = 1;
  p->nlate = 0;
  for (s = profile_first(p); s; s = session_next(s))
    if (!lj_session_over(s, wait_ns)) p->nlate++;
}

int lj_vmprofile_canhalt(const Profile *p)
{
  Session *s;
  for (s = profile_first(p); s; s = session_next(s)) {
    if (!lj_sampler_holdsoon(&s->sm, SAMPLE_WAIT_NS)) return 0;
    lj_sampler_release(&s->sm);
  }
  return 1;
}

/* Threads that end between two scans, or before their first tick, and those without room have CPU
** time that no sample has. The process's clock was read after the sessions began and before they
** end, so this is never too much.
*/
static void count_others(Profile *p)
{
  uint64_t all_us = threads_us(p, p->cpu_to_ns);
  Sampler *vm = &session_ofvm(p)->sm;
  int i;
  for (i = 0; i < vm->nevent; i++) {
    SampleEvent *ev = &vm->event[i];
    uint64_t us = p->ended.of.event[i][SPF_EVENT_TOTAL], taken_us = p->ended.of.taken[i];
    Session *s;
    if (ev->e.spec.unit != SPF_UNIT_US || ev->e.spec.measures != EVENT_CPU_TIME) continue;
    for (s = profile_first(p); s; s = session_next(s)) {
      us += sampleevent_total(&s->sm.event[i]);
      taken_us += relaxed_get(&s->sm.event[i].taken);
    }
    if (all_us > taken_us) ev->others = all_us - taken_us;
    if (all_us > us) relaxed_add(&ev->e.counters[SPF_EVENT_TOTAL], all_us - us);
  }
}

void lj_vmprofile_freed(Profile *p)
{
  if (profile_isrunning(p) && !p->is_over && p->opt.cb.goes_on)
    p->gate.door.is_freed = p->opt.cb.goes_on(p->opt.ctx);
}

void lj_vmprofile_halt(Profile *p)
{
  Session *s;
  p->with_names = lj_vmgate_isours(&p->gate);
  note_end(p);
  for (s = profile_first(p); s; s = session_next(s)) lj_session_stop(s);
  lj_vmgate_stop(&p->gate);
  for (s = profile_first(p); s; s = session_next(s)) lj_session_settle(s);
  count_others(p);
}

int lj_vmprofile_end(Profile *p)
{
  Session *s;
  FuncTab *named = NULL;
  uint8_t *buf = NULL;
  int err = 0, stop_err;
  if (p->with_names && p->opt.mode != LUAM_SYSPROF_DEFAULT)
    named = lj_vmtables_name(p->plan.vm);
  while ((s = profile_first(p)) != NULL) {
    int res = session_close(p, s, named, &buf); /* The VM's session is the last. */
    if (res) err = res;
  }
  tables_free(p);
  p->ended.wall_us = p->ended.of.counters[SPF_COUNTER_WALL_US];
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

/* End the session of a thread that has ended. */
static void thread_end(Profile *p, Session *s)
{
  uint8_t *buf;
  lj_session_stop(s);
  lj_session_settle(s);
  session_close(p, s, NULL, &buf);
}

/* Begin the session of one more thread. It starts paused if the thread blocks the signals of
** the events, or has no room for them. Returns 0 on a failure; the thread may have ended.
*/
static int thread_begin(Profile *p, int tid, int later, OsStack stack)
{
  char errmsg[EVENT_ERRMSG_MAX];
  Session *s = lj_session_new(&p->plan, tid, NULL, later);
  if (!s) return 0;
  s->stack = stack;
  lj_session_like(s, profile_first(p));
  if (lj_session_open(s, errmsg) != EVENT_OK) {
    lj_session_free(s);
    return 0;
  }
  p->plan.nsession++;
  lj_vmgate_add(&p->gate, &s->sm.reader);
  if (lj_session_begin(s, errmsg) != 0) {
    thread_end(p, s);
    return 0;
  }
  return 1;
}

#define SCAN_BUCKETS  1024 /* A power of two. */
#define SCAN_FAILURES 8    /* Failures in a row after which a scan tries no more threads. */

typedef struct ThreadScan {
  Profile *p;
  int later;
  uint32_t number;               /* Number of the scan. */
  uint32_t nsession;             /* Sessions before the scan. */
  uint32_t filters;              /* Seccomp filters of this thread. */
  int failures;                  /* Failures in a row. */
  uint64_t unsampled;            /* Threads without samples, */
  uint32_t small;                /* those of them without room for a signal, */
  uint32_t foreign;              /* and those that the C library did not create. */
  int looks_at_stacks;           /* lj_osstack_canlook. */
  Session *by_tid[SCAN_BUCKETS]; /* Sessions before the scan, chained. */
} ThreadScan;

static Session **bucket_of(ThreadScan *scan, int tid)
{
  return &scan->by_tid[tid & (SCAN_BUCKETS - 1)];
}

static void scan_begin(ThreadScan *scan, Profile *p, int later)
{
  Session *s;
  memset(scan, 0, sizeof(*scan));
  scan->p = p;
  scan->later = later;
  scan->number = p->nscan++;
  scan->filters = lj_seccomp_filters(lj_osthread_self());
  scan->looks_at_stacks = lj_osstack_canlook();
  for (s = profile_first(p); s; s = session_next(s)) {
    Session **bucket = bucket_of(scan, s->sm.reader.tid);
    s->seen = 0;
    s->chain = *bucket;
    *bucket = s;
    scan->nsession++;
  }
}

static int is_of_others(const Profile *p, int tid)
{
  const int *at = p->opt.others;
  while (at && *at && *at != tid) at++;
  return at && *at;
}

static OsStack stack_look(const ThreadScan *scan, int tid)
{
  return scan->looks_at_stacks ? lj_osstack_look(tid) : OSSTACK_UNKNOWN;
}

static void thread_found(void *ctx, int tid)
{
  ThreadScan *scan = (ThreadScan *)ctx;
  Session *s = *bucket_of(scan, tid);
  while (s && s->sm.reader.tid != tid) s = s->chain;
  if (s) {
    s->seen = 1;
  } else if (is_of_others(scan->p, tid)) {
    return;
  } else if (scan->failures >= SCAN_FAILURES || lj_seccomp_filters(tid) > scan->filters) {
    /* A filter of its own may kill it for a call of the handler. */
    scan->unsampled++;
  } else if (thread_begin(scan->p, tid, scan->later, stack_look(scan, tid))) {
    scan->failures = 0;
  } else if (lj_osthread_exists(tid)) {
    scan->failures++;
    scan->unsampled++;
  }
}

/* Close the events with signals of a thread that blocks these, and open them again later. */
static void session_look(Session *s)
{
  char errmsg[EVENT_ERRMSG_MAX];
  int is_blocked = lj_session_isblocked(s);
  if (is_blocked == s->paused || !lj_sampler_holdsoon(&s->sm, 0)) return;
  lj_sampler_release(&s->sm);
  if (is_blocked) lj_session_pause(s);
  else lj_session_resume(s, errmsg);
}

#define NEWBORN_NS 1000000 /* The C library begins a thread in less CPU time. */

/* Reading a mask costs 10 us, so a scan of many threads reads only a part of the masks. */
static void thread_pause(ThreadScan *scan, Session *s)
{
  uint32_t turns = 1 + scan->nsession / MASKS_MAX;
  if (s->stack == OSSTACK_FOREIGN) {
    s->stack = stack_look(scan, s->sm.reader.tid);
    if (s->stack == OSSTACK_FOREIGN && thread_ns(s->sm.reader.tid) < NEWBORN_NS) return;
  }
  if ((s->sm.number + scan->number) % turns == 0) session_look(s);
  scan->unsampled += (uint64_t)s->paused;
  scan->small += s->stack == OSSTACK_SMALL;
  scan->foreign += s->stack == OSSTACK_FOREIGN;
}

/* Does the profile have a timer of the process, whose signal reaches any thread? */
static int has_itimer(const Profile *p)
{
  int i;
  for (i = 0; i < p->opt.nspec; i++)
    if (strcmp(p->opt.spec[i].name, "itimer") == 0) return 1;
  return 0;
}

/* Say why threads get no signal, or should not: as many as at most at one time. */
static void note_unsampled(Profile *p, uint32_t small, uint32_t foreign)
{
  if (small <= p->nsmall && foreign <= p->nforeign) return;
  if (small > p->nsmall) p->nsmall = small;
  if (foreign > p->nforeign) p->nforeign = foreign;
  if (p->nsmall && has_itimer(p))
    snprintf(
      p->note, sizeof(p->note),
      "threads whose C stacks SIGPROF of itimer may overflow: %u, with less than %zu "
      "KB; choose another clock",
      p->nsmall, (lj_osstack_least() + 1023) >> 10);
  else if (p->nsmall)
    snprintf(
      p->note, sizeof(p->note),
      "threads without samples: %u, because their C stacks have less than %zu KB, and a "
      "signal could overflow them; give them larger ones, see pthread_attr_setstacksize(3)",
      p->nsmall, (lj_osstack_least() + 1023) >> 10);
  else
    snprintf(p->note, sizeof(p->note),
	     "threads without samples: %u, because clone(2) created them, and not "
	     "pthread_create(3): they may share the storage of another thread",
	     p->nforeign);
  session_ofvm(p)->sm.note = p->note;
}

/* Count threads without samples in the session that stays. */
static void count_unsampled(Profile *p, uint64_t n)
{
  Session *s = session_ofvm(p);
  if (n > relaxed_get(&s->sm.counters[SPF_COUNTER_UNSAMPLED]))
    relaxed_set(&s->sm.counters[SPF_COUNTER_UNSAMPLED], n);
}

static void stack_count(void *ctx, int tid)
{
  uint32_t *small = (uint32_t *)ctx;
  *small += lj_osstack_look(tid) == OSSTACK_SMALL;
}

/* Look at the only session, and at threads that its clock signals though it does not sample them. */
static void own_look(Profile *p)
{
  Session *s = session_ofvm(p);
  uint32_t small = 0;
  if (has_itimer(p) && lj_osstack_canlook() && lj_osthread_each(stack_count, &small))
    note_unsampled(p, small, 0);
  lj_totals_look(&s->sm);
  session_look(s);
  count_unsampled(p, (uint64_t)s->paused);
}

static void thread_ignore(void *ctx, int tid)
{
  UNUSED(ctx);
  UNUSED(tid);
}

void lj_vmprofile_scan(Profile *p, int later)
{
  static ThreadScan scan; /* Under the lock; a VM's thread may have a small stack. */
  Session *s, *next;
  if (p->is_over) return;
  if (p->opt.threads != LUAM_SYSPROF_THREADS_ALL) {
    own_look(p);
    return;
  }
  scan_begin(&scan, p, later);
  if (!lj_osthread_each(thread_found, &scan)) return;
  for (s = profile_first(p); s; s = next) {
    next = session_next(s);
    /* The kernel's list may lack threads that live, while others end. */
    if (s->seen || thread_ns(s->sm.reader.tid) != 0) {
      lj_totals_look(&s->sm);
      thread_pause(&scan, s);
    } else if (next) { /* The VM's session has the buffer for on_stop, so it stays. */
      thread_end(p, s);
    }
  }
  count_unsampled(p, scan.unsampled);
  note_unsampled(p, scan.small, scan.foreign);
}

/* The scan begins the sessions of these threads with the CPU time that they have now. */
void lj_vmprofile_regain(Profile *p, uint64_t ns)
{
  if (p->is_over) return;
  if (p->cpu_from_ns) p->cpu_from_ns = ns ? p->cpu_from_ns + ns : 0;
  lj_vmprofile_scan(p, 0);
}

/* The time before is that of the session that the profile has had from its begin. The thread may
** use time between two readings, so their order counts too little rather than too much.
*/
void lj_vmprofile_takeover(Profile *p, const int *others, uint64_t from_ns)
{
  Sampler *vm = &session_ofvm(p)->sm;
  uint64_t seen_ns, own_ns;
  lj_totals_look(vm);
  seen_ns = vm->cpu_seen * 1000;
  own_ns = thread_ns(vm->reader.tid);
  from_ns = from_ns && own_ns ? from_ns + own_ns : 0;
  p->opt.others = others;
  relaxed_set(&p->opt.threads, LUAM_SYSPROF_THREADS_ALL);
  lj_vmprofile_scan(p, 0);
  if (from_ns == 0) from_ns = threads_ns(p);
  p->cpu_from_ns = from_ns > seen_ns ? from_ns - seen_ns : 0;
}

void lj_vmprofile_look(const Profile *p)
{
  Session *s;
  for (s = profile_first(p); s; s = session_next(s)) {
    lj_eventlist_revive(&s->sm);
    lj_handover_overdue(&s->sm);
  }
}

uint64_t lj_vmprofile_sleepers(const Profile *p)
{
  uint64_t next_ns = ~(uint64_t)0;
  Session *s;
  for (s = profile_first(p); s; s = session_next(s)) {
    uint64_t ns = lj_eventlist_look(&s->sm);
    if (ns < next_ns) next_ns = ns;
  }
  return next_ns;
}

ChunkQueue *lj_vmprofile_claim(const Profile *p)
{
  Session *s;
  for (s = profile_first(p); s; s = session_next(s))
    if (sampler_isqueued(&s->sm) && lj_chunkqueue_claim(&s->sm.queue)) return &s->sm.queue;
  return NULL;
}

/* -- Begin ------------------------------------------------------------------- */

int lj_vmprofile_needsthread(const Profile *p)
{
  return profile_isrunning(p) &&
	 (p->opt.threads == LUAM_SYSPROF_THREADS_ALL || profileopts_haslook(&p->opt) ||
	  profileopts_ends(&p->opt) || session_ofvm(p)->paused ||
	  p->opt.walker == LUAM_SYSPROF_BACKTRACER_LIBUNWIND || has_itimer(p) ||
	  (p->opt.flush == LUAM_SYSPROF_FLUSH_THREAD &&
	   p->opt.mode != LUAM_SYSPROF_DEFAULT));
}

static void events_prepare(const ProfileOptions *opt)
{
  int i;
  for (i = 0; i < opt->nspec; i++)
    if (opt->spec[i].ops->prepare) opt->spec[i].ops->prepare(&opt->spec[i], opt->signo);
}

int lj_vmprofile_open(Profile *p, char *errmsg)
{
  Session *s;
  EventStatus status;
  int err;
  events_prepare(&p->opt); /* May take long, so the profile starts afterwards. */
  p->plan.opt = &p->opt;
  p->plan.gate = &p->gate;
  p->plan.size = &p->size;
  memset(&p->size, 0, sizeof(p->size));
  p->size.max = p->opt.mode == LUAM_SYSPROF_DEFAULT ? 0 : p->opt.limits.max_size;
  p->is_over = 0;
  p->nlate = 0;
  p->nsmall = p->nforeign = 0;
  p->plan.pid = getpid();
  p->plan.start_ns = mono_ns();
  if (p->opt.limits.duration_ns && !p->opt.end_ns)
    p->opt.end_ns = p->plan.start_ns + p->opt.limits.duration_ns;
  /* Sessions that join a file share its time 0. */
  if (p->opt.number == 0 || origin_ns == 0) origin_ns = p->plan.start_ns;
  p->plan.origin_ns = origin_ns;
  p->plan.nsession = 0;
  lj_vmgate_open(&p->gate, p->opt.thread.tid);
  lj_vmdoor_init(&p->gate);
  p->plan.vm = lj_vmtables_new(p->gate.g, p->opt.mode == LUAM_SYSPROF_LEAF);
  if (!p->plan.vm) return PROFILE_ERRMEM;
  s = lj_session_new(&p->plan, p->opt.thread.tid, p->opt.buf, 0);
  if (!s) {
    tables_free(p);
    return PROFILE_ERRMEM;
  }
  status = lj_session_open(s, errmsg);
  if (status != EVENT_OK) {
    err = errno;
    lj_session_free(s);
    tables_free(p);
    errno = err;
    return status == EVENT_BUSY ? PROFILE_ERRRUN : PROFILE_ERRIO;
  }
  p->plan.nsession = 1;
  lj_vmgate_add(&p->gate, &s->sm.reader);
  lj_vmgate_run(&p->gate);
  return PROFILE_SUCCESS;
}

int lj_vmprofile_begin(Profile *p, char *errmsg)
{
  int all = (p->opt.threads == LUAM_SYSPROF_THREADS_ALL), err;
  if (all && !lj_osthread_each(thread_ignore, NULL)) {
    err = errno ? errno : EIO;
    snprintf(errmsg, EVENT_ERRMSG_MAX,
	     "listing the threads of the process failed: "
	     "/proc/self/task: %s",
	     strerror(err));
    return err;
  }
  err = lj_session_begin(profile_first(p), errmsg);
  if (err) return err;
  memset(&p->ended, 0, sizeof(p->ended));
  lj_vmprofile_scan(p, 0);
  p->cpu_from_ns = threads_ns(p);
  count_thread(p, 1);
  return 0;
}

void lj_vmprofile_abandon(Profile *p)
{
  Session *s = profile_first(p);
  lj_session_stop(s);
  lj_vmgate_stop(&p->gate);
  lj_vmgate_remove(&p->gate, &s->sm.reader);
  lj_session_free(s);
  tables_free(p);
}

/* -- While it runs ----------------------------------------------------------- */

/* So long a dump waits for a sample of another thread. That never ends if the program has jumped out
** of it.
*/
#define DUMP_WAIT_NS 1000000000

static Session *session_of_thread(const Profile *p, int tid)
{
  Session *s = profile_first(p);
  while (s && s->sm.reader.tid != tid) s = session_next(s);
  return s;
}

/* No sample of this thread may use the tables of the VM while the search for names does. So
** this thread's sampler is held from the beginning.
*/
static int write_out(Profile *p, int (*put)(Session *, FuncTab *))
{
  Session *own = session_of_thread(p, lj_osthread_self()), *s;
  FuncTab *named = NULL;
  int err = 0;
  if (!p->is_over) count_thread(p, 0);
  for (s = profile_first(p); s; s = session_next(s)) lj_session_sync(s);
  if (own && !lj_sampler_holdsoon(&own->sm, DUMP_WAIT_NS)) return EBUSY;
  if (lj_vmgate_isours(&p->gate) && p->opt.mode != LUAM_SYSPROF_DEFAULT)
    named = lj_vmtables_name(p->plan.vm);
  for (s = profile_first(p); s; s = session_next(s)) {
    int res = EBUSY;
    if (s == own || lj_sampler_holdsoon(&s->sm, DUMP_WAIT_NS)) {
      res = put(s, named);
      if (s != own) lj_sampler_release(&s->sm);
    }
    if (res) err = res;
  }
  if (named) vmtables_release(p->plan.vm);
  if (own) lj_sampler_release(&own->sm);
  return err;
}

int lj_vmprofile_dump(Profile *p)
{
  return write_out(p, lj_session_dump);
}

int lj_vmprofile_name(Profile *p)
{
  return write_out(p, lj_session_name);
}

int lj_vmprofile_move(Profile *p, char *errmsg)
{
  vmgate_seton(&p->gate, lj_osthread_self());
  if (p->is_over) return 0;
  if (p->opt.threads != LUAM_SYSPROF_THREADS_ALL)
    return lj_session_move(profile_first(p), errmsg);
  lj_vmprofile_scan(p, 1);
  return 0;
}

int lj_vmprofile_joinvm(Profile *p, char *errmsg)
{
  return p->is_over ? ECANCELED : lj_session_joinvm(session_ofvm(p), errmsg);
}

void lj_vmprofile_totals(Profile *p, ProfileTotals *t)
{
  int goes_on = profile_isrunning(p) && !p->is_over;
  Session *s;
  *t = p->ended;
  for (s = profile_first(p); s; s = session_next(s)) lj_totals_add(&s->sm, &t->of);
  t->cpu_us = threads_us(p, goes_on ? threads_ns(p) : p->cpu_to_ns);
  if (t->of.cpu_us > t->cpu_us) t->cpu_us = t->of.cpu_us;
  t->opt = p->opt;
  t->sessions = p->plan.nsession;
  if (p->size.is_hit)
    snprintf(t->of.limit, sizeof(t->of.limit),
	     "the profile ended at its size limit of %llu bytes",
	     (unsigned long long)p->size.max);
  if (!profile_isrunning(p)) return;
  t->wall_us = p->is_over && p->nlate == 0 ? t->of.counters[SPF_COUNTER_WALL_US]
					   : (mono_ns() - p->plan.start_ns) / 1000;
  t->replaced = is_replaced(p);
}

/* -- Fork -------------------------------------------------------------------- */

int lj_vmprofile_fork(Profile *p, int forked)
{
  Session *s = session_of(lj_vmgate_forget(&p->gate)), *next;
  int was_profiled = 0;
  void *ctx = NULL;
  for (; s; s = next) {
    next = session_next(s);
    was_profiled |= (s->sm.reader.tid == forked);
    lj_session_forget(s);
  }
  tables_free(p);
  memset(&p->ended, 0, sizeof(p->ended));
  p->cpu_from_ns = 0;
  p->inherited = 1;
  if (was_profiled && p->opt.on_fork && !p->is_over) ctx = p->opt.on_fork(p->opt.ctx);
  if (!ctx) return 0;
  p->opt.ctx = ctx;
  p->opt.thread.tid = lj_osthread_self();
  lj_osthread_stack(&p->opt.thread.stack_lo, &p->opt.thread.stack_hi);
  return 1;
}
