/*
** Allocations as a source of samples: the event `alloc`.
** Context: as SourceOps says.
**
** It samples the allocations of one VM, gross: a block that is resized counts as a new one. A
** sample has the weight in bytes, and the fields `objects` (blocks) and `type`. Its block is a
** thing of the stream, `live`, with its size and the cycle of its birth: its end is reported.
*/

#ifndef _LJ_ALLOCSOURCE_H
#define _LJ_ALLOCSOURCE_H

#include "profile/event/lj_event.h"

#define ALLOC_PERIOD     ((uint64_t)512 << 10) /* Default, in bytes. */
#define ALLOC_PERIOD_MAX ((uint64_t)1 << 40)

LJ_DATA const SourceOps lj_allocsource_ops;

#endif
