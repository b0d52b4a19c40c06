/*
** Specs of events without a source.
*/

#ifndef TEST_EVENT_H
#define TEST_EVENT_H

#include <stdio.h>
#include <string.h>

#include "profile/event/lj_event.h"

/* The result is valid until the next call. */
static inline const EventSpec *event_spec(const char *name, int unit, uint64_t period)
{
  static EventSpec spec;
  memset(&spec, 0, sizeof(spec));
  snprintf(spec.name, sizeof(spec.name), "%s", name);
  spec.unit = unit;
  spec.measures = unit == SPF_UNIT_US ? EVENT_CPU_TIME : EVENT_OCCURRENCES;
  spec.period = period;
  return &spec;
}

#endif
