/*
** The profile of a VM, from begin to end: what its sessions share, and which there
** are.
**
** Runs outside of the handler, under the lock of lj_registry.h, on any thread. The
** list of profiles sees to the helper between the steps:
**
**   open: memory -> clocks		begin: stream -> ticks
**   halt: clocks -> hooks		end:   streams -> on_stop -> memory
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

#ifndef _LJ_VMPROFILE_H
#define _LJ_VMPROFILE_H

#include "lj_obj.h"
#include "lmisclib.h"
#include "profile/clock/lj_clock.h"
#include "profile/base/lj_hist.h"
#include "profile/api/lj_sysprof.h"
#include "profile/format/lj_sysprof_format.h"

struct Session;

/* What a start asks for. */
typedef struct ProfileOptions {
  int mode;    /* LUAM_SYSPROF_*. */
  int threads; /* LUAM_SYSPROF_THREADS_*. */
  int flush;   /* LUAM_SYSPROF_FLUSH_*, with a stream. */
  int signo;   /* Signal of the clocks. */
  SysprofCallbacks cb;
  void *ctx;    /* For the callbacks. */
  uint8_t *buf; /* Buffer of the first session, */
  size_t len;   /* and its size, as of all others. */
  luam_Sysprof_on_fork on_fork;
  uint32_t number; /* Number of the first session in the file. */
  uint64_t interval_ns;
  int nspec; /* Events. */
  ClockSpec spec[SPF_EVENTS_MAX];
} ProfileOptions;

/* What several sessions count, together. */
typedef struct ProfileTotals {
  ProfileOptions opt;             /* Of their profile. */
  ClockSpec used[SPF_EVENTS_MAX]; /* Its clocks as they are used. */
  uint64_t counters[SPF_COUNTER__MAX];
  Hist handler;      /* Time in the handler. */
  uint64_t ticks;    /* Samples of the first event. */
  uint64_t cpu_us;   /* CPU time of the threads. */
  uint64_t wall_us;  /* Since the start of the profile. */
  uint32_t sessions; /* Sessions that were begun. */
  int replaced;      /* The program has taken the signal away. */
} ProfileTotals;

/* The profile of a VM. It stays until lua_close, running or not. */
typedef struct Profile {
  global_State *g;      /* The VM. */
  struct Profile *next; /* In the list of all. */
  volatile int running; /* It has sessions. */
  int inherited;        /* The parent's: only on_stop is left to call. */
  ProfileOptions opt;   /* Set before the start, as the next two. */
  pid_t pid;            /* Process that started it. */
  uint64_t start_ns;    /* CLOCK_MONOTONIC at the start. */
  uint64_t origin_ns;   /* Where the times of its streams begin. */
  /* Shared with the handlers, see above. */
  volatile int vm_tid;            /* Thread that was last known to run the VM. */
  volatile int shared;            /* The VM was seen on several threads. */
  volatile int changing;          /* The VM frees or moves something. */
  volatile uint32_t readers;      /* Handlers that look at the VM. */
  lua_State *volatile moving;     /* Its Lua stack is being moved, */
  volatile uintptr_t moving_from; /* from this address. */
  volatile int in_hook;           /* Thread in a hook, which reads the list. */
  /* Under the lock; hooks read the list. */
  struct Session *volatile first; /* Sessions, the newest first. */
  uint32_t nsession;              /* Sessions begun so far. */
  int with_names;                 /* By halt: the VM may be searched at the end. */
  ProfileTotals ended;            /* Of sessions that have ended. */
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

/* Open the first session, with the options that are set: it runs, without ticks. Returns
** a PROFILE_* status; without success sets errno, and why[CLOCK_ERRMSG_MAX] if that does not
** say it all.
*/
LJ_FUNC int lj_vmprofile_open(Profile *p, char *why);

/* Begin one that was opened. Returns 0, or an errno and why, and then it is to be
** abandoned.
*/
LJ_FUNC int lj_vmprofile_begin(Profile *p, char *why);
LJ_FUNC void lj_vmprofile_abandon(Profile *p);

/* Stop the clocks of one that runs: it does not run any more. */
LJ_FUNC void lj_vmprofile_halt(Profile *p);

/* End one that was halted. Returns a PROFILE_* status and sets errno. */
LJ_FUNC int lj_vmprofile_end(Profile *p);

/* In a child of fork(): forget the parent's sessions, whose streams are not touched.
** forked: the thread that forked. Returns 1 if it was profiled and on_fork says that the
** profile is to begin anew. No profile of the list runs.
*/
LJ_FUNC int lj_vmprofile_fork(Profile *p, int forked);

/* In a process that the profile was inherited by, nothing is left of it but its end:
** call on_stop, if that is so and has not been done.
*/
LJ_FUNC void lj_vmprofile_disown(Profile *p);

/* Write what there is so far; it goes on. On the VM's thread. Returns 0 or the errno of
** a failed writer.
*/
LJ_FUNC int lj_vmprofile_dump(Profile *p);

/* The calling thread runs the VM from now on. Returns 0, or an errno and why. */
LJ_FUNC int lj_vmprofile_move(Profile *p, char *why);

/* Of a profile of all threads: sample new ones, and end the sessions of those that are
** gone. later: they began after the profile.
*/
LJ_FUNC void lj_vmprofile_scan(Profile *p, int later);

/* Does it need the helper thread while it runs? */
LJ_FUNC int lj_vmprofile_ishelped(const Profile *p);

/* What it has counted so far, running or ended. */
LJ_FUNC void lj_vmprofile_totals(Profile *p, ProfileTotals *t);

#endif
