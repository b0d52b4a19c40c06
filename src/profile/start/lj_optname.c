/*
** Names of options: search, list, and the one that a user probably meant.
** Context: any thread, outside of the handler.
*/

#define lj_optname_c
#define LUA_CORE

#include <stdio.h>
#include <string.h>

#include "lj_obj.h"
#include "profile/start/lj_optname.h"
#include "profile/base/lj_words.h"

/* May users give the option in one of these places? */
static int is_listed(const OptionSpec *o, int where)
{
  return (o->where & where) && !(o->where & OPTION_HIDDEN);
}

const OptionSpec *lj_optname_find(const char *s, size_t len, int where)
{
  const OptionSpec *o;
  for (o = lj_opttable; o->name; o++)
    if ((o->where & where) && strlen(o->name) == len && memcmp(o->name, s, len) == 0)
      return o;
  return NULL;
}

/* -- API --------------------------------------------------------------------- */

const OptionSpec *lj_optname_meant(const char *s, size_t len, int where)
{
  const OptionSpec *o, *nearest = NULL;
  int most = 0;
  for (o = lj_opttable; o->name; o++) {
    int fit;
    if (!is_listed(o, where)) continue;
    if (lj_words_isin(s, len, o->also)) return o;
    fit = lj_words_fit(s, len, o->name);
    if (fit > most) {
      nearest = o;
      most = fit;
    }
  }
  return nearest;
}

size_t lj_optname_list(char *to, size_t size, int where)
{
  const OptionSpec *o;
  size_t at = 0;
  for (o = lj_opttable; o->name && at < size; o++)
    if (is_listed(o, where))
      at += (size_t)snprintf(to + at, size - at, "%s%s", at ? ", " : "", o->name);
  return at < size - 1 ? at : size - 1;
}
