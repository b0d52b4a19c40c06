/*
** Parser of the modifiers of event names.
** Context: any thread.
*/

#define lj_eventparse_c
#define LUA_CORE

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
