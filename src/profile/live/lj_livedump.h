/*
** Texts that a client of live control asks for: coroutines, or the map of compiled code for perf.
** Context: background thread, under the lock | serve: VM thread, without the lock.
**
** Each VM writes its text at a safe point. A VM that reaches none in time is missing. A process
** makes the texts for one client at a time.
*/

#ifndef _LJ_LIVEDUMP_H
#define _LJ_LIVEDUMP_H

#include "lj_obj.h"
#include "profile/live/lj_livemsg.h"

/* Begin to write texts of all live VMs into the file of the request. is_map: maps of compiled code,
** instead of the coroutines. Returns as lj_liverec_begin does.
*/
LJ_FUNC int lj_livedump_begin(const OwnFd *client, LiveRequest *rq, int is_map);

/* Go on with the dump: write the texts, and answer. */
LJ_FUNC void lj_livedump_step(void);

/* Make the text of a VM, if a client waits for it. */
LJ_FUNC void lj_livedump_serve(lua_State *L);

/* Does a client wait? */
LJ_FUNC int lj_livedump_isbusy(void);

/* Drop the dump: the VMs end, or the process is a child of fork(). */
LJ_FUNC void lj_livedump_forget(void);

#endif
