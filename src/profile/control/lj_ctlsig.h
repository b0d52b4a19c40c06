/*
** Control signal: toggles a profile, and wakes a VM thread for the background thread.
** Context: install and restore: VM thread, under the lock of the slots | value: any thread |
** isblocked, trywake: background thread.
*/

#ifndef _LJ_CTLSIG_H
#define _LJ_CTLSIG_H

#include "profile/control/lj_ctltypes.h"

/* The slots. The handler reads them without a lock. */
LJ_DATA Control lj_ctlsig_slots[CONTROLS_MAX];

/* Install the handler of a signal. Returns NULL, or the reason of a failure. */
LJ_FUNC const char *lj_ctlsig_install(int signo);

/* Put the program's action back, unless a slot uses the signal. */
LJ_FUNC void lj_ctlsig_restore(int signo);

/* Value of a signal to the slot's thread. */
LJ_FUNC uintptr_t lj_ctlsig_value(const Control *c);

/* Must nobody send the slot's signal? The VM thread blocks it, and may read it by signalfd(), its
** C stack is small, or the program handles it itself. Background thread.
*/
LJ_FUNC int lj_ctlsig_isblocked(const Control *c);

/* Make the VM thread look at its pending requests, unless it blocks the signal. Background
** thread.
*/
LJ_FUNC void lj_ctlsig_trywake(const Control *c);

#endif
