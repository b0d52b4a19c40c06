/*
** Remote control: a signal or a file starts, stops or dumps a profile, or dumps coroutines.
** Context: VM thread, outside of the handler.
*/

#ifndef _LJ_CONTROL_H
#define _LJ_CONTROL_H

#include "lj_obj.h"
#include "profile/control/lj_ctlslot.h"

/* Put a VM of this thread under control. Returns NULL, or the reason of a failure: the end of a
** sentence, in lj_options_errmsg() or constant.
*/
LJ_FUNC const char *lj_control_add(lua_State *L, const ControlOptions *co);

/* Start a profile of a VM that was added. Returns as lj_control_add does. */
LJ_FUNC const char *lj_control_start(lua_State *L);

/* Let the process look after the control of VMs, before the first one is added. Takes the lock. */
LJ_FUNC void lj_control_begin(void);

/* Serve the pending requests of a VM at its safe point. Returns 1 if a client of live control has
** one, too.
*/
LJ_FUNC int lj_control_serve(lua_State *L);

/* Is a VM under control? */
LJ_FUNC int lj_control_has(const global_State *g);

/* End the control of a VM. Returns 1 if the VM was under control. */
LJ_FUNC int lj_control_close(global_State *g);

#endif
