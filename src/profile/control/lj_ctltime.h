/*
** Control by time: starts a profile after a delay, and completes one that is over.
** Context: background thread, under the lock of the slots | end: any thread, the same.
**
** A request waits until the VM thread runs Lua code. No signal may cut a wait of that thread
** short, so a timer of its CPU time wakes it: it ticks only while the thread runs.
*/

#ifndef _LJ_CTLTIME_H
#define _LJ_CTLTIME_H

#include "profile/control/lj_ctltypes.h"

/* Ask for the start if it is due. Wake the VM thread while it has not served a request. */
LJ_FUNC void lj_ctltime_poll(Control *c);

/* Delete the timer. */
LJ_FUNC void lj_ctltime_end(Control *c);

#endif
