/*
** Sysprof: start, stop and dump of the profile of a VM.
** Context: the thread that runs the VM, outside of the handler. Takes the lock.
*/

#ifndef _LJ_SYSPROF_H
#define _LJ_SYSPROF_H

#include "lj_obj.h"
#include "profile/session/lj_profileopts.h"

/* Start profiling a VM that this thread runs. Modes with a stream need a writer and
** an on_stop. Returns a PROFILE_* status and sets errno with PROFILE_ERRIO.
*/
LJ_FUNC int lj_sysprof_start(lua_State *L, const struct luam_Sysprof_Options *opt,
			     const SysprofCallbacks *cb);

/* Stop it. Returns a PROFILE_* status and sets errno with PROFILE_ERRIO. */
LJ_FUNC int lj_sysprof_stop(global_State *g);

/* The calling thread runs the VM from now on. Returns a PROFILE_* status and sets
** errno with PROFILE_ERRIO; profiling goes on without ticks then.
*/
LJ_FUNC int lj_sysprof_moved(global_State *g);

/* Write what there is of its profile so far, so that it can be read; it goes on. On
** the VM's thread. Returns a PROFILE_* status and sets errno with PROFILE_ERRIO.
*/
LJ_FUNC int lj_sysprof_dump(global_State *g);

/* Is a VM being profiled? */
LJ_FUNC int lj_sysprof_isrunning(global_State *g);

#endif
