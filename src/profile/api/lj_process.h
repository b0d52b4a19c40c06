/*
** Process-wide state of the profiler: lock, fork, exit, work of the background thread.
** Context: any thread, outside of the handler | under the lock where a function says so.
**
** One lock protects all profiles. Start, stop, report and the scans of the background
** thread take it. Handlers never take it. Of the VM hooks, only close and safepoint take it.
** The background thread tries to take it and never waits. The lock is recursive, because a
** callback may use the API.
*/

#ifndef _LJ_PROCESS_H
#define _LJ_PROCESS_H

#include "lj_obj.h"
#include "profile/session/lj_vmprofile.h"

/* What live control does in the process. */
typedef struct ProcessLive {
  int (*needed)(void); /* Does it need the background thread? Under the lock. */
  /* Background thread: without the lock, at each look; is there nothing to look at? under the
  ** lock; wait for that, without the lock: see BgWork.rest.
  */
  void (*poll)(void);
  int (*is_idle)(void);
  int (*wait)(void);
  void (*rouse)(void);  /* End a wait. */
  void (*forked)(void); /* In a child of fork(). Under the lock. */
  void (*end)(void);    /* The background thread has ended. Under the lock. */
} ProcessLive;

/* Take the lock. In a new child process, drops the parent's profiles first. Until unlock, the
** thread cannot be cancelled.
*/
LJ_FUNC void lj_process_lock(void);
LJ_FUNC void lj_process_unlock(void);

/* Take the lock, or return 0 if another thread holds it. Background thread. */
LJ_FUNC int lj_process_trylock(void);

/* Install the handlers of fork() and exit(), before the first profile. Later calls do
** nothing. Takes the lock. Returns 0 or an errno.
*/
LJ_FUNC int lj_process_begin(void);

/* What the background thread does for the control of VMs, before its first run. */
LJ_FUNC void lj_process_setpoll(void (*poll)(void));

/* Live control exists from now on. */
LJ_FUNC void lj_process_setlive(const ProcessLive *live);

/* Start the background thread if a profile or control needs it, else end it. Takes
** the lock. Returns 0 or an errno.
*/
LJ_FUNC int lj_process_setthread(void);

/* Start a profile with the options that are set. Returns a PROFILE_* status; without
** success sets errno, and errmsg[EVENT_ERRMSG_MAX] if that does not say it all. Under the lock.
*/
LJ_FUNC int lj_process_start(Profile *p, char *errmsg);

/* Stop a running profile. Returns a PROFILE_* status and sets errno. Under the lock. */
LJ_FUNC int lj_process_stop(Profile *p);

/* End a profile because its VM or the process ends: stop it if it runs, drop it if a fork
** inherited it. Returns no status, since nobody could read it. Under the lock.
*/
LJ_FUNC void lj_process_close(Profile *p);

#endif
