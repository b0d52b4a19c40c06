/*
** Facts on memory in a profile: of the process, and of compiled code.
** Context: under the lock, on any thread, outside of the handler.
*/

#ifndef _LJ_MEMFACTS_H
#define _LJ_MEMFACTS_H

#include "profile/sample/lj_sampler.h"

/* Bring the counters up to now, if the sampler has an open event of the VM. */
LJ_FUNC void lj_memfacts_look(Sampler *s);

#endif
