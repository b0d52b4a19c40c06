/*
** Table of all sources of samples: one line for each.
** Context: any thread (constants only).
*/

#define lj_sourcetable_c
#define LUA_CORE

#include "profile/alloc/lj_allocsource.h"
#include "profile/clock/lj_clocksource.h"
#include "profile/coroutine/lj_cosource.h"
#include "profile/jit/lj_jitsource.h"
#include "profile/session/lj_sourcetable.h"
#include "profile/wait/lj_waitsource.h"

LJ_DATADEF const SourceOps *const lj_sourcetable[] = {
  &lj_allocsource_ops,
  &lj_waitsource_ops,
  &lj_cosource_ops,
  JITSOURCES,
  &lj_clocksource_ops, /* Last: its names end with "and others". */
  NULL,
};
