/*
** Session of a thread: its sampler, from new to free.
** Context: under the lock, on any thread, outside of the handler.
**
**   new -> open -> begin -> (samples) -> stop -> settle -> end -> free
*/

#ifndef _LJ_SESSION_H
#define _LJ_SESSION_H

#include "profile/base/lj_cpuquota.h"
#include "profile/base/lj_osstack.h"
#include "profile/sample/lj_samplermem.h"

typedef struct Session {
  Sampler sm;   /* First. Its reader links the sessions of a profile. */
  pid_t pid;    /* Process that started the profile. */
  int is_first; /* Of its profile. It has the events of the VM. */
  size_t size;  /* Bytes of its memory, which may hold a buffer, too. */
  int later;    /* The thread began after the profile. */
  int is_late;  /* It is the first, and the events of the VM do not run yet. */
  int paused; /* Events with signals are closed: the thread blocks these, or lacks room. */
  OsStack stack; /* Has the thread room for a signal? The first one has. */
  int nall;      /* Looks in a row that found all signals blocked, SIGCANCEL too. */
  uint64_t asked_cpu_us, asked_ticks; /* State at the last lj_session_isblocked. */
  int seen;                           /* The last scan found the thread. */
  struct Session *chain;              /* Next session in the same bucket of a scan. */
  CpuQuota quota;                     /* Of the first: counts at its begin, */
  uint32_t forks;                     /* and calls of fork(). */
} Session;

/* Return the session of a gate's reader; NULL for NULL. */
static LJ_AINLINE Session *session_of(VmReader *reader)
{
  return reader ? (Session *)((char *)reader - offsetof(Session, sm.reader)) : NULL;
}

/* Return the next session of the same profile, or NULL. Under the lock, or in a hook. */
static LJ_AINLINE Session *session_next(const Session *s)
{
  return session_of(__atomic_load_n(&s->sm.reader.next, __ATOMIC_SEQ_CST));
}

/* Create the session of a thread. buf: buffer of the first session of a profile, which also
** gets the larger tables of the VM; else NULL. later: the thread began after the profile.
** Returns NULL without memory.
*/
LJ_FUNC Session *lj_session_new(const SessionPlan *plan, int tid, uint8_t *buf, int later);

/* Open the events; of a paused session, those without signals; those of the VM only on its thread.
** The first session pauses if its thread blocks the signals that the events chose. On
** EVENT_ERROR, sets errno and errmsg[EVENT_ERRMSG_MAX].
*/
LJ_FUNC EventStatus lj_session_open(Session *s, char *errmsg);

/* Open and arm the events of the VM in its session, on the VM thread. Returns 0, or an errno and the
** reason.
*/
LJ_FUNC int lj_session_joinvm(Session *s, char *errmsg);

/* Does its thread block a signal of its events, or has it no room for one? A blocked signal would
** stay pending, or reach a sigwait() or signalfd() of the thread. Reads the thread's mask only if the
** thread has run for a part of a tick without a sample.
*/
LJ_FUNC int lj_session_isblocked(Session *s);

/* Copy the events in use from another session, before open. If the thread blocks their
** signals, the session begins paused.
*/
LJ_FUNC void lj_session_like(Session *s, const Session *other);

/* Close the events with signals of a session that goes on, and open them again. Nobody jumps out
** of its samples: see lj_sampler_holdsoon. Resume returns 0, or an errno and the reason.
*/
LJ_FUNC void lj_session_pause(Session *s);
LJ_FUNC int lj_session_resume(Session *s, char *errmsg);

/* Write the beginning of the stream and arm the events. Samples may come from now on.
** Returns 0 or an errno.
*/
LJ_FUNC int lj_session_begin(Session *s, char *errmsg);

/* Let the events report all up to now: a dump follows. */
LJ_FUNC void lj_session_sync(Session *s);

/* End the samples of the session's thread; those of the VM's events go on. The stop counts no
** time after that. Returns 0 if a sample does not end within this time.
*/
LJ_FUNC int lj_session_over(Session *s, uint64_t wait_ns);

/* Stop the events. */
LJ_FUNC void lj_session_stop(Session *s);

/* Hold the sampler of a stopped session for good, and raise the totals. No hook of the VM may
** be on its way to the sampler.
*/
LJ_FUNC void lj_session_settle(Session *s);

/* Write all data up to now, with names as in lj_session_end. The session goes on. The caller
** holds the sampler. Returns 0 or the errno of a failed writer.
*/
LJ_FUNC int lj_session_dump(Session *s, FuncTab *named);

/* The same for the names alone: the profile does not tell of a dump. */
LJ_FUNC int lj_session_name(Session *s, FuncTab *named);

/* Complete the stream of a settled session. named: functions of lj_vmtables_name, or NULL.
** Returns 0 or the errno of a failed writer.
*/
LJ_FUNC int lj_session_end(Session *s, FuncTab *named);

/* Free the memory. No handler or hook may use the session. lj_session_free waits for a
** writer of its chunks. lj_session_forget does not wait: it is for a child of fork().
*/
LJ_FUNC void lj_session_free(Session *s);
LJ_FUNC void lj_session_forget(Session *s);

/* Sample the calling thread from now on. Returns 0, or an errno and the reason. */
LJ_FUNC int lj_session_move(Session *s, char *errmsg);

#endif
