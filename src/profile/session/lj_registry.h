/*
** Registry of profiles: one for each VM that was ever profiled, and the latest totals.
** Context: under the lock of lj_process.h | lj_registry_of: any thread.
*/

#ifndef _LJ_REGISTRY_H
#define _LJ_REGISTRY_H

#include "lj_obj.h"
#include "profile/session/lj_vmprofile.h"

/* Return the first profile of the list, or NULL. Profile.next is the next one. */
LJ_FUNC Profile *lj_registry_first(void);

/* Return the profile of a VM, running or not; NULL if the VM never had one. */
LJ_FUNC Profile *lj_registry_of(global_State *g);

/* Return the profile of a VM, and create it if the VM has none. Returns NULL without
** memory. The registry owns the profile until lj_registry_remove.
*/
LJ_FUNC Profile *lj_registry_get(global_State *g);

/* Free a stopped profile, when its VM closes. */
LJ_FUNC void lj_registry_remove(Profile *p);

/* Note that this profile was started last. */
LJ_FUNC void lj_registry_setlatest(Profile *p);

/* Copy the totals of a VM's profile. If g is NULL, take the profile that was started last.
** The profile may run or have stopped.
*/
LJ_FUNC void lj_registry_totals(global_State *g, ProfileTotals *t);

#endif
