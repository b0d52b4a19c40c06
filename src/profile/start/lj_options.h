/*
** Option checks of a start, and the reason why the last start failed.
** Context: any thread, outside of the handler.
*/

#ifndef _LJ_OPTIONS_H
#define _LJ_OPTIONS_H

#include "profile/sample/lj_profileopts.h"

/* Buffer for the reason why the calling thread's last start failed, EVENT_ERRMSG_MAX bytes.
** The start writes it, and leaves "" if it succeeds. A thread's first call allocates it.
*/
LJ_FUNC char *lj_options_errmsg(void);

/* Are the options of a start valid? If not, writes the reason. lj_clockspec checks the
** names of clocks.
*/
LJ_FUNC int lj_options_valid(const struct luam_Sysprof_Options *opt,
			     const SysprofCallbacks *cb);

/* Has the buffer room for so many events? If not, writes the reason. */
LJ_FUNC int lj_options_fitevents(const struct luam_Sysprof_Options *opt, int nevent);

#endif
