/*
** Registry of profiles: one for each VM that was ever profiled, and the latest totals.
** Context: under the lock of lj_process.h; lj_registry_of: any thread.
*/

#ifndef _LJ_REGISTRY_H
#define _LJ_REGISTRY_H

#include "lj_obj.h"
#include "profile/session/lj_vmprofile.h"

/* The first profile of all; Profile.next leads on. NULL if there is none. */
LJ_FUNC Profile *lj_registry_first(void);

/* The profile of a VM, running or not; NULL if it never had one. */
LJ_FUNC Profile *lj_registry_of(global_State *g);

/* Likewise, made if it has none. NULL without memory. The registry owns it until it is
** removed.
*/
LJ_FUNC Profile *lj_registry_get(global_State *g);

/* Free one that does not run: its VM is closed. */
LJ_FUNC void lj_registry_remove(Profile *p);

/* This profile was started last. */
LJ_FUNC void lj_registry_setlatest(Profile *p);

/* Totals of the profile of a VM, or of the one that was started last if g is NULL;
** running or stopped.
*/
LJ_FUNC void lj_registry_totals(global_State *g, ProfileTotals *t);

#endif
