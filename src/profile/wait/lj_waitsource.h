/*
** Off-CPU time as a source of samples: the event `offcpu`, with exact durations.
** Context: any thread (constants only).
**
** No signal and no timer reaches the program's threads. The background thread reads records of
** context switches, and where a thread sleeps.
*/

#ifndef _LJ_WAITSOURCE_H
#define _LJ_WAITSOURCE_H

#include "profile/event/lj_event.h"

LJ_DATA const SourceOps lj_waitsource_ops;

#endif
