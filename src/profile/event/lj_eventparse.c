/*
** Parser of the modifiers of event names.
** Context: any thread.
*/

#define lj_eventparse_c
#define LUA_CORE

#include <stdio.h>
#include <string.h>

#include "profile/event/lj_eventparse.h"

int lj_eventparse_number(const char *s, size_t len, const char *key, uint64_t max,
			 uint64_t *n)
{
  size_t klen = strlen(key), i = klen + 2;
  *n = 0;
  if (len < klen + 4 || s[0] != '/' || memcmp(s + 1, key, klen) != 0 ||
      s[klen + 1] != '=' || s[len - 1] != '/')
    return 0;
  for (; i < len - 1; i++) {
    if (s[i] < '0' || s[i] > '9') return 0;
    if (*n <= max) *n = *n * 10 + (uint64_t)(s[i] - '0');
  }
  if (*n > max) *n = max + 1;
  return 1;
}

int lj_eventparse_isname(const char *item, size_t len, const char *name)
{
  size_t nlen = strlen(name);
  return len >= nlen && memcmp(item, name, nlen) == 0 &&
	 (len == nlen || item[nlen] == '/' || item[nlen] == ':');
}

#define GIVEN_MAX 32 /* Bytes of a wrong modifier in a message. */

EventParsed lj_eventparse_wait(const char *item, size_t len, const WaitEvent *we,
			       EventSpec *spec, char *errmsg)
{
  uint64_t *ns = &waitevent_threshold(spec);
  size_t nlen = strlen(we->name);
  int given = (int)(len - nlen < GIVEN_MAX ? len - nlen : GIVEN_MAX);
  if (!lj_eventparse_isname(item, len, we->name)) return EVENT_UNKNOWN;
  *ns = we->usual;
  if (len > nlen &&
      !lj_eventparse_number(item + nlen, len - nlen, "threshold", we->max, ns)) {
    snprintf(errmsg, EVENT_ERRMSG_MAX,
	     "'%s' is followed by '%.*s'; expected /threshold=NANOSECONDS/, such as "
	     "%s/threshold=%llu/",
	     we->name, given, item + nlen, we->name, (unsigned long long)we->usual);
    return EVENT_REFUSED;
  }
  if (*ns < we->min || *ns > we->max) {
    snprintf(
      errmsg, EVENT_ERRMSG_MAX,
      "the threshold of '%s' is '%.*s'; it must be between %llu and %llu nanoseconds",
      we->name, given, item + nlen, (unsigned long long)we->min,
      (unsigned long long)we->max);
    return EVENT_REFUSED;
  }
  snprintf(spec->name, sizeof(spec->name), "%s", we->name);
  spec->measures = EVENT_REAL_TIME;
  spec->unit = SPF_UNIT_NS;
  spec->has_weights = 1;
  spec->nfield = 1;
  spec->field = we->field;
  return EVENT_PARSED;
}
