/*
** Table of all sources of samples, and the parser of the option `clock`.
** Context: any thread, not the handler.
*/

#define lj_sources_c
#define LUA_CORE

#include <stdio.h>
#include <string.h>

#include "profile/clock/lj_clocksource.h"
#include "profile/session/lj_sources.h"

/* The last one refuses names that no source knows. */
static const SourceOps *const sources[] = { &lj_clocksource_ops };
#define NSOURCES (sizeof(sources) / sizeof(sources[0]))

/* Returns 0, and one sentence in errmsg, if no source takes the item. */
static int item_parse(const char *item, size_t len, const EventDefaults *by,
		      EventSpec *spec, char *errmsg)
{
  EventParsed parsed = EVENT_UNKNOWN;
  size_t i;
  if (strcspn(item, ":/,") == 0) {
    snprintf(errmsg, EVENT_ERRMSG_MAX, "the list of clocks has an empty name");
    return 0;
  }
  for (i = 0; i < NSOURCES && parsed == EVENT_UNKNOWN; i++) {
    memset(spec, 0, sizeof(*spec));
    spec->ops = sources[i];
    parsed = sources[i]->parse(item, len, by, spec, errmsg);
  }
  return parsed == EVENT_PARSED;
}

int lj_sources_parse(const char *list, const EventDefaults *by, EventSpec *specs,
		     char *errmsg)
{
  const char *s = list;
  int n = 0, i;
  for (;;) {
    size_t len = strcspn(s, ",");
    if (n == SPF_EVENTS_MAX) {
      snprintf(errmsg, EVENT_ERRMSG_MAX, "the list of clocks has more than %d",
	       SPF_EVENTS_MAX);
      return 0;
    }
    if (!item_parse(s, len, by, &specs[n], errmsg)) return 0;
    for (i = 0; i < n; i++)
      if (strcmp(specs[i].name, specs[n].name) == 0) {
	snprintf(errmsg, EVENT_ERRMSG_MAX, "the list of clocks has '%s' twice",
		 specs[n].name);
	return 0;
      }
    n++;
    if (!s[len]) return n;
    s += len + 1;
  }
}

void lj_sources_forget(void)
{
  size_t i;
  for (i = 0; i < NSOURCES; i++)
    if (sources[i]->forget) sources[i]->forget();
}
