/*
** Names of clocks and perf events: their table, and the parser of an item.
** Context: any thread, not the handler.
*/

#define lj_clockspec_c
#define LUA_CORE

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <linux/perf_event.h>

#include "profile/clock/lj_clockspec.h"

/* Bounds of the period of a clock, in nanoseconds, and of an event. */
#define INTERVAL_NS_MIN ((uint64_t)10 * 1000)           /* 10 us. */
#define INTERVAL_NS_MAX ((uint64_t)86400 * 1000000000u) /* A day. */
#define PERIOD_MAX      ((uint64_t)1 << 62)

/* Modifiers that a name takes. */
#define MOD_USER     1 /* u */
#define MOD_KERNEL   2 /* k */
#define MOD_PRECISE  4 /* p to ppp */
#define MOD_HARDWARE (MOD_USER | MOD_KERNEL | MOD_PRECISE)

#define PRECISE_MAX    3
#define RAW_DIGITS_MAX 16

typedef struct ClockName {
  const char *name;
  const char *alias; /* Its other name in perf-list(1), or NULL. */
  ClockKind kind;
  int mods;      /* MOD_*. */
  uint32_t type; /* CLOCK_PERF only, like the rest. */
  uint64_t config;
  uint64_t period; /* Default of an event, 0 for a clock. */
} ClockName;

#define HW(e) PERF_TYPE_HARDWARE, PERF_COUNT_HW_##e
#define SW(e) PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##e

/* Context switches and migrations happen in the kernel only, so they take no modifier.
** The task clock always counts both modes: u leaves out ticks, not time.
*/
static const ClockName names[] = {
  { "cpu", NULL, CLOCK_CPU, 0, 0, 0, 0 },
  { "ctimer", NULL, CLOCK_CTIMER, 0, 0, 0, 0 },
  { "task-clock", NULL, CLOCK_PERF, MOD_USER, SW(TASK_CLOCK), 0 },
  { "itimer", NULL, CLOCK_ITIMER, 0, 0, 0, 0 },
  { "wall-signal", NULL, CLOCK_WALL_SIGNAL, 0, 0, 0, 0 },
  { "cycles", "cpu-cycles", CLOCK_PERF, MOD_HARDWARE, HW(CPU_CYCLES), 2400000 },
  { "instructions", NULL, CLOCK_PERF, MOD_HARDWARE, HW(INSTRUCTIONS), 2400000 },
  { "cache-references", NULL, CLOCK_PERF, MOD_HARDWARE, HW(CACHE_REFERENCES), 100000 },
  { "cache-misses", NULL, CLOCK_PERF, MOD_HARDWARE, HW(CACHE_MISSES), 10000 },
  { "branch-instructions", "branches", CLOCK_PERF, MOD_HARDWARE, HW(BRANCH_INSTRUCTIONS),
    500000 },
  { "branch-misses", NULL, CLOCK_PERF, MOD_HARDWARE, HW(BRANCH_MISSES), 10000 },
  { "page-faults", "faults", CLOCK_PERF, MOD_USER | MOD_KERNEL, SW(PAGE_FAULTS), 100 },
  { "minor-faults", NULL, CLOCK_PERF, MOD_USER | MOD_KERNEL, SW(PAGE_FAULTS_MIN), 100 },
  { "major-faults", NULL, CLOCK_PERF, MOD_USER | MOD_KERNEL, SW(PAGE_FAULTS_MAJ), 1 },
  { "context-switches", "cs", CLOCK_PERF, 0, SW(CONTEXT_SWITCHES), 10 },
  { "cpu-migrations", "migrations", CLOCK_PERF, 0, SW(CPU_MIGRATIONS), 1 },
  { "alignment-faults", NULL, CLOCK_PERF, MOD_USER | MOD_KERNEL, SW(ALIGNMENT_FAULTS), 100 }
};
#define NNAMES (sizeof(names) / sizeof(names[0]))

/* rHEX: an event of the processor, by its code in the manual. */
static const ClockName raw_event = { "rHEX",        NULL, CLOCK_PERF, MOD_HARDWARE,
				     PERF_TYPE_RAW, 0,    1000000 };

static int fail(char *errmsg, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  vsnprintf(errmsg, EVENT_ERRMSG_MAX, format, args);
  va_end(args);
  return 0;
}

static int is_named(const char *s, size_t len, const char *name)
{
  return name && strlen(name) == len && memcmp(s, name, len) == 0;
}

/* Parse a number in base 10 or 16. Returns 0 if the text holds anything else. */
static int number_parse(const char *s, size_t len, int base, uint64_t *n)
{
  size_t i;
  *n = 0;
  for (i = 0; i < len; i++) {
    int c = s[i] | 0x20; /* Lower case; digits have this bit already. */
    uint64_t digit = c >= '0' && c <= '9'   ? (uint64_t)(c - '0')
		     : c >= 'a' && c <= 'f' ? (uint64_t)(c - 'a' + 10)
					    : 16;
    if (s[i] < '0' || digit >= (uint64_t)base ||
	*n > (~(uint64_t)0 - digit) / (uint64_t)base)
      return 0;
    *n = *n * (uint64_t)base + digit;
  }
  return len > 0;
}

static int name_find(const char *s, size_t len, ClockSpec *spec, ClockName *found)
{
  size_t i;
  *found = raw_event;
  if (len > 1 && len <= 1 + RAW_DIGITS_MAX && s[0] == 'r' &&
      number_parse(s + 1, len - 1, 16, &spec->config))
    return 1;
  for (i = 0; i < NNAMES; i++) {
    if (is_named(s, len, names[i].name) || is_named(s, len, names[i].alias)) {
      *found = names[i];
      spec->config = names[i].config;
      return 1;
    }
  }
  return 0;
}

/* Modifiers, such as up in cycles:up. */
static int mods_parse(const char *s, size_t len, const ClockName *n, ClockSpec *spec,
		      char *errmsg)
{
  int user = 0, kernel = 0;
  size_t i;
  if (len == 0)
    return fail(errmsg, "'%s:' lacks a modifier after the colon: u, k or p", n->name);
  for (i = 0; i < len; i++) {
    int mod = s[i] == 'u'   ? MOD_USER
	      : s[i] == 'k' ? MOD_KERNEL
	      : s[i] == 'p' ? MOD_PRECISE
			    : 0;
    if (!mod)
      return fail(errmsg, "'%s' has the unknown modifier '%c'; choose u, k, or p to ppp",
		  n->name, s[i] >= ' ' && s[i] <= '~' ? s[i] : '?');
    if (!(n->mods & mod))
      return fail(errmsg, "'%s' has no modifier '%c': %s", n->name, s[i],
		  mod == MOD_PRECISE ? "only hardware events have precise addresses"
		  : n->period == 0   ? "it counts the time in the program and in the kernel"
				     : "it happens in the kernel only");
    if (mod == MOD_USER) user = 1;
    else if (mod == MOD_KERNEL) kernel = 1;
    else if (spec->precise++ == PRECISE_MAX)
      return fail(errmsg, "'%s' has more than three modifiers 'p'", n->name);
  }
  if (user != kernel) {
    spec->exclude_kernel = (uint8_t)user;
    spec->exclude_user = (uint8_t)kernel;
  }
  return 1;
}

/* The period in slashes, such as /period=1/ in page-faults/period=1/. */
static int period_parse(const char *s, size_t len, const ClockName *n, ClockSpec *spec,
			char *errmsg)
{
  static const char key[] = "period=";
  size_t klen = sizeof(key) - 1;
  if (len < klen + 2 || s[len - 1] != '/' || memcmp(s + 1, key, klen) != 0 ||
      !number_parse(s + 1 + klen, len - klen - 2, 10, &spec->period) || spec->period == 0 ||
      spec->period > PERIOD_MAX)
    return fail(errmsg, "'%s' is followed by '%.*s'; expected /period=N/ with N above 0",
		n->name, (int)(len < 32 ? len : 32), s);
  return 1;
}

/* The name that is shown: without alias and period. */
static void name_write(const ClockName *n, const char *s, size_t len, ClockSpec *spec)
{
  const char *u = spec->exclude_kernel ? "u" : "", *k = spec->exclude_user ? "k" : "";
  if (n->type == PERF_TYPE_RAW) snprintf(spec->name, EVENT_NAME_MAX, "%.*s", (int)len, s);
  else snprintf(spec->name, EVENT_NAME_MAX, "%s", n->name);
  if (*u || *k || spec->precise) {
    size_t at = strlen(spec->name);
    snprintf(spec->name + at, EVENT_NAME_MAX - at, ":%s%s%.*s", u, k, (int)spec->precise,
	     "ppp");
  }
}

/* The period: of the item, or the one that all items share. */
static int period_set(const char *s, size_t len, const ClockName *n,
		      const EventDefaults *by, ClockSpec *spec, char *errmsg)
{
  int is_clock = (n->period == 0);
  if (len > 0) {
    if (!period_parse(s, len, n, spec, errmsg)) return 0;
  } else if (is_clock) {
    spec->period = by->interval_ns;
    spec->prefer_tick = by->prefer_tick != 0;
  } else {
    spec->period = by->period ? by->period : n->period;
  }
  if (spec->period > PERIOD_MAX)
    return fail(errmsg, "the period of '%s' is too long", n->name);
  if (spec->type == PERF_TYPE_SOFTWARE && spec->period == 1 &&
      spec->config == PERF_COUNT_SW_CONTEXT_SWITCHES)
    return fail(errmsg,
		"the period of '%s' is 1; it must be 2 or more, because a sample "
		"of a call that sleeps causes another switch",
		n->name);
  if (is_clock && (spec->period < INTERVAL_NS_MIN || spec->period > INTERVAL_NS_MAX))
    return fail(errmsg,
		"the interval of clock '%s' is %llu ns; it must be between "
		"10 us and a day",
		n->name, (unsigned long long)spec->period);
  return 1;
}

EventParsed lj_clockspec_parse(const char *item, size_t len, const EventDefaults *by,
			       ClockSpec *spec, char *errmsg)
{
  const char *colon = memchr(item, ':', len), *slash = memchr(item, '/', len);
  const char *end = item + len, *mods_end = slash ? slash : end;
  const char *name_end = colon && colon < mods_end ? colon : mods_end;
  ClockName n;
  memset(spec, 0, sizeof(*spec));
  if (!name_find(item, (size_t)(name_end - item), spec, &n)) return EVENT_UNKNOWN;
  spec->kind = n.kind;
  spec->type = n.type;
  spec->unit = n.period ? SPF_UNIT_COUNT : SPF_UNIT_US;
  spec->in_kernel = (n.period && n.mods == 0);
  spec->jitter = by->jitter != 0;
  if (name_end < mods_end &&
      !mods_parse(name_end + 1, (size_t)(mods_end - name_end - 1), &n, spec, errmsg))
    return EVENT_REFUSED;
  if (!period_set(mods_end, (size_t)(end - mods_end), &n, by, spec, errmsg))
    return EVENT_REFUSED;
  name_write(&n, item, (size_t)(name_end - item), spec);
  return EVENT_PARSED;
}
