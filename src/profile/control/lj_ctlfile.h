/*
** Control file: its first word starts, stops or dumps a profile.
** Context: background thread, under the lock of the slots | begin: VM thread.
*/

#ifndef _LJ_CTLFILE_H
#define _LJ_CTLFILE_H

#include "profile/control/lj_ctltypes.h"

/* Record the state of the slot's control file. Returns NULL if the file is valid or does
** not exist, else the reason for a refusal.
*/
LJ_FUNC const char *lj_ctlfile_begin(Control *c);

/* Obey the file if it has changed. Wake the VM thread again while it has not served a
** pending request.
*/
LJ_FUNC void lj_ctlfile_poll(Control *c);

#endif
