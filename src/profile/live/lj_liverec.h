/*
** Recording that a client of live control makes: one at a time in a process.
** Context: background thread, under the lock | serve: VM thread, under the lock.
**
** The background thread starts the profiles from outside, wherever a VM's thread is. Events of the VM
** itself, such as alloc, begin at its next safe point. The stream goes into the client's file.
** After the end, the VM has the time of the request's option finish to complete its names. A VM that
** sleeps or stays in compiled code lacks them in any case.
*/

#ifndef _LJ_LIVEREC_H
#define _LJ_LIVEREC_H

#include "lj_obj.h"
#include "profile/live/lj_livemsg.h"

/* Begin a recording of all live VMs. Returns 1 if it has taken over the client and the file of the
** request, else it has refused the request.
*/
LJ_FUNC int lj_liverec_begin(const OwnFd *client, LiveRequest *rq);

/* Go on with the recording: answer, end it, complete its file. */
LJ_FUNC void lj_liverec_step(void);

/* Start what waits for a VM's safe point. */
LJ_FUNC void lj_liverec_serve(lua_State *L);

/* End the recording. Returns the number of VMs that it ends for. */
LJ_FUNC int lj_liverec_stop(void);

/* Send the last answer now. All profiles have ended. */
LJ_FUNC void lj_liverec_finish(void);

/* VMs that are recorded. */
LJ_FUNC int lj_liverec_runs(void);

/* Have all samples of the recording ended, but not its file? That takes a second or two at most. */
LJ_FUNC int lj_liverec_isending(void);

/* Is there a recording, or its last answer to come? */
LJ_FUNC int lj_liverec_isbusy(void);

/* In a child of fork(): forget the recording of the parent. */
LJ_FUNC void lj_liverec_forget(void);

#endif
