/*
** Session of a thread: its sampler, memory, clocks and stream, from begin to end.
** Context: under the lock, on any thread, outside of the handler.
**
** While its clocks run, only the handler on its thread touches the sampler, lj_sample.h.
**
**   new -> open -> begin -> (ticks) -> halt -> end -> free
*/

#ifndef _LJ_SESSION_H
#define _LJ_SESSION_H

#include <sys/types.h>

#include "profile/session/lj_sample.h"

/* What all sessions of a profile share. */
typedef struct SessionPlan {
  const ProfileOptions *opt;
  VmGate *gate;
  pid_t pid;          /* Process that started the profile. */
  uint64_t start_ns;  /* CLOCK_MONOTONIC at the start. */
  uint64_t origin_ns; /* Where the times of its streams begin. */
  uint32_t nsession;  /* Sessions begun so far. */
} SessionPlan;

/* What several sessions count, together. */
typedef struct SessionTotals {
  ClockSpec used[SPF_EVENTS_MAX]; /* Clocks as they are used. */
  uint64_t counters[SPF_COUNTER__MAX];
  Hist handler;    /* Time in the handler. */
  uint64_t ticks;  /* Samples of the first event. */
  uint64_t cpu_us; /* CPU time of the threads. */
} SessionTotals;

typedef struct Session {
  Sampler sm;      /* First: its reader links the sessions of a profile. */
  pid_t pid;       /* Process that started the profile. */
  uint32_t number; /* In the file. */
  uint8_t *buf;    /* Buffer of its own, or NULL. */
  int later;       /* The thread began after the profile. */
  int paused;      /* Without clocks: its thread blocks their signals. */
  uint64_t asked_cpu_us, asked_samples; /* At the last lj_session_isblocked. */
  int seen;                             /* It was there at the last scan. */
  struct Session *chain;                /* In the same bucket of a scan. */
  uint64_t seen_cpu_us;                 /* CPU time as the last poll has it. */
} Session;

/* The session that a gate's reader belongs to; NULL of NULL. */
static LJ_AINLINE Session *session_of(VmReader *reader)
{
  return (Session *)reader;
}

/* The next session of its profile, or NULL. Under the lock, or in a hook. */
static LJ_AINLINE Session *session_next(const Session *s)
{
  return session_of(__atomic_load_n(&s->sm.reader.next, __ATOMIC_SEQ_CST));
}

/* A session of a thread, with a buffer, or NULL for one of its own. later: the
** thread began after the profile. NULL without memory.
*/
LJ_FUNC Session *lj_session_new(const SessionPlan *plan, int tid, uint8_t *buf, int later);

/* Open its clocks. CLOCK_ERROR: errno and errmsg, of CLOCK_ERRMSG_MAX bytes, say more. */
LJ_FUNC ClockStatus lj_session_open(Session *s, char *errmsg);

/* Does its thread block a signal of its clocks? Such a signal would stay pending, or reach
** a sigwait() or signalfd() of the thread. Reads the thread's mask only if the thread has
** run without a sample since the last call.
*/
LJ_FUNC int lj_session_isblocked(Session *s);

/* Before open: take over which clocks another session has. The session begins paused if
** its thread blocks their signals: then it is not opened.
*/
LJ_FUNC void lj_session_like(Session *s, const Session *other);

/* Close the clocks of a session that goes on, and open them again. Resume returns 0, or an
** errno and why.
*/
LJ_FUNC void lj_session_pause(Session *s);
LJ_FUNC int lj_session_resume(Session *s, char *why);

/* Write how the stream begins and start the clocks; ticks may come from now on.
** Returns 0, or an errno.
*/
LJ_FUNC int lj_session_begin(Session *s, char *errmsg);

/* Stop its clocks: no tick comes any more. */
LJ_FUNC void lj_session_halt(Session *s);

/* Write what there is so far, with names as by lj_session_end; the clocks go on, and
** ticks of another thread that come meanwhile are lost. On the VM's thread, with the
** clocks' signals blocked. Returns 0, or the errno of a failed writer.
*/
LJ_FUNC int lj_session_dump(Session *s, int with_names);

/* Complete its stream. with_names: the VM does not run meanwhile, and may be
** searched for names. Returns 0, or the errno of a failed writer.
*/
LJ_FUNC int lj_session_end(Session *s, int with_names);

/* Free its memory. No handler and no hook uses it any more; waits for who still
** writes its chunks, except in a child of fork(), which forgets it.
*/
LJ_FUNC void lj_session_free(Session *s);
LJ_FUNC void lj_session_forget(Session *s);

/* Its thread is the calling one from now on. Returns 0, or an errno. */
LJ_FUNC int lj_session_move(Session *s, char *errmsg);

/* Look at its thread's clock from outside, so that little is missing if it ends.
*/
LJ_FUNC void lj_session_look(Session *s);

/* Hand over samples that wait for a second because no tick came. */
LJ_FUNC void lj_session_handover(Session *s);

/* Add what it has counted. */
LJ_FUNC void lj_session_count(const Session *s, SessionTotals *t);

#endif
