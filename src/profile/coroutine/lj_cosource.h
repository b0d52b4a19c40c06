/*
** Waits of coroutines as a source of samples: the event `coroutine-wait`.
** Context: as SourceOps says.
*/

#ifndef _LJ_COSOURCE_H
#define _LJ_COSOURCE_H

#include "profile/event/lj_event.h"

LJ_DATA const SourceOps lj_cosource_ops;

#endif
