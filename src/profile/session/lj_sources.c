/*
** Parser of the option `clock`, over the table of all sources of samples.
** Context: any thread, not the handler.
*/

#define lj_sources_c
#define LUA_CORE

#include <stdio.h>
#include <string.h>

#include "profile/session/lj_sources.h"
#include "profile/session/lj_sourcetable.h"

#define NAME_SHOWN 32 /* Bytes of an unknown name that a message shows. */

/* Write that no source knows a name, and what they know. */
static void say_unknown(const char *name, size_t len, char *errmsg)
{
  size_t at = (size_t)snprintf(errmsg, EVENT_ERRMSG_MAX,
			       "'%.*s' is not a clock or event; choose ",
			       (int)(len < NAME_SHOWN ? len : NAME_SHOWN), name);
  int i;
  for (i = 0; lj_sourcetable[i] && at < EVENT_ERRMSG_MAX; i++)
    at += (size_t)snprintf(errmsg + at, EVENT_ERRMSG_MAX - at, "%s%s", i ? ", " : "",
			   lj_sourcetable[i]->names);
}

/* Returns 0, and one sentence in errmsg, if no source takes the item. */
static int item_parse(const char *item, size_t len, const EventDefaults *by,
		      EventSpec *spec, char *errmsg)
{
  EventParsed parsed = EVENT_UNKNOWN;
  int i;
  if (strcspn(item, ":/,") == 0) {
    snprintf(errmsg, EVENT_ERRMSG_MAX, "the list of clocks has an empty name");
    return 0;
  }
  for (i = 0; lj_sourcetable[i] && parsed == EVENT_UNKNOWN; i++) {
    memset(spec, 0, sizeof(*spec));
    spec->ops = lj_sourcetable[i];
    parsed = spec->ops->parse(item, len, by, spec, errmsg);
  }
  if (parsed == EVENT_UNKNOWN) say_unknown(item, strcspn(item, ":/,"), errmsg);
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
  int i;
  for (i = 0; lj_sourcetable[i]; i++)
    if (lj_sourcetable[i]->forget) lj_sourcetable[i]->forget();
}
