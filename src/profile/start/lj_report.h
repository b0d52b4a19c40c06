/*
** Self-report of a profile: counters, rates, costs.
** Context: any thread, outside of the handler. Takes the lock.
*/

#ifndef _LJ_REPORT_H
#define _LJ_REPORT_H

#include "lj_obj.h"
#include "lmisclib.h"

/* Copy the counters of a VM's profile. If g is NULL, take the profile that was started
** last. The profile may run or have stopped.
*/
LJ_FUNC void lj_report_counters(global_State *g, struct luam_Sysprof_Counters *c);

/* Fill in the self-report of the same profile. */
LJ_FUNC void lj_report_self(global_State *g, struct luam_Sysprof_SelfReport *r);

/* Fill in what a start should tell its user, at most REPORT_HINTS_MAX. Returns the number. */
typedef struct ReportHint {
  const char *fact, *so;
} ReportHint;
#define REPORT_HINTS_MAX 2
LJ_FUNC int lj_report_hints(global_State *g, ReportHint *hint);

#endif
