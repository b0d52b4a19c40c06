/*
** Session of a thread: owns its sampler, memory, clocks and stream.
** Context: under the lock, on any thread, outside of the handler.
**
** While its clocks run, only the handler on its thread touches the sampler, lj_sample.h.
**
**   new -> open -> begin -> (ticks) -> halt -> end -> free
*/

#ifndef _LJ_SESSION_H
#define _LJ_SESSION_H

#include <sys/types.h>

#include "profile/clock/lj_clockbudget.h"
#include "profile/session/lj_sample.h"

/* Data that all sessions of a profile share. */
typedef struct SessionPlan {
  const ProfileOptions *opt;
  VmGate *gate;
  VmTables *vm;       /* Tables of the VM. */
  pid_t pid;          /* Process that started the profile. */
  uint64_t start_ns;  /* CLOCK_MONOTONIC at the start. */
  uint64_t origin_ns; /* Time 0 of its streams. */
  uint32_t nsession;  /* Sessions begun so far. */
} SessionPlan;

/* Sums of the counters of several sessions. */
typedef struct SessionTotals {
  ClockSpec used[SPF_EVENTS_MAX];   /* Clocks in use, */
  int signo[SPF_EVENTS_MAX];        /* and their signals. */
  int shared;                       /* The program has a handler for one of these. */
  char limit[CLOCKBUDGET_TEXT_MAX]; /* Why a clock does not reach its rate; "": it does. */
  uint64_t counters[SPF_COUNTER__MAX];
  Hist handler;    /* Time in the handler. */
  uint64_t ticks;  /* Samples of the first event. */
  uint64_t cpu_us; /* CPU time of the threads. */
} SessionTotals;

typedef struct Session {
  pid_t pid;       /* Process that started the profile. */
  uint32_t number; /* Number in the file. */
  size_t size;     /* Bytes of its memory, which may hold a buffer, too. */
  int later;       /* The thread began after the profile. */
  int paused;      /* The clocks are closed: the thread blocks their signals. */
  uint64_t asked_cpu_us, asked_samples; /* State at the last lj_session_isblocked. */
  int seen;                             /* The last scan found the thread. */
  struct Session *chain;                /* Next session in the same bucket of a scan. */
  uint64_t seen_cpu_us;                 /* CPU time at the last poll. */
  Sampler
    sm; /* Last: its end may be missing. Its reader links the sessions of a profile. */
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

/* Open the clocks. On CLOCK_ERROR, sets errno and errmsg[CLOCK_ERRMSG_MAX]. */
LJ_FUNC ClockStatus lj_session_open(Session *s, char *errmsg);

/* Does its thread block a signal of its clocks? Such a signal would stay pending, or reach
** a sigwait() or signalfd() of the thread. Reads the thread's mask only if the thread has
** run without a sample since the last call.
*/
LJ_FUNC int lj_session_isblocked(Session *s);

/* Copy the choice of clocks from another session, before open. If the thread blocks the
** signals of these clocks, the session begins paused and must not be opened.
*/
LJ_FUNC void lj_session_like(Session *s, const Session *other);

/* Close the clocks of a session that goes on, and open them again. Resume returns 0, or an
** errno and the reason.
*/
LJ_FUNC void lj_session_pause(Session *s);
LJ_FUNC int lj_session_resume(Session *s, char *why);

/* Write the beginning of the stream and start the clocks. Ticks may come from now on.
** Returns 0 or an errno.
*/
LJ_FUNC int lj_session_begin(Session *s, char *errmsg);

/* Stop the clocks. No tick comes after this returns. */
LJ_FUNC void lj_session_halt(Session *s);

/* Write all data up to now, with names as in lj_session_end. The clocks go on. Ticks of
** another thread during the dump are lost. Call it on the VM thread, with the signals of
** the clocks blocked. Returns 0 or the errno of a failed writer.
*/
LJ_FUNC int lj_session_dump(Session *s, FuncTab *named);

/* Complete the stream. named: functions of lj_vmtables_name, or NULL. Returns 0 or the errno
** of a failed writer.
*/
LJ_FUNC int lj_session_end(Session *s, FuncTab *named);

/* Free the memory. No handler or hook may use the session. lj_session_free waits for a
** writer of its chunks. lj_session_forget does not wait: it is for a child of fork().
*/
LJ_FUNC void lj_session_free(Session *s);
LJ_FUNC void lj_session_forget(Session *s);

/* Sample the calling thread from now on. Returns 0, or an errno and the reason. */
LJ_FUNC int lj_session_move(Session *s, char *errmsg);

/* Read the clocks of the thread from outside. If the thread ends, the totals lack only the
** time since the last poll.
*/
LJ_FUNC void lj_session_look(Session *s);

/* Start clocks again that the program has stopped, because it took their signals. */
LJ_FUNC void lj_session_revive(Session *s);

/* Hand over samples that have waited for a second, since no tick came. */
LJ_FUNC void lj_session_handover(Session *s);

/* Add the session's counters to the totals. */
LJ_FUNC void lj_session_count(const Session *s, SessionTotals *t);

#endif
