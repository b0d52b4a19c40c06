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

/* Return the profile of a VM, running or not; NULL if the VM never had one or is closing. */
LJ_FUNC Profile *lj_registry_of(global_State *g);

/* Return the profile of a VM, and create it if the VM has none. Returns NULL without
** memory, or if the VM is closing. The registry owns the profile until lj_registry_close.
*/
LJ_FUNC Profile *lj_registry_get(global_State *g);

/* The VM is closing: free its stopped profile, if it has one, and refuse others. A VM that has none
** needs no lock.
*/
LJ_FUNC void lj_registry_close(global_State *g);

/* Has lj_registry_close been called for the VM? Any thread. */
LJ_FUNC int lj_registry_isclosed(const global_State *g);

/* Note that this profile was started last. */
LJ_FUNC void lj_registry_setlatest(Profile *p);

/* Copy the totals of a VM's profile. If g is NULL, take the profile that was started last.
** The profile may run or have stopped.
*/
LJ_FUNC void lj_registry_totals(global_State *g, ProfileTotals *t);

#endif
