/*
** Parser of the modifiers of event names: "/key=NUMBER/".
** Context: any thread.
*/

#ifndef _LJ_EVENTPARSE_H
#define _LJ_EVENTPARSE_H

#include <stddef.h>
#include <stdint.h>

#include "profile/event/lj_event.h"

/* An event that measures waits, with the modifier "/threshold=NANOSECONDS/". */
typedef struct WaitEvent {
  const char *name;
  uint64_t usual, min, max; /* Thresholds, in nanoseconds. */
  const EventField *field;  /* The one field of its samples. */
} WaitEvent;

/* Threshold of such an event. */
#define waitevent_threshold(spec) ((spec)->own.align)

/* Parse an item of the option `clock` as SourceOps.parse does. */
LJ_FUNC EventParsed lj_eventparse_wait(const char *item, size_t len, const WaitEvent *we,
				       EventSpec *spec, char *errmsg);

/* Read "/key=N/". A number above max becomes one above max. Returns 0 if it is anything else. */
LJ_FUNC int lj_eventparse_number(const char *s, size_t len, const char *key, uint64_t max,
				 uint64_t *n);

/* Does the item begin with the name of an event, and then end or have modifiers? */
LJ_FUNC int lj_eventparse_isname(const char *item, size_t len, const char *name);

#endif
