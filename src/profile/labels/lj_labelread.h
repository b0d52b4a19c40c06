/*
** Copies of sets of labels, for samples.
** Context: handler, any thread that keeps the VM from being closed. Async-signal-safe.
**
** A handler reads the number of the coroutine that it interrupts. The set stays while the coroutine
** has it. Another thread that reads may get a set that is about to change. Then the set's id differs
** afterwards.
*/

#ifndef _LJ_LABELREAD_H
#define _LJ_LABELREAD_H

#include <stddef.h>
#include <string.h>

#include "profile/labels/lj_labels.h"

/* A copy of a set. */
typedef struct LabelCopy {
  uint32_t id, len; /* id 0: none. */
  uint8_t payload[LABELS_BYTES];
} LabelCopy;

/* Copy the set with a number, 0: none. Returns 0 without one, or if it was about to change. */
LJ_FUNC int lj_labelread_copy(const global_State *g, uint32_t number, LabelCopy *to);

/* Copy a copy. */
static LJ_AINLINE void labelcopy_set(LabelCopy *to, const LabelCopy *from)
{
  memcpy(to, from, offsetof(LabelCopy, payload) + (from->id ? from->len : 0));
}

#endif
