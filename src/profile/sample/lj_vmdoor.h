/*
** Door of a VM: its sources' way from code of the VM to the running profile.
** Context: ordinary code of the thread that runs the VM.
*/

#ifndef _LJ_VMDOOR_H
#define _LJ_VMDOOR_H

#include "profile/vm/lj_vmgate.h"

/* Set up the door of a gate. Under the lock, before the gate runs. */
LJ_FUNC void lj_vmdoor_init(VmGate *gate);

#endif
