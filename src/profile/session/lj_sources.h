/*
** Parser of the option `clock`, over the table of all sources of samples.
** Context: any thread, not the handler.
**
**   list  := item (',' item)*
**   item  := name [':' modifier+] ['/' key '=' N '/']
**
** `wall` stands for `cpu` and `offcpu`. A threshold behind it belongs to `offcpu`, all else to `cpu`.
** `jit` stands for the events of the compiler but `trace-exit`.
*/

#ifndef _LJ_SOURCES_H
#define _LJ_SOURCES_H

#include "profile/event/lj_event.h"

/* Parse a list of events into specs[SPF_EVENTS_MAX]. Returns the number of specs, or 0 and
** one sentence in errmsg[EVENT_ERRMSG_MAX].
*/
LJ_FUNC int lj_sources_parse(const char *list, const EventDefaults *by, EventSpec *specs,
			     char *errmsg);

/* In a child of fork(): forget the parent's events. */
LJ_FUNC void lj_sources_forget(void);

#endif
