/*
** Process of the profiler: its lock, fork, exit, and the work of the background thread.
** Context: VM thread or any thread, outside of the handler; under the lock where said.
**
** One lock for all profiles: start, stop, report and the scans of the background thread
** take it; no handler and no hook does, and the background thread does not wait for it.
** It is recursive: a callback may use the API.
*/

#ifndef _LJ_PROCESS_H
#define _LJ_PROCESS_H

#include "lj_obj.h"
#include "profile/session/lj_vmprofile.h"

/* Take the lock. In a child of fork() that is new to us, forgets the parent's profiles. */
LJ_FUNC void lj_process_lock(void);
LJ_FUNC void lj_process_unlock(void);

/* Prepare the process for the first profile, or for the first that may come: it learns of
** forks and of exit. Later calls do nothing. Takes the lock. Returns 0 or an errno.
*/
LJ_FUNC int lj_process_begin(void);

/* Make the background thread if something needs it, else end it. Takes the lock. Returns
** 0 or an errno.
*/
LJ_FUNC int lj_process_setthread(void);

/* Start a profile with the options that are set. Returns a PROFILE_* status; without
** success sets errno, and errmsg[CLOCK_ERRMSG_MAX] if that does not say it all. Under the lock.
*/
LJ_FUNC int lj_process_start(Profile *p, char *errmsg);

/* Stop one that runs. Returns a PROFILE_* status and sets errno. Under the lock. */
LJ_FUNC int lj_process_stop(Profile *p);

/* Its VM or the process ends: stop it if it runs, or end what was inherited of it. Nobody
** hears how that goes. Under the lock.
*/
LJ_FUNC void lj_process_close(Profile *p);

#endif
