/*
** Profile of a VM: its sessions, from the first start to the end of the VM.
** Context: under the lock, on any thread, outside of the handler.
**
** The process makes the background thread between the steps:
**
**   open: memory -> clocks		begin: stream -> ticks
**   halt: clocks -> hooks		end:   streams -> on_stop -> memory
*/

#ifndef _LJ_VMPROFILE_H
#define _LJ_VMPROFILE_H

#include "lj_obj.h"
#include "profile/base/lj_relaxed.h"
#include "profile/session/lj_session.h"

/* What a profile has counted so far, with what it is of. */
typedef struct ProfileTotals {
  ProfileOptions opt;
  SessionTotals of;  /* Of its sessions. */
  uint64_t wall_us;  /* Since the start of the profile. */
  uint32_t sessions; /* Sessions that were begun. */
  int replaced;      /* The program has taken the signal away. */
} ProfileTotals;

/* It stays until lua_close, running or not. */
typedef struct Profile {
  VmGate gate;
  struct Profile *next; /* In the registry. */
  int inherited;        /* The parent's: only on_stop is left to call. */
  ProfileOptions opt;   /* Set before the start. */
  SessionPlan plan;
  uint32_t nscan;      /* Scans of the threads so far. */
  int with_names;      /* By halt: the VM may be searched at the end. */
  ProfileTotals ended; /* Of sessions that have ended. */
} Profile;

/* Does it have sessions? */
static LJ_AINLINE int profile_isrunning(const Profile *p)
{
  return relaxed_get(&p->gate.running);
}

/* Its newest session, NULL if there is none. Under the lock, or in a hook. */
static LJ_AINLINE Session *profile_first(const Profile *p)
{
  return session_of(__atomic_load_n(&p->gate.first, __ATOMIC_SEQ_CST));
}

/* Open the first session, with the options that are set: it runs, without ticks. Returns
** a PROFILE_* status; without success sets errno, and errmsg[CLOCK_ERRMSG_MAX] if that does not
** say it all.
*/
LJ_FUNC int lj_vmprofile_open(Profile *p, char *errmsg);

/* Begin one that was opened. Returns 0, or an errno and errmsg, and then it is to be
** abandoned.
*/
LJ_FUNC int lj_vmprofile_begin(Profile *p, char *errmsg);
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

/* The calling thread runs the VM from now on. Returns 0, or an errno and errmsg. */
LJ_FUNC int lj_vmprofile_move(Profile *p, char *errmsg);

/* Of a profile of all threads: sample new ones, and end the sessions of those that are
** gone. later: they began after the profile.
*/
LJ_FUNC void lj_vmprofile_scan(Profile *p, int later);

/* Hand over chunks whose samples wait for a second because no tick came. */
LJ_FUNC void lj_vmprofile_handover(const Profile *p);

/* A queue with chunks to write, claimed: its session stays until it is released. NULL if
** there is none. Under the lock, or in a hook.
*/
LJ_FUNC ChunkQueue *lj_vmprofile_claim(const Profile *p);

/* Does it need the background thread while it runs? */
LJ_FUNC int lj_vmprofile_needsthread(const Profile *p);

/* What it has counted so far, running or ended. */
LJ_FUNC void lj_vmprofile_totals(Profile *p, ProfileTotals *t);

#endif
