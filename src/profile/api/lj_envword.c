/*
** Words of LUAJIT_SYSPROF that stand without the name of an option.
** Context: VM thread, outside of the handler.
*/

#define lj_envword_c
#define LUA_CORE

#include <string.h>

#include "lj_obj.h"
#include "profile/api/lj_envword.h"
#include "profile/start/lj_opttext.h"
#include "profile/base/lj_words.h"
#include "profile/session/lj_sources.h"

#define ANY_INTERVAL_NS 1000000000 /* One that each clock takes. */

#define SWITCHES 8 /* Words for off and on, in turn. */

static const char *const words[] = { "off",  "on", "0",   "1",          "false",
				     "true", "no", "yes", ENVWORD_LIVE, NULL };

int lj_envword_switch(const char *s, size_t len)
{
  int i;
  for (i = 0; i < SWITCHES; i++)
    if (strlen(words[i]) == len && strncasecmp(words[i], s, len) == 0) return i & 1;
  return -1;
}

const char *lj_envword_meant(const char *s, size_t len)
{
  const char *const *w, *nearest = NULL;
  int most = 0;
  for (w = words; *w; w++) {
    int fit = lj_words_fit(s, len, *w);
    if (fit == 1 && len > strlen(*w)) fit = 0; /* Many words begin like "on" or "no". */
    if (fit > most) {
      nearest = *w;
      most = fit;
    }
  }
  return nearest;
}

/* Is it the name of a clock or event? */
static int word_isclock(const char *s)
{
  EventSpec specs[2]; /* wall is two. */
  char errmsg[EVENT_ERRMSG_MAX];
  EventDefaults by;
  memset(&by, 0, sizeof(by));
  by.interval_ns = ANY_INTERVAL_NS;
  return !strchr(s, ',') && lj_sources_parse(s, &by, specs, errmsg) > 0;
}

const char *lj_envword_option(const char *s)
{
  const OptionSpec *o;
  if (s[strspn(s, "0123456789")] == '\0') return "hz";
  if (word_isclock(s)) return "clock";
  if (strpbrk(s, "./")) return "path";
  for (o = lj_opttable; o->name; o++)
    if (o->kind == OPTION_CHOICE && lj_opttext_choice(o, s) >= 0) return o->name;
  return NULL;
}
