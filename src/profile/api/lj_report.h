/*
** Report of a profile: counters, and what it says about itself.
** Context: any thread, outside of the handler. Takes the lock.
*/

#ifndef _LJ_REPORT_H
#define _LJ_REPORT_H

#include "lj_obj.h"
#include "lmisclib.h"

/* Counters of the profile of a VM, or of the one that was started last if g is NULL;
** running or stopped.
*/
LJ_FUNC void lj_report_counters(global_State *g, struct luam_Sysprof_Counters *c);

/* What that profile says about itself. */
LJ_FUNC void lj_report_self(global_State *g, struct luam_Sysprof_SelfReport *r);

#endif
