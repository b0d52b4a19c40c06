/*
** Memory profiler: profiles of the event `alloc`, and exact allocations of a function's calls.
** Context: VM thread, outside of the handler. Takes the lock.
**
** A profile is one of lj_sysprof.h. Functions return a PROFILE_* status and set errno;
** lj_options_errmsg has the reason of a failure.
*/

#ifndef _LJ_MEMPROF_H
#define _LJ_MEMPROF_H

#include "lj_obj.h"
#include "lmisclib.h"

/* Stop the profile of a VM, if it has the event `alloc`. PROFILE_ERRRUN: none runs. */
LJ_FUNC int lj_memprof_stop(global_State *g);

/* Call the function on the top of the Lua stack, warmup times, and then runs times while
** allocations are counted and the collector is stopped. Pops the function. Raises its error.
** PROFILE_ERRUSE: no function, or no runs. PROFILE_ERRRUN: the function is being counted
** already, or has replaced the VM's allocator.
*/
LJ_FUNC int lj_memprof_count(lua_State *L, uint32_t runs, uint32_t warmup,
			     struct luam_Memprof_Count *count);

/* Write a heap snapshot of the VM into a file. Without wait it returns at once: a later failure leaves
** no file, and a line in the log. PROFILE_ERRRUN: another one is being written.
*/
LJ_FUNC int lj_memprof_snapshot(lua_State *L, const char *path, int no_strings, int wait);

/* lua_close has closed a VM. */
LJ_FUNC void lj_memprof_close(void);

#endif
