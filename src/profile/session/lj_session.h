/*
** Sessions: what is sampled of one thread for one VM. What the sessions of a VM share
** is its profile, see lj_vmprofile.h.
**
** A session has its events with their clocks, its memory, its stream and its
** counters; nothing of it is used by another thread while its clocks run. The
** sample itself is taken by lj_sample.c, in the signal handler; what is here
** runs outside of it, under the lock of lj_registry.h, on any thread:
**
**   new -> open -> begin -> (ticks) -> halt -> end -> free
*/

#ifndef _LJ_SESSION_H
#define _LJ_SESSION_H

#include "profile/lua/lj_luawalk.h"
#include "profile/stream/lj_stream.h"
#include "profile/session/lj_vmprofile.h"
#include "profile/stream/lj_chunkqueue.h"

/* An event of a session. A total is what happened on the session's threads since
** its start, in the event's unit; a sample stands for what was added since the
** last sample that could be kept.
*/
typedef struct SessionEvent {
  Clock clock;
  int is_open;      /* The clock has been opened. */
  uint64_t before;  /* Total of the threads before this one. */
  uint64_t base;    /* What the clock said when this one began. */
  uint64_t total;   /* As the last tick has it. Handler only. */
  uint64_t seen;    /* As the last look has it. */
  uint64_t taken;   /* What the kept samples stand for. */
  uint64_t samples; /* Samples taken. */
  uint64_t tick_ns; /* Time of the last tick. */
} SessionEvent;

typedef struct Session {
  struct Session *next; /* In the list of its profile. */
  /* Set before the start. */
  Profile *p;
  volatile int tid; /* The thread. */
  uint32_t number;  /* In the file. */
  uint8_t *buf;     /* Buffer of its own, or NULL. */
  int nevent;
  int later;            /* The thread began after the profile. */
  int seen;             /* It was there at the last look. */
  uint64_t cpu_before;  /* CPU time of the threads before this one, */
  uint64_t cpu_base;    /* of this one when it began, */
  uint64_t cpu_us;      /* and of all, as the last tick has it, */
  uint64_t seen_cpu_us; /* or the last look. */
  /* Handler only, while the clocks run. */
  int in_handler;         /* Guards against a nested tick, and in a dump. */
  int state;              /* SPF_VMST_* of the current sample. */
  uint64_t rest_until_ns; /* No sample is taken before. */
  uint64_t begin_cpu_ns;  /* Thread's CPU time when the tick began. */
  uint64_t spent_ns;      /* In the handler, for the last sample; not counted
				** yet, because the count takes time as well. */
  uintptr_t leaf_pc;      /* Interrupted address, for backtracers. */
  SessionEvent event[SPF_EVENTS_MAX];
  uint64_t counters[SPF_COUNTER__MAX];
  Hist handler;
  SafeLoad peek;
  HostWalk host;
  LuaWalk lua;
  FrameList host_frames, lua_frames;
  Symtab symtab;
  Stream stream;
  ChunkQueue queue; /* Of its chunks, unless the handler writes them. */
} Session;

/* A session of a thread, with a buffer, or NULL for one of its own. later: the
** thread began after the profile. NULL without memory.
*/
LJ_FUNC Session *lj_session_new(Profile *p, int tid, uint8_t *buf, int later);

/* Open its clocks. CLOCK_ERROR: errno and why, of CLOCK_ERRMSG_MAX bytes, say more. */
LJ_FUNC ClockStatus lj_session_open(Session *s, char *why);

/* Write how the stream begins and start the clocks; ticks may come from now on.
** Returns 0, or an errno.
*/
LJ_FUNC int lj_session_begin(Session *s, char *why);

/* Stop its clocks: no tick comes any more. */
LJ_FUNC void lj_session_halt(Session *s);

/* Does the handler leave the chunks to be written? */
static LJ_AINLINE int session_isqueued(const Session *s)
{
  return s->stream.queue != NULL;
}

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
LJ_FUNC int lj_session_move(Session *s, char *why);

/* Look at its thread's clock from outside, so that little is missing if it ends.
*/
LJ_FUNC void lj_session_look(Session *s);

/* Add what it has counted. */
LJ_FUNC void lj_session_count(const Session *s, ProfileTotals *t);

#endif
