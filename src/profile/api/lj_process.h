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

/* Take the lock. In a new child process, drops the parent's profiles first. Until unlock, the
** thread cannot be cancelled.
*/
LJ_FUNC void lj_process_lock(void);
LJ_FUNC void lj_process_unlock(void);

/* Install the handlers of fork() and exit(), before the first profile. Later calls do
** nothing. Takes the lock. Returns 0 or an errno.
*/
LJ_FUNC int lj_process_begin(void);

/* What the background thread does for the control of VMs, before its first run. */
LJ_FUNC void lj_process_setpoll(void (*poll)(void));

/* Start the background thread if a profile or a control file needs it, else end it. Takes
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
