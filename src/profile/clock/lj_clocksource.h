/*
** Clocks as a source of samples: SourceOps of all clocks and perf events.
** Context: as SourceOps says.
*/

#ifndef _LJ_CLOCKSOURCE_H
#define _LJ_CLOCKSOURCE_H

#include "profile/event/lj_event.h"

LJ_DATA const SourceOps lj_clocksource_ops;

#endif
