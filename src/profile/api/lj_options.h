/*
** Options of a start: whether they are possible, and why a start failed.
** Context: any thread, outside of the handler.
*/

#ifndef _LJ_OPTIONS_H
#define _LJ_OPTIONS_H

#include "profile/session/lj_profileopts.h"

/* Why the calling thread's last start failed, CLOCK_ERRMSG_MAX bytes: for the start to write,
** "" if it succeeds.
*/
LJ_FUNC char *lj_options_errmsg(void);

/* Are the options of a start possible? The names of clocks are not checked. If not, writes
** the reason.
*/
LJ_FUNC int lj_options_valid(const struct luam_Sysprof_Options *opt,
			     const SysprofCallbacks *cb);

#endif
