/*
** Session of a thread: new, begin, pause, end.
** Context: under the lock of lj_process.h, on any thread, outside of the handler.
*/

#define lj_session_c
#define LUA_CORE

#include <errno.h>

#include "lj_obj.h"
#include "profile/base/lj_osmemory.h"
#include "profile/base/lj_osprocess.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_relaxed.h"
#include "profile/session/lj_describe.h"
#include "profile/sample/lj_eventlist.h"
#include "profile/sample/lj_handover.h"
#include "profile/sample/lj_marks.h"
#include "profile/session/lj_memfacts.h"
#include "profile/sample/lj_sample.h"
#include "profile/session/lj_session.h"
#include "profile/sample/lj_totals.h"

/* The thread's mask is read when the thread has used 1 / TICK_PARTS of a tick's CPU time. A thread
** that blocks the signal in the last part still gets the tick.
*/
#define TICK_PARTS 8

static int has_stream(const Session *s)
{
  return s->sm.opt->mode != LUAM_SYSPROF_DEFAULT;
}

/* -- New, and free ----------------------------------------------------------- */

Session *lj_session_new(const SessionPlan *plan, int tid, uint8_t *buf, int later)
{
  size_t size;
  Sampler *sm = lj_samplermem_new(plan, sizeof(Session), tid, buf, &size);
  Session *s = (Session *)sm;
  if (!s) return NULL;
  lj_eventlist_init(sm);
  s->size = size;
  s->pid = plan->pid;
  s->is_first = (plan->nsession == 0);
  s->later = later;
  return s;
}

void lj_session_forget(Session *s)
{
  lj_osmemory_free(s, s->size);
}

void lj_session_free(Session *s)
{
  if (sampler_isqueued(&s->sm)) lj_chunkqueue_end(&s->sm.queue);
  lj_session_forget(s);
}

/* -- Events ------------------------------------------------------------------ */

/* Count the time in which events do not run that only the VM's thread can begin. */
static void count_missed(Session *s)
{
  int i;
  for (i = 0; s->is_late && i < s->sm.nevent; i++) {
    Event *e = &s->sm.event[i].e;
    if (e->spec.ops->is_of_vm)
      relaxed_set(&e->counters[SPF_EVENT_MISSED_US], lj_totals_us(&s->sm));
  }
}

int lj_session_joinvm(Session *s, char *errmsg)
{
  count_missed(s);
  s->is_late = 0;
  if (lj_eventlist_open(&s->sm, EVENTS_OF_VM, errmsg) != EVENT_OK)
    return errno ? errno : EINVAL;
  return lj_eventlist_arm(&s->sm, errmsg);
}

/* Close the events with signals if the thread blocks these. */
static void close_blocked(Session *s)
{
  if (lj_eventlist_blocked(&s->sm) == SIGBLOCKED_NOT) return;
  lj_eventlist_stop(&s->sm, EVENTS_BY_SIGNALS);
  s->paused = 1;
}

/* The first session is that of the VM's thread. */
EventStatus lj_session_open(Session *s, char *errmsg)
{
  EventSet set = s->paused ? EVENTS_WITHOUT_SIGNALS : EVENTS_OF_THREADS;
  EventStatus status;
  if (s->is_first && s->sm.reader.tid == lj_osthread_self()) {
    count_missed(s);
    s->is_late = 0;
    set = EVENTS_ALL;
  } else if (s->is_first) {
    s->is_late = 1;
  }
  status = lj_eventlist_open(&s->sm, set, errmsg);
  if (status == EVENT_OK && s->is_first) close_blocked(s);
  return status;
}

#define ALL_LOOKS 2 /* So many in a row are no moment. */

/* A thread that blocks all signals may do so for a moment, such as one that has just begun. */
static int mask_look(Session *s)
{
  SigBlocked blocked = lj_eventlist_blocked(&s->sm);
  s->nall = blocked == SIGBLOCKED_ALL ? s->nall + 1 : 0;
  if (blocked != SIGBLOCKED_ALL) return blocked == SIGBLOCKED_YES;
  if (s->nall > ALL_LOOKS) s->nall = ALL_LOOKS;
  return s->paused || s->nall == ALL_LOOKS;
}

/* The handler on a thread that the C library did not create could use another thread's storage. */
static int has_room(const Session *s)
{
  return s->stack != OSSTACK_SMALL && s->stack != OSSTACK_FOREIGN;
}

int lj_session_isblocked(Session *s)
{
  uint64_t ticks = lj_eventlist_ticks(&s->sm);
  int is_due = s->sm.cpu_seen - s->asked_cpu_us > lj_eventlist_tick_us(&s->sm) / TICK_PARTS;
  int has_ticked = ticks != s->asked_ticks;
  if (!has_room(s)) return 1;
  if (!has_ticked && !is_due) return s->paused;
  s->asked_cpu_us = s->sm.cpu_seen;
  s->asked_ticks = ticks;
  if (!has_ticked) return mask_look(s);
  s->nall = 0;
  return s->paused;
}

void lj_session_like(Session *s, const Session *other)
{
  lj_eventlist_like(&s->sm, &other->sm);
  s->paused = !has_room(s) || mask_look(s) || (s->nall > 0 && !s->later);
}

/* -- Begin ------------------------------------------------------------------- */

int lj_session_begin(Session *s, char *errmsg)
{
  int err = 0;
  if (has_stream(s)) err = lj_describe_profile(&s->sm, s->pid);
  if (has_stream(s) && s->is_first) lj_cpuquota_read(&s->quota);
  s->forks = lj_osprocess_forks();
  s->seen = 1;
  lj_safeload_reset(&s->sm.peek);
  lj_totals_begin(&s->sm, s->later);
  lj_sampler_release(&s->sm); /* Also for the end that follows a failure. */
  return err ? err : lj_eventlist_arm(&s->sm, errmsg);
}

void lj_session_sync(Session *s)
{
  lj_memfacts_look(&s->sm);
  lj_handover_drain(&s->sm); /* So that there is room for what they report. */
  lj_eventlist_sync(&s->sm);
}

/* -- End --------------------------------------------------------------------- */

void lj_session_stop(Session *s)
{
  lj_totals_look(&s->sm);
  lj_memfacts_look(&s->sm);
  lj_handover_drain(&s->sm);
  lj_eventlist_stop(&s->sm, EVENTS_ALL);
}

/* all_rests: see lj_sample_rest. */
static void settle(Session *s, int all_rests)
{
  lj_sampler_seize(&s->sm);
  lj_totals_settle(&s->sm);
  count_missed(s);
  lj_sample_nested(&s->sm);
  lj_sample_rest(&s->sm, all_rests);
}

/* With all threads, the CPU time of the samples is that of the process. */
static int is_ofall(const Session *s)
{
  return s->sm.opt->threads == LUAM_SYSPROF_THREADS_ALL;
}

void lj_session_settle(Session *s)
{
  settle(s, is_ofall(s));
}

int lj_session_end(Session *s, FuncTab *named)
{
  if (!has_stream(s)) return 0;
  lj_describe_end(&s->sm);
  if (s->is_first) lj_describe_throttling(&s->sm, &s->quota);
  if (s->is_first) lj_describe_forks(&s->sm, s->forks);
  return lj_handover_end(&s->sm, named);
}

int lj_session_dump(Session *s, FuncTab *named)
{
  if (!has_stream(s)) return 0;
  count_missed(s);
  lj_marks_dump(&s->sm);
  return lj_session_name(s, named);
}

int lj_session_name(Session *s, FuncTab *named)
{
  if (!has_stream(s)) return 0;
  lj_totals_time(&s->sm);
  lj_sample_nested(&s->sm);
  return lj_handover_dump(&s->sm, named);
}

/* -- Pause and move ---------------------------------------------------------- */

static void pause(Session *s, EventSet set, int all_rests)
{
  lj_totals_look(&s->sm);
  lj_eventlist_stop(&s->sm, set);
  settle(s, all_rests);
  s->paused = 1;
  s->later = 0;
  lj_totals_keep(&s->sm);
  lj_sampler_release(&s->sm);
}

/* The thread blocks the signals, or did: the next tick must not have the time without ticks. */
void lj_session_pause(Session *s)
{
  pause(s, EVENTS_BY_SIGNALS, 1);
}

/* If the program has jumped out of a sample, only the stop by its thread can hold the sampler. */
int lj_session_over(Session *s, uint64_t wait_ns)
{
  if (s->sm.over_us) return 1;
  if (!lj_sampler_holdsoon(&s->sm, wait_ns)) return 0;
  lj_sampler_release(&s->sm);
  pause(s, EVENTS_OF_THREADS, is_ofall(s));
  s->sm.cpu_seen = relaxed_get(&s->sm.cpu_us);
  s->sm.over_us = relaxed_get(&s->sm.counters[SPF_COUNTER_WALL_US]) | 1; /* Not 0. */
  return 1;
}

/* Arm what was opened. Without that, the session stays paused. */
static int rearm(Session *s, EventStatus status, char *errmsg)
{
  int err = errno ? errno : EINVAL;
  if (status == EVENT_OK) {
    lj_totals_begin(&s->sm, 0);
    err = lj_eventlist_arm(&s->sm, errmsg);
  }
  if (err != 0) s->paused = 1;
  return err;
}

int lj_session_resume(Session *s, char *errmsg)
{
  lj_session_pause(s);
  s->paused = 0;
  return rearm(s, lj_eventlist_open(&s->sm, EVENTS_OF_THREADS, errmsg), errmsg);
}

int lj_session_move(Session *s, char *errmsg)
{
  int tid = lj_osthread_self();
  if (s->sm.reader.tid == tid) return 0;
  pause(s, EVENTS_OF_THREADS,
	0); /* The next tick has the time: a VM may move all the time. */
  lj_sampler_seize(&s->sm);
  lj_samplermem_thread(&s->sm, tid);
  if (has_stream(s)) {
    lj_handover_encode(&s->sm);
    lj_stream_move(&s->sm.stream, (uint32_t)tid);
  }
  lj_sampler_release(&s->sm);
  s->paused = 0;
  return rearm(s, lj_session_open(s, errmsg), errmsg);
}
