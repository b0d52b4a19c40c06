/*
** Sessions: what is sampled of one thread for one VM, and what the sessions of
** a VM share, its profile.
**
** A session has its events with their clocks, its memory, its stream and its
** counters; nothing of it is used by another thread while its clocks run. The
** sample itself is taken by lj_sample.c, in the signal handler; what is here
** runs outside of it, under the lock of lj_sysprof.c, on any thread:
**
**   new -> open -> begin -> (ticks) -> halt -> end -> free
**
** Which thread runs the VM. Its own data does not tell for sure: a host may move
** it between threads. vm_tid is the thread that was last known to: by start, by
** luaM_sysprof_moved, by a hook of the VM, or by a sample on whose host stack the
** VM's innermost C frame was. Only a handler on that thread reads Lua data.
**
** How memory that a handler may read is freed. A handler counts itself in readers
** while it looks at the VM. What the VM frees or moves, it announces by changing,
** waits until there is no reader, and then does it: a handler that comes later
** sees changing and, unless it interrupts that very thread, does not look. On the
** VM's own thread there is never anything to wait for.
*/

#ifndef _LJ_SESSION_H
#define _LJ_SESSION_H

#include "lj_obj.h"
#include "lmisclib.h"
#include "profile/lj_clock.h"
#include "profile/lj_hist.h"
#include "profile/lj_lstack.h"
#include "profile/lj_stream.h"
#include "profile/lj_sysprof.h"
#include "profile/lj_wqueue.h"

/* What a start asks for. */
typedef struct ProfileOptions {
  int mode;			/* LUAM_SYSPROF_*. */
  int threads;			/* LUAM_SYSPROF_THREADS_*. */
  int flush;			/* LUAM_SYSPROF_FLUSH_*, with a stream. */
  int signo;			/* Signal of the clocks. */
  SysprofCallbacks cb;
  void *ctx;			/* For the callbacks. */
  uint8_t *buf;			/* Buffer of the first session, */
  size_t len;			/* and its size, as of all others. */
  luam_Sysprof_on_fork on_fork;
  uint32_t number;		/* Number of the first session in the file. */
  uint64_t interval_ns;
  int nspec;			/* Events. */
  ClockSpec spec[SPF_EVENTS_MAX];
} ProfileOptions;

/* What several sessions count, together. */
typedef struct SessionTotals {
  ProfileOptions opt;		/* Of their profile. */
  ClockSpec used[SPF_EVENTS_MAX];  /* Its clocks as they are used. */
  uint64_t counters[SPF_COUNTER__MAX];
  Hist handler;			/* Time in the handler. */
  uint64_t ticks;		/* Samples of the first event. */
  uint64_t cpu_us;		/* CPU time of the threads. */
  uint64_t wall_us;		/* Since the start of the profile. */
  uint32_t sessions;		/* Sessions that were begun. */
  int replaced;			/* The program has taken the signal away. */
} SessionTotals;

struct Session;

/* The profile of a VM. It stays until lua_close, running or not. */
typedef struct Profile {
  global_State *g;		/* The VM. */
  struct Profile *next;		/* In the list of all. */
  volatile int running;		/* It has sessions. */
  int inherited;		/* The parent's: only on_stop is left to call. */
  ProfileOptions opt;		/* Set before the start, as the next two. */
  pid_t pid;			/* Process that started it. */
  uint64_t start_ns;		/* CLOCK_MONOTONIC at the start. */
  uint64_t origin_ns;		/* Where the times of its streams begin. */
  /* Shared with the handlers, see above. */
  volatile int vm_tid;		/* Thread that was last known to run the VM. */
  volatile int shared;		/* The VM was seen on several threads. */
  volatile int changing;	/* The VM frees or moves something. */
  volatile uint32_t readers;	/* Handlers that look at the VM. */
  lua_State * volatile moving;	/* Its Lua stack is being moved, */
  volatile uintptr_t moving_from;  /* from this address. */
  volatile int in_hook;		/* Thread in a hook, which reads the list. */
  /* Under the lock; hooks read the list. */
  struct Session * volatile first;  /* Sessions, the newest first. */
  uint32_t nsession;		/* Sessions begun so far. */
  SessionTotals ended;		/* Of sessions that have ended. */
} Profile;

/* Was the VM last known to run on this thread? */
static LJ_AINLINE int profile_runson(const Profile *p, int tid)
{
  return __atomic_load_n(&p->vm_tid, __ATOMIC_RELAXED) == tid;
}

/* Was the VM seen on several threads? */
static LJ_AINLINE int profile_isshared(const Profile *p)
{
  return __atomic_load_n(&p->shared, __ATOMIC_RELAXED);
}

/* It runs on this thread now. Async-signal-safe. */
static LJ_AINLINE void profile_seton(Profile *p, int tid)
{
  if (profile_runson(p, tid)) return;
  __atomic_store_n(&p->shared, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&p->vm_tid, tid, __ATOMIC_RELAXED);
}

/* An event of a session. A total is what happened on the session's threads since
** its start, in the event's unit; a sample stands for what was added since the
** last sample that could be kept.
*/
typedef struct SessionEvent {
  Clock clock;
  int is_open;			/* The clock has been opened. */
  uint64_t before;		/* Total of the threads before this one. */
  uint64_t base;		/* What the clock said when this one began. */
  uint64_t total;		/* As the last tick has it. Handler only. */
  uint64_t seen;		/* As the last look has it. */
  uint64_t taken;		/* What the kept samples stand for. */
  uint64_t samples;		/* Samples taken. */
  uint64_t tick_ns;		/* Time of the last tick. */
} SessionEvent;

typedef struct Session {
  struct Session *next;		/* In the list of its profile. */
  /* Set before the start. */
  Profile *p;
  volatile int tid;		/* The thread. */
  uint32_t number;		/* In the file. */
  uint8_t *buf;			/* Buffer of its own, or NULL. */
  int nevent;
  int later;			/* The thread began after the profile. */
  int seen;			/* It was there at the last look. */
  uint64_t cpu_before;		/* CPU time of the threads before this one, */
  uint64_t cpu_base;		/* of this one when it began, */
  uint64_t cpu_us;		/* and of all, as the last tick has it, */
  uint64_t seen_cpu_us;		/* or the last look. */
  /* Handler only, while the clocks run. */
  int in_handler;		/* Guards against a nested tick, and in a dump. */
  int state;			/* SPF_VMST_* of the current sample. */
  uint64_t rest_until_ns;	/* No sample is taken before. */
  uint64_t begin_cpu_ns;	/* Thread's CPU time when the tick began. */
  uintptr_t leaf_pc;		/* Interrupted address, for backtracers. */
  SessionEvent event[SPF_EVENTS_MAX];
  uint64_t counters[SPF_COUNTER__MAX];
  Hist handler;
  Peek peek;
  HostStack host;
  LuaStack lua;
  Frames host_frames, lua_frames;
  Symtab symtab;
  Stream stream;
  WQueue queue;			/* Of its chunks, unless the handler writes them. */
} Session;

/* A session of a thread, with a buffer, or NULL for one of its own. later: the
** thread began after the profile. NULL without memory.
*/
LJ_FUNC Session *lj_session_new(Profile *p, int tid, uint8_t *buf, int later);

/* Open its clocks. CLOCK_ERROR: errno and why, of CLOCK_WHY_MAX bytes, say more. */
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

/* Is an address on the calling thread's C stack? */
LJ_FUNC int lj_session_onstack(const void *addr);

/* Add what it has counted. */
LJ_FUNC void lj_session_count(const Session *s, SessionTotals *t);

/* Totals of the profile of a VM, or of the one that was started last if g is NULL;
** running or stopped. Not under the lock.
*/
LJ_FUNC void lj_sysprof_totals(global_State *g, SessionTotals *t);

/* The calling thread's id, cheaper than lj_clock_tid. */
LJ_FUNC int lj_sysprof_tid(void);

#endif
