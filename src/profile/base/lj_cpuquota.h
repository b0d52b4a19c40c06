/*
** Throttling by the CPU quota of the process's control group, see cgroups(7).
** Context: under the lock, on any thread, outside of the handler.
*/

#ifndef _LJ_CPUQUOTA_H
#define _LJ_CPUQUOTA_H

#include "lj_def.h"

typedef struct CpuQuota {
  uint64_t throttled;    /* Periods in which the group had used up its quota. */
  uint64_t throttled_ns; /* Time that its processors were kept from it, added up. */
} CpuQuota;

/* Read what the nearest group with a quota has counted since it was made: of version 1 or 2 of the
** control groups, under /sys/fs/cgroup. Both are 0 if there is none, or if it cannot be read. May
** change errno.
*/
LJ_FUNC void lj_cpuquota_read(CpuQuota *cq);

#endif
