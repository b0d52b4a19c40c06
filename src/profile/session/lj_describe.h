/*
** Metadata of a profile: what a session writes before its first sample, and at its end.
** Context: under the lock, on any thread, outside of the handler.
*/

#ifndef _LJ_DESCRIBE_H
#define _LJ_DESCRIBE_H

#include <sys/types.h>

#include "profile/base/lj_cpuquota.h"
#include "profile/sample/lj_sampler.h"

/* Write the facts about a profile, its events, its thread, and the load map. pid: the process
** that started it. Returns 0 or the errno of a failed writer.
*/
LJ_FUNC int lj_describe_profile(Sampler *s, pid_t pid);

/* Write what is known at the end only. Holder of the sampler. */
LJ_FUNC void lj_describe_end(Sampler *s);

/* Write how often the CPU quota of the control group stopped it since some counts were read. */
LJ_FUNC void lj_describe_throttling(Sampler *s, const CpuQuota *since);

/* Write how many children the program has forked since a number of forks. */
LJ_FUNC void lj_describe_forks(Sampler *s, uint32_t since);

#endif
