/*
** Profiles that begin after a delay, or end by time or size.
** Context: VM thread, outside of the handler. Takes the lock.
*/

#ifndef _LJ_TIMED_H
#define _LJ_TIMED_H

#include "profile/start/lj_startfile.h"

/* Start as lj_startfile does, after the delay of fo if it has one: then the file and the options
** are checked now.
*/
LJ_FUNC int lj_timed_start(lua_State *L, const struct luam_Sysprof_Options *opt,
			   const StreamFileOptions *fo, StartResult *r);

/* Stop the VM's profile with this stop, or cancel its delay. For a profile that has ended by
** itself, returns once how that went. Returns a PROFILE_* status, and sets errno.
*/
LJ_FUNC int lj_timed_stop(lua_State *L, int (*stop)(global_State *g));

#endif
