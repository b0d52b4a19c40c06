/*
** Throttling by the CPU quota of the process's control group: reads cpu.stat.
** Context: under the lock, on any thread, outside of the handler.
*/

#define lj_cpuquota_c
#define LUA_CORE

#include <string.h>

#include "profile/base/lj_cgroup.h"
#include "profile/base/lj_cpuquota.h"

/* Read the counts of a group. The kernel counts periods only while there is a quota. Returns 0
** without one.
*/
static int group_read(void *ctx, const char *folder)
{
  CpuQuota *cq = (CpuQuota *)ctx;
  const char *text = lj_cgroup_read(folder, "cpu.stat");
  if (!text || lj_cgroup_number(text, "nr_periods") == 0) return 0;
  cq->throttled = lj_cgroup_number(text, "nr_throttled");
  cq->throttled_ns = lj_cgroup_number(text, "throttled_time") + /* Version 1. */
		     lj_cgroup_number(text, "throttled_usec") * 1000;
  return 1;
}

void lj_cpuquota_read(CpuQuota *cq)
{
  memset(cq, 0, sizeof(*cq));
  lj_cgroup_each("cpu", group_read, cq);
}
