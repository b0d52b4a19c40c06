/*
** Control file: its first word starts, stops or dumps a profile.
** Context: background thread, under the lock of the slots; begin: VM thread.
*/

#ifndef _LJ_CTLFILE_H
#define _LJ_CTLFILE_H

#include "profile/control/lj_ctltypes.h"

/* Remember the state of the slot's control file. Returns what is wrong with the file, or
** NULL if nothing is wrong or there is none.
*/
LJ_FUNC const char *lj_ctlfile_begin(Control *c);

/* Obey the file if it has changed, and wake the VM's thread again if it does not serve
** what is pending.
*/
LJ_FUNC void lj_ctlfile_poll(Control *c);

#endif
