/*
** The profiles of all VMs: the list and its lock, and what concerns all of them: the
** helper thread, a fork, the end of the process.
**
** One lock for all: start, stop, report and the helper's looks. No handler takes it,
** and no hook; the helper does not wait for it. It is recursive: a callback may use the
** API. Runs outside of the handler; but for the first and the last function, under the
** lock.
*/

#ifndef _LJ_REGISTRY_H
#define _LJ_REGISTRY_H

#include "lj_obj.h"
#include "profile/session/lj_vmprofile.h"

/* Take the lock. In a child of fork() that is new to us, forgets the parent's. */
LJ_FUNC void lj_registry_lock(void);
LJ_FUNC void lj_registry_unlock(void);

/* What has to be done before the first profile, or the first that may come: the list
** is this process's, and it learns of forks and of the end. May be called again. Returns
** 0 or an errno.
*/
LJ_FUNC int lj_registry_begin(void);

/* Make the helper thread if something needs it, else end it. Returns 0 or an errno. */
LJ_FUNC int lj_registry_sethelper(void);

/* The profile of a VM, running or not; NULL if it never had one. */
LJ_FUNC Profile *lj_registry_of(global_State *g);

/* Likewise, made if it has none. NULL without memory. It is the list's until it is
** removed.
*/
LJ_FUNC Profile *lj_registry_get(global_State *g);

/* Begin it with the options that are set; it is the latest then. Returns a PROFILE_*
** status; without success sets errno, and why[CLOCK_ERRMSG_MAX] if that does not say it all.
*/
LJ_FUNC int lj_registry_start(Profile *p, char *why);

/* End one that runs. Returns a PROFILE_* status and sets errno. */
LJ_FUNC int lj_registry_end(Profile *p);

/* Its VM or process ends: end it if it runs, or what was inherited of it. Nobody hears how
** that goes.
*/
LJ_FUNC void lj_registry_close(Profile *p);

/* Free one that does not run: its VM is closed. */
LJ_FUNC void lj_registry_remove(Profile *p);

/* Totals of the profile of a VM, or of the one that was started last if g is NULL;
** running or stopped. Takes the lock.
*/
LJ_FUNC void lj_registry_totals(global_State *g, ProfileTotals *t);

#endif
