/*
** Kernels that hang when a clock of perf stops itself: 6.16 and 6.17.
** Context: any thread, not the handler.
**
** PERF_EVENT_IOC_REFRESH makes a perf event stop itself in its own interrupt. For a clock that
** interrupt is a timer's. These kernels wait there for the timer's end, and the processor
** hangs. Events that no timer drives are not affected.
**
** Linux 6.17.8 and 6.18 have the mend. The version of a distribution's kernel does not tell:
** Ubuntu calls all of its builds 6.17.0. So all of 6.16 and 6.17 count, and the release
** candidates of 6.18.
*/

#ifndef _LJ_CLOCKKERNEL_H
#define _LJ_CLOCKKERNEL_H

#include "lj_def.h"

/* May this kernel hang? Reads its version once. A version that cannot be read counts. */
LJ_FUNC int lj_clockkernel_hangs(void);

/* The same for a release as of uname(2). */
LJ_FUNC int lj_clockkernel_isbad(const char *release);

#endif
