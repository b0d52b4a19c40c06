/*
** Profile of a VM: its sessions, from the first start to the end of the VM.
** Context: under the lock, on any thread, outside of the handler.
**
** lj_process starts and ends the background thread between the steps:
**
**   open: memory -> events		begin: stream -> samples
**   halt: events -> hooks -> totals	end:   streams -> on_stop -> memory
*/

#ifndef _LJ_VMPROFILE_H
#define _LJ_VMPROFILE_H

#include "lj_obj.h"
#include "profile/base/lj_relaxed.h"
#include "profile/session/lj_session.h"
#include "profile/sample/lj_totals.h"

/* Totals and options of a profile. */
typedef struct ProfileTotals {
  ProfileOptions opt;
  SampleTotals of;   /* Sums of its sessions. */
  uint64_t wall_us;  /* Real time since the start. */
  uint64_t cpu_us;   /* CPU time of the threads, also of those that nobody sampled. */
  uint32_t sessions; /* Sessions begun. */
  int replaced;      /* The program has replaced the signal's handler. */
} ProfileTotals;

/* Profile of a VM. Lives until lua_close, running or not. */
typedef struct Profile {
  VmGate gate;
  struct Profile *next; /* Next profile in the registry. */
  int inherited;        /* In a child of fork(): only on_stop is left to call. */
  ProfileOptions opt;   /* Set before the start. */
  SessionPlan plan;
  SizeLimit size;
  int is_over;               /* The samples of the threads have ended, the file has not. */
  int nlate;                 /* Threads whose samples go on, because one did not end. */
  uint32_t nscan;            /* Scans of the threads so far. */
  uint32_t nsmall;           /* Threads without room for a signal: the most at one time. */
  uint32_t nforeign;         /* Threads that the C library did not create: the same. */
  char note[EVENT_TEXT_MAX]; /* The sentence about them. */
  int with_names;            /* Set by halt: the end may search the VM for names. */
  uint64_t cpu_from_ns, cpu_to_ns; /* CPU time of its threads at the begin and the end. */
  uint64_t thread_from_ns;         /* lj_bgthread_share at the begin. */
  ProfileTotals ended;             /* Totals of sessions that have ended. */
} Profile;

/* Does the profile have sessions? */
static LJ_AINLINE int profile_isrunning(const Profile *p)
{
  return relaxed_get(&p->gate.running);
}

/* Return the newest session, or NULL. Under the lock, or in a hook. */
static LJ_AINLINE Session *profile_first(const Profile *p)
{
  return session_of(__atomic_load_n(&p->gate.first, __ATOMIC_SEQ_CST));
}

/* Open the first session with the options of the profile. The profile runs then, without
** samples. Returns a PROFILE_* status. On a failure, sets errno, and the reason in
** errmsg[EVENT_ERRMSG_MAX] if errno is not enough.
*/
LJ_FUNC int lj_vmprofile_open(Profile *p, char *errmsg);

/* Begin an open profile: samples may come. Returns 0, or an errno and the reason: then the
** caller must abandon the profile.
*/
LJ_FUNC int lj_vmprofile_begin(Profile *p, char *errmsg);
LJ_FUNC void lj_vmprofile_abandon(Profile *p);

/* Must the samples of a running profile end, or those of a thread whose sample did not end at the
** last try?
*/
LJ_FUNC int lj_vmprofile_isdue(const Profile *p, uint64_t now_ns);

/* End the samples of all threads; those of the VM's events go on. The profile runs until halt. */
LJ_FUNC void lj_vmprofile_over(Profile *p);

/* Would a halt by another thread than the VM's end? Not while a sample does not end: the program
** may have jumped out of it.
*/
LJ_FUNC int lj_vmprofile_canhalt(const Profile *p);

/* lua_close is about to end the profile. If others of the same file go on, nothing that the VM
** holds is there at their end.
*/
LJ_FUNC void lj_vmprofile_freed(Profile *p);

/* Stop the events of a running profile. It does not run after this returns. First the sources
** stop, then the hooks of the VM. So nobody is on the way to a sampler any more. Then each
** sampler is held, which waits for its last sample.
*/
LJ_FUNC void lj_vmprofile_halt(Profile *p);

/* End a halted profile. Returns a PROFILE_* status and sets errno. */
LJ_FUNC int lj_vmprofile_end(Profile *p);

/* In a child of fork(): forget the parent's sessions without touching their streams.
** forked: the thread that called fork(). Returns 1 if that thread was profiled and on_fork
** asks for a profile of the child. No profile of the registry may run.
*/
LJ_FUNC int lj_vmprofile_fork(Profile *p, int forked);

/* End a profile that a child of fork() inherited: call on_stop once. Does nothing for other
** profiles.
*/
LJ_FUNC void lj_vmprofile_disown(Profile *p);

/* Write all data up to now, on the VM thread. The profile goes on. Returns 0 or the errno of
** a failed writer.
*/
LJ_FUNC int lj_vmprofile_dump(Profile *p);

/* Write the names of all functions that are there now, before a collection frees some. On the VM
** thread. Returns 0 or an errno.
*/
LJ_FUNC int lj_vmprofile_name(Profile *p);

/* Begin the events of the VM itself (SourceOps.is_of_vm), which a profile leaves out that another
** thread began. On the VM thread. Returns 0, or an errno and the reason. ECANCELED: the samples have
** ended.
*/
LJ_FUNC int lj_vmprofile_joinvm(Profile *p, char *errmsg);

/* The calling thread runs the VM from now on. Returns 0, or an errno and the reason. */
LJ_FUNC int lj_vmprofile_move(Profile *p, char *errmsg);

/* Close the events with signals of threads that block these, open them again for threads that do
** not any more, and count the former as unsampled. A profile of all threads begins sessions of new
** threads, and ends sessions of threads that have ended. later: new threads began after the
** profile.
*/
LJ_FUNC void lj_vmprofile_scan(Profile *p, int later);

/* The list of other threads of a profile of all threads has lost one, which had used ns of CPU time
** until then; 0: it is unknown.
*/
LJ_FUNC void lj_vmprofile_regain(Profile *p, uint64_t ns);

/* The profile of one thread samples all but others from now on, see ProfileOptions. from_ns: the CPU
** time of these, without that of its own thread, at which another profile stopped sampling them (its
** cpu_to_ns); 0: it is unknown, and their time until now does not count.
*/
LJ_FUNC void lj_vmprofile_takeover(Profile *p, const int *others, uint64_t from_ns);

/* Look after sessions without samples: start their events again if the program has taken the
** signals, and hand over chunks whose samples have waited for a second.
*/
LJ_FUNC void lj_vmprofile_look(const Profile *p);

/* Let the events of all sessions look at their threads, see lj_eventlist_look. */
LJ_FUNC uint64_t lj_vmprofile_sleepers(const Profile *p);

/* Claim a queue that has chunks to write, or return NULL. The claim keeps the session until
** lj_chunkqueue_release. Under the lock, or in a hook.
*/
LJ_FUNC ChunkQueue *lj_vmprofile_claim(const Profile *p);

/* Does the running profile need the background thread? */
LJ_FUNC int lj_vmprofile_needsthread(const Profile *p);

/* Copy the totals of the profile, running or ended. */
LJ_FUNC void lj_vmprofile_totals(Profile *p, ProfileTotals *t);

#endif
