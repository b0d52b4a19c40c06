/*
** Events of the compiler as sources of samples: `trace-abort` and others.
** Context: as SourceOps says | samples: ordinary code of the VM's thread.
*/

#ifndef _LJ_JITSOURCE_H
#define _LJ_JITSOURCE_H

#include "profile/event/lj_event.h"

#define JIT_PERIOD     1000 /* Default, of exits. */
#define JIT_PERIOD_MAX ((uint64_t)1 << 40)

/* One for each JitKind. */
LJ_DATA const SourceOps lj_jitsource_ops[];

/* All of them, for a list of sources. */
#define JITSOURCES \
  &lj_jitsource_ops[0], &lj_jitsource_ops[1], &lj_jitsource_ops[2], &lj_jitsource_ops[3], \
    &lj_jitsource_ops[4]

#endif
