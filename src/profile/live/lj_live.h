/*
** Live control: clients of the process's socket record its VMs while the program runs.
** Context: as each function says, outside of the handler.
**
** The background thread serves the clients. It starts a profile from outside, wherever the VM's
** thread is: asleep in C, or in compiled code that never ends. Events of the VM itself, such as
** alloc, begin at its next safe point. The stream goes into a file that the client has opened and
** passes along. So the program opens no path, and the client may be in another container.
*/

#ifndef _LJ_LIVE_H
#define _LJ_LIVE_H

#include "lj_obj.h"

/* Let clients record a VM of this thread. The first call of a process opens its socket. Returns
** NULL, or the reason of a failure: a sentence in lj_options_errmsg(). VM thread.
*/
LJ_FUNC const char *lj_live_add(lua_State *L);

/* Start what a client waits for, at the VM's safe point. VM thread. */
LJ_FUNC void lj_live_serve(lua_State *L);

#endif
