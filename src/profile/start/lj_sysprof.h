/*
** Profiler entry points of a VM: start, stop, dump, move.
** Context: VM thread, outside of the handler. Takes the lock.
*/

#ifndef _LJ_SYSPROF_H
#define _LJ_SYSPROF_H

#include "lj_obj.h"
#include "profile/sample/lj_profileopts.h"

/* Prepare the process for a profile of a VM. Returns a PROFILE_* status. On a failure sets errno, and the
** reason is in lj_options_errmsg(). PROFILE_ERRUSE: lua_close is closing the VM.
*/
LJ_FUNC int lj_sysprof_prepare(const global_State *g);

/* Start profiling the VM of L. Modes with a stream need a writer and an on_stop. limits: NULL: it
** ends by a stop only. Returns a PROFILE_* status, and sets errno with PROFILE_ERRIO.
*/
LJ_FUNC int lj_sysprof_start(lua_State *L, const struct luam_Sysprof_Options *opt,
			     const SysprofCallbacks *cb, const ProfileLimits *limits);

/* The same for a VM that another thread runs, from any thread: at once, wherever that thread is.
** Events of the VM itself (SourceOps.is_of_vm) begin by lj_sysprof_joinvm. The VM must not close
** meanwhile. others: threads that a profile of all threads leaves out, then 0; or NULL. The list lives
** as long as the profile.
*/
LJ_FUNC int lj_sysprof_startfor(global_State *g, const VmThread *thread,
				const struct luam_Sysprof_Options *opt,
				const SysprofCallbacks *cb, const ProfileLimits *limits,
				const int *others);

/* Begin the events of the VM itself in its running profile, on the VM thread. Returns a PROFILE_*
** status; sets errno with PROFILE_ERRIO, and the reason is in lj_options_errmsg().
*/
LJ_FUNC int lj_sysprof_joinvm(global_State *g);

/* Collect garbage, if the running profile of the VM asks for it and no other thread runs the VM.
** Before a stop or a dump. Runs finalizers; their errors are lost. Not under the lock.
*/
LJ_FUNC void lj_sysprof_collect(lua_State *L);

/* The same before lua_close. The local variables of a main chunk that luajit has run keep what they hold:
** it was live up to the end of the program.
*/
LJ_FUNC void lj_sysprof_collectlast(lua_State *L);

/* End the samples of the VM's running profile, and ask the VM to complete it. */
LJ_FUNC void lj_sysprof_over(global_State *g);

/* Stop the VM's profile. Returns a PROFILE_* status, and sets errno with PROFILE_ERRIO. */
LJ_FUNC int lj_sysprof_stop(global_State *g);

/* Complete a profile that is over, without names that only the VM's tables tell. Returns 0 if a
** sample does not end: try again later. Background thread.
*/
LJ_FUNC int lj_sysprof_force(global_State *g);

/* The calling thread runs the VM from now on. Returns a PROFILE_* status. With
** PROFILE_ERRIO, sets errno, and the profile goes on without ticks.
*/
LJ_FUNC int lj_sysprof_moved(global_State *g);

/* Write all chunks of the VM's running profile, so that a reader can open the file. The
** profile goes on. Returns a PROFILE_* status, and sets errno with PROFILE_ERRIO.
*/
LJ_FUNC int lj_sysprof_dump(global_State *g);

/* Has the running profile of a VM ended its samples by itself, so that a stop is due? */
LJ_FUNC int lj_sysprof_isover(global_State *g);

/* Is a VM being profiled? */
LJ_FUNC int lj_sysprof_isrunning(global_State *g);

#endif
