/*
** Parser of the option `clock`, over the table of all sources of samples.
** Context: any thread, not the handler.
*/

#define lj_sources_c
#define LUA_CORE

#include <stdio.h>
#include <string.h>

#include "profile/base/lj_words.h"
#include "profile/session/lj_sources.h"
#include "profile/session/lj_sourcetable.h"

#define NAME_SHOWN 32 /* Bytes of an unknown name that a message shows. */

/* Real time: CPU time and waits. Each part belongs to a source. */
#define SUM_NAME "wall"
static const char sum_name[] = SUM_NAME;

#define SUM_MODS_MAX 64 /* Bytes of its modifiers. */
#define SUM_PART_MAX (SUM_MODS_MAX + 16)

/* All events of the compiler but exits, which may be very many. */
#define JIT_NAME "jit"
static const char *const jit_parts[] = { "trace-abort", "trace-blacklist", "trace-flush",
					 "trace-stop" };

/* Names that a wrong one may mean. */
static const struct {
  const char *name;
  const char *also; /* Other words for it, with spaces between. */
} meant[] = {
  { SUM_NAME, "wallclock wall-clock wall-time real realtime real-time" },
  { "cpu", "oncpu on-cpu cputime" },
  { "offcpu", "off wait waits block blocked sleep" },
  { "alloc", "mem memory heap malloc" },
  { "coroutine-wait", "coroutines yield yields" },
  { JIT_NAME, "compiler trace traces" },
  { "trace-abort", "abort aborts nyi" },
  { "trace-exit", "exit exits" },
  { "task-clock", "" },
  { "wall-signal", "" },
};

/* Return the name that a wrong one probably means, or NULL. */
static const char *name_meant(const char *name, size_t len)
{
  const char *nearest = NULL;
  int i, most = 0;
  for (i = 0; i < (int)(sizeof(meant) / sizeof(meant[0])); i++) {
    int fit = lj_words_fit(name, len, meant[i].name);
    if (lj_words_isin(name, len, meant[i].also)) return meant[i].name;
    if (fit > most) {
      nearest = meant[i].name;
      most = fit;
    }
  }
  return nearest;
}

/* Write that no source knows a name, which one it may mean, and what they know. */
static void say_unknown(const char *name, size_t len, char *errmsg)
{
  const char *nearest = name_meant(name, len);
  size_t at = (size_t)snprintf(
    errmsg, EVENT_ERRMSG_MAX,
    "'%.*s' is not a clock or event%s%s%s; choose " SUM_NAME ", " JIT_NAME ", ",
    (int)(len < NAME_SHOWN ? len : NAME_SHOWN), name, nearest ? " (did you mean '" : "",
    nearest ? nearest : "", nearest ? "'?)" : "");
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

/* Specs of a list of items. */
typedef struct SpecList {
  const EventDefaults *by;
  EventSpec *specs;
  int n;
  char *errmsg;
} SpecList;

/* Do two specs sample the same event in the same way? */
static int spec_isequal(const EventSpec *a, const EventSpec *b)
{
  return a->ops == b->ops && a->period == b->period &&
	 memcmp(&a->own, &b->own, sizeof(a->own)) == 0;
}

/* Append the spec of an item. An equal one stands for both. sum: see EventSpec. Returns 0, and one
** sentence in errmsg, if it is wrong.
*/
static int list_add(SpecList *to, const char *item, size_t len, const char *sum)
{
  EventSpec *spec = &to->specs[to->n];
  int i;
  if (to->n == SPF_EVENTS_MAX) {
    snprintf(to->errmsg, EVENT_ERRMSG_MAX, "the list of clocks has more than %d",
	     SPF_EVENTS_MAX);
    return 0;
  }
  if (!item_parse(item, len, to->by, spec, to->errmsg)) return 0;
  spec->sum = sum;
  for (i = 0; i < to->n; i++) {
    EventSpec *other = &to->specs[i];
    if (strcmp(other->name, spec->name) != 0) continue;
    if (spec_isequal(other, spec)) {
      if (sum) other->sum = sum;
      return 1;
    }
    snprintf(to->errmsg, EVENT_ERRMSG_MAX,
	     "the list of clocks has '%s' twice, with different modifiers%s", spec->name,
	     sum || other->sum ? ": '" SUM_NAME "' is 'cpu' and 'offcpu'" : "");
    return 0;
  }
  to->n++;
  return 1;
}

/* Append both parts of the sum. mods: modifiers behind its name. */
static int list_addsum(SpecList *to, const char *mods, size_t len)
{
  static const char threshold[] = "/threshold=";
  char cpu[SUM_PART_MAX], offcpu[SUM_PART_MAX];
  int of_offcpu = len > sizeof(threshold) - 1 &&
		  memcmp(mods, threshold, sizeof(threshold) - 1) == 0;
  if (len > SUM_MODS_MAX) len = SUM_MODS_MAX; /* No valid one is as long. */
  snprintf(cpu, sizeof(cpu), "cpu%.*s", of_offcpu ? 0 : (int)len, mods);
  snprintf(offcpu, sizeof(offcpu), "offcpu%.*s", of_offcpu ? (int)len : 0, mods);
  return list_add(to, cpu, strlen(cpu), sum_name) &&
	 list_add(to, offcpu, strlen(offcpu), sum_name);
}

/* Append the events of the compiler. mods: modifiers behind the name. */
static int list_addjit(SpecList *to, const char *mods, size_t len)
{
  size_t i;
  int ok = 1;
  if (len > 0) {
    snprintf(to->errmsg, EVENT_ERRMSG_MAX,
	     "'" JIT_NAME "' is followed by '%.*s'; expected nothing",
	     (int)(len < NAME_SHOWN ? len : NAME_SHOWN), mods);
    return 0;
  }
  for (i = 0; ok && i < sizeof(jit_parts) / sizeof(jit_parts[0]); i++)
    ok = list_add(to, jit_parts[i], strlen(jit_parts[i]), NULL);
  return ok;
}

int lj_sources_parse(const char *list, const EventDefaults *by, EventSpec *specs,
		     char *errmsg)
{
  SpecList to = { by, specs, 0, errmsg };
  const char *s = list;
  for (;;) {
    size_t len = strcspn(s, ","), nlen = strcspn(s, ":/,");
    if (nlen == sizeof(sum_name) - 1 && memcmp(s, sum_name, nlen) == 0) {
      if (!list_addsum(&to, s + nlen, len - nlen)) return 0;
    } else if (nlen == sizeof(JIT_NAME) - 1 && memcmp(s, JIT_NAME, nlen) == 0) {
      if (!list_addjit(&to, s + nlen, len - nlen)) return 0;
    } else if (!list_add(&to, s, len, NULL)) {
      return 0;
    }
    if (!s[len]) return to.n;
    s += len + 1;
  }
}

void lj_sources_forget(void)
{
  int i;
  for (i = 0; lj_sourcetable[i]; i++)
    if (lj_sourcetable[i]->forget) lj_sourcetable[i]->forget();
}
