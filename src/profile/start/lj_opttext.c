/*
** Values of options: numbers and texts into fields, ranges, and words for what is expected.
** Context: any thread, outside of the handler.
**
** sysprof.base.optiontable has the same rules, in Lua, for the commands.
*/

#define lj_opttext_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For sigabbrev_np(). */
#endif
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lj_obj.h"
#include "profile/start/lj_optname.h"
#include "profile/start/lj_opttext.h"

#define WHOLE_MAX    9007199254740992.0 /* 2^53: larger numbers are not exact. */
#define EXPONENT_MAX 400 /* Each number with a larger one is 0 or infinite. */
#define UNIT_MAX     16  /* Bytes of a unit, with its NUL. */

/* -- Numbers ----------------------------------------------------------------- */

static int is_digit(char c)
{
  return c >= '0' && c <= '9';
}

static double power_of_ten(int n)
{
  double power = 1;
  for (; n > 0; n--) power *= 10;
  return power;
}

/* Read a decimal number: digits, a point, an exponent. Returns what follows, or NULL if there is
** none. strtod(3) would read other numbers in other locales.
*/
static const char *read_decimal(const char *s, double *n)
{
  int digits = 0, exponent = 0, more = 0, sign = 1;
  for (*n = 0; is_digit(*s); s++, digits++) *n = *n * 10 + (*s - '0');
  if (*s == '.')
    for (s++; is_digit(*s); s++, digits++) {
      if (exponent <= -EXPONENT_MAX) continue;
      *n = *n * 10 + (*s - '0');
      exponent--;
    }
  if (!digits) return NULL;
  if (*s == 'e' || *s == 'E') {
    const char *at = s + 1;
    if (*at == '+' || *at == '-') sign = *at++ == '-' ? -1 : 1;
    if (is_digit(*at)) {
      for (; is_digit(*at); at++)
	if (more < EXPONENT_MAX) more = more * 10 + (*at - '0');
      s = at;
    }
  }
  exponent += sign * more;
  *n = exponent < 0 ? *n / power_of_ten(-exponent) : *n * power_of_ten(exponent);
  return s;
}

/* Return the factor of a unit of a kind, or 0. */
static double unit_factor(int kind, const char *name)
{
  char unit[UNIT_MAX];
  const OptionUnit *u;
  size_t i, len = strlen(name);
  if (len >= sizeof(unit)) return 0;
  for (i = 0; i < len; i++)
    unit[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] | 0x20) : name[i];
  if ((kind == OPTION_SIZE || kind == OPTION_COUNT) && len > 1 && unit[len - 1] == 'b') {
    len--; /* 512KiB is 512K. */
    if (unit[len - 1] == 'i') len--;
  }
  unit[len] = '\0';
  for (u = lj_opttable_units; u->name; u++)
    if (u->kind == kind && strcmp(u->name, unit) == 0) return u->factor;
  return 0;
}

/* Read a number with or without a unit, as one of the option's unit. */
static int read_number(const OptionSpec *o, const char *s, double *n)
{
  const char *unit = read_decimal(s, n);
  double factor;
  if (!unit) return 0;
  if (!*unit) return 1;
  if ((factor = unit_factor(o->kind, unit)) == 0) return 0;
  *n = *n * factor / (o->kind == OPTION_TIME ? unit_factor(o->kind, o->unit) : 1);
  return 1;
}

static int in_range(const OptionSpec *o, double n)
{
  double limit;
  if (*o->least && read_number(o, o->least, &limit) && n < limit) return 0;
  if (*o->most && read_number(o, o->most, &limit) && n > limit) return 0;
  return n >= 0 && n <= WHOLE_MAX; /* False for NaN. */
}

int lj_opttext_number(const OptionSpec *o, double n, OptionValues *v)
{
  void *to = (char *)v + o->offset;
  if (!in_range(o, n)) return 0;
  switch ((OptionKind)o->kind) {
  case OPTION_NUMBER:
  case OPTION_TIME: *(lua_Number *)to = n; return 1;
  case OPTION_SIZE: *(uint64_t *)to = (uint64_t)n; return 1;
  case OPTION_COUNT: *(uint64_t *)to = (uint64_t)n; return (double)(uint64_t)n == n;
  case OPTION_SIGNAL:
    *(int *)to = n <= SIGRTMAX ? (int)n : 0;
    return *(int *)to != 0 && (double)*(int *)to == n;
  default: return 0;
  }
}

/* -- Texts ------------------------------------------------------------------- */

int lj_opttext_signal(const char *name)
{
  int n;
  if (strncmp(name, "SIG", 3) != 0) return 0;
  name += 3;
  for (n = 1; n <= SIGRTMAX; n++) {
    const char *abbreviation = sigabbrev_np(n);
    char from_min[24] = "RTMIN", from_max[24] = "RTMAX";
    if (n > SIGRTMIN) snprintf(from_min, sizeof(from_min), "RTMIN+%d", n - SIGRTMIN);
    if (n < SIGRTMAX) snprintf(from_max, sizeof(from_max), "RTMAX-%d", SIGRTMAX - n);
    if (n < SIGRTMIN ? abbreviation && strcmp(name, abbreviation) == 0
		     : strcmp(name, from_min) == 0 || strcmp(name, from_max) == 0)
      return n;
  }
  return 0;
}

/* Is it a signal that is free for programs? The clocks use SIGPROF and SIGURG by default, so
** control takes neither.
*/
static int is_free(const char *s)
{
  int signo = lj_opttext_signal(s);
  return signo == SIGUSR1 || signo == SIGUSR2 || signo >= SIGRTMIN;
}

int lj_opttext_truth(const char *s)
{
  return strcmp(s, "true") == 0 ? 1 : strcmp(s, "false") == 0 ? 0 : -1;
}

void lj_opttext_flag(const OptionSpec *o, int is_set, OptionValues *v)
{
  void *to = (char *)v + o->offset;
  if (o->size == sizeof(int))
    *(int *)to = is_set ? *(int *)to | o->bits : *(int *)to & ~o->bits;
  else
    *(uint8_t *)to = (uint8_t)(is_set ? *(uint8_t *)to | o->bits
				      : *(uint8_t *)to & ~o->bits);
}

/* Go to the next choice of a list. Returns its length, 0 at the end. */
static size_t next_choice(const char **at)
{
  *at += strspn(*at, " ");
  return strcspn(*at, " ");
}

/* Is the choice a value that has no name? */
static int is_nameless(const char *s, size_t len)
{
  return len == 1 && *s == '-';
}

int lj_opttext_choice(const OptionSpec *o, const char *s)
{
  const char *at = o->unit;
  size_t len;
  int value;
  for (value = 0; (len = next_choice(&at)) != 0; at += len, value++)
    if (strlen(s) == len && memcmp(at, s, len) == 0 && !is_nameless(s, len)) return value;
  return -1;
}

int lj_opttext_take(const OptionSpec *o, const char *s, OptionValues *v)
{
  void *to = (char *)v + o->offset;
  double n;
  int value;
  switch ((OptionKind)o->kind) {
  case OPTION_FLAG:
    value = lj_opttext_truth(s);
    lj_opttext_flag(o, value == 1, v);
    return value >= 0;
  case OPTION_SIGNAL:
    if ((*(int *)to = lj_opttext_signal(s)) != 0) return 1;
    /* Fall through. */
  case OPTION_NUMBER:
  case OPTION_COUNT:
  case OPTION_TIME:
  case OPTION_SIZE: return read_number(o, s, &n) && lj_opttext_number(o, n, v);
  case OPTION_CHOICE:
    if ((value = lj_opttext_choice(o, s)) < 0) return 0;
    *(uint8_t *)to = (uint8_t)value;
    return 1;
  case OPTION_TEXT:
  case OPTION_LIST:
  case OPTION_FREE:
  case OPTION_CONTROL:
    *(const char **)to = s;
    if (o->kind == OPTION_TEXT) return 1;
    if (o->kind == OPTION_LIST) return *s != '\0';
    return is_free(s) || (o->kind == OPTION_CONTROL && *s == '/');
  }
  return 0;
}

/* -- Defaults ---------------------------------------------------------------- */

void lj_opttext_begin(OptionValues *v, int where)
{
  const OptionSpec *o;
  memset(v, 0, sizeof(*v));
  for (o = lj_opttable; o->name; o++)
    if ((o->where & where) && o->kind != OPTION_NUMBER && *lj_opttable_initial(o, where))
      lj_opttext_take(o, lj_opttable_initial(o, where), v);
}

uint64_t lj_opttext_interval(const OptionValues *v)
{
  static const char hz[] = "hz";
  OptionValues by;
  if (v && v->interval_ms > 0) return (uint64_t)(v->interval_ms * 1e6 + 0.5);
  if (!v || v->hz <= 0) {
    const OptionSpec *o = lj_optname_find(hz, sizeof(hz) - 1, OPTION_LUA);
    lj_opttext_take(o, o->initial, &by);
    v = &by;
  }
  return (uint64_t)(1e9 / v->hz + 0.5);
}

/* -- Words ------------------------------------------------------------------- */

static size_t append(char *to, size_t at, const char *s, size_t len)
{
  size_t room = OPTTEXT_EXPECTED_MAX - 1 - at;
  if (len > room) len = room;
  memcpy(to + at, s, len);
  to[at + len] = '\0';
  return at + len;
}

static size_t append_text(char *to, size_t at, const char *s)
{
  return append(to, at, s, strlen(s));
}

/* Append the choices of a list: "a, b or c". */
static size_t append_choices(char *to, size_t at, const char *list)
{
  size_t len, begin = at;
  while ((len = next_choice(&list)) != 0) {
    const char *s = list;
    list += len;
    if (is_nameless(s, len)) continue;
    if (at > begin) at = append_text(to, at, *list ? ", " : " or ");
    at = append(to, at, s, len);
  }
  return at;
}

const char *lj_opttext_expected(const OptionSpec *o, char *to)
{
  const OptionWords *w = &lj_opttable_words[o->kind];
  size_t at = append_text(to, 0, w->before);
  if (o->kind == OPTION_CHOICE) at = append_choices(to, at, o->unit);
  else if (o->kind != OPTION_FLAG) at = append_text(to, at, o->unit);
  at = append_text(to, at, w->after);
  at = append_text(to, at, w->example);
  if (*o->least) {
    at = append_text(to, at, *o->most ? ", " : ", at least ");
    at = append_text(to, at, o->least);
  }
  if (*o->most) {
    at = append_text(to, at, " to ");
    append_text(to, at, o->most);
  }
  return to;
}
