/*
** Events of the compiler as sources of samples: `trace-abort` and others.
** Context: as SourceOps says | samples: ordinary code of the VM's thread.
*/

#define lj_jitsource_c
#define LUA_CORE

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profile/event/lj_eventparse.h"
#include "profile/jit/lj_jitevents.h"
#include "profile/jit/lj_jitsource.h"

static const EventField fields[JITFIELD__MAX] = {
  { SPF_FIELD_TRACE, "trace" }, { SPF_FIELD_TRACE, "parent" }, { SPF_FIELD_NUMBER, "exit" },
  { SPF_FIELD_TEXT, "reason" }, { SPF_FIELD_COUNT, "mcode" },
};

/* The text of a new trace is how it ends. */
static const EventField stop_fields[JITFIELD__MAX] = {
  { SPF_FIELD_TRACE, "trace" }, { SPF_FIELD_TRACE, "parent" }, { SPF_FIELD_NUMBER, "exit" },
  { SPF_FIELD_TEXT, "link" },   { SPF_FIELD_COUNT, "mcode" },
};

static const int nfields[JIT__MAX] = { [JIT_ABORT] = JITFIELD_MCODE,
				       [JIT_BLACKLIST] = JITFIELD_MCODE,
				       [JIT_FLUSH] = JITFIELD__MAX,
				       [JIT_STOP] = JITFIELD__MAX,
				       [JIT_EXIT] = JITFIELD_REASON };

/* Part of an event that belongs to this source. Only the event of the VM's session has a state. */
typedef struct JitSource {
  JitEvents *events;
} JitSource;

static JitEvents *events_of(const Event *ev)
{
  return ((const JitSource *)ev->source)->events;
}

static JitKind kind_of(const EventSpec *spec)
{
  return (JitKind)(spec->ops - lj_jitsource_ops);
}

#define GIVEN_MAX 32 /* Bytes of a wrong modifier in a message. */

static EventParsed jit_parse(const char *item, size_t len, const EventDefaults *by,
			     EventSpec *spec, char *errmsg)
{
  const char *name = spec->ops->names;
  size_t nlen = strlen(name);
  int given = (int)(len - nlen < GIVEN_MAX ? len - nlen : GIVEN_MAX);
  JitKind kind = kind_of(spec);
  if (!lj_eventparse_isname(item, len, name)) return EVENT_UNKNOWN;
  spec->period = 1;
  if (kind == JIT_EXIT) spec->period = by->period ? by->period : JIT_PERIOD;
  if (len > nlen &&
      (kind != JIT_EXIT || !lj_eventparse_number(item + nlen, len - nlen, "period",
						 JIT_PERIOD_MAX, &spec->period))) {
    snprintf(errmsg, EVENT_ERRMSG_MAX, "'%s' is followed by '%.*s'; expected %s", name,
	     given, item + nlen, kind == JIT_EXIT ? "/period=EXITS/" : "nothing");
    return EVENT_REFUSED;
  }
  if (spec->period == 0 || spec->period > JIT_PERIOD_MAX) {
    snprintf(errmsg, EVENT_ERRMSG_MAX,
	     "the period of '%s' must be between 1 and %llu exits", name,
	     (unsigned long long)JIT_PERIOD_MAX);
    return EVENT_REFUSED;
  }
  strcpy(spec->name, name);
  spec->measures = EVENT_OCCURRENCES;
  spec->unit = SPF_UNIT_COUNT;
  spec->has_weights = 1;
  spec->nfield = nfields[kind];
  spec->field = kind == JIT_STOP ? stop_fields : fields;
  return EVENT_PARSED;
}

static EventStatus jit_open(Event *ev, char *errmsg)
{
#if LJ_HASJIT
  JitEvents *je = lj_jitevents_of((global_State *)ev->door->vm);
  ((JitSource *)ev->source)->events = je;
  if (je) return EVENT_OK;
  snprintf(errmsg, EVENT_ERRMSG_MAX,
	   "the event %s has no memory for its table; free some memory", ev->spec.name);
  errno = ENOMEM;
#else
  snprintf(errmsg, EVENT_ERRMSG_MAX,
	   "the event %s is unavailable: this LuaJIT has no compiler; build it with one",
	   ev->spec.name);
  errno = ENOTSUP;
#endif
  return EVENT_ERROR;
}

static int jit_arm(Event *ev)
{
#if LJ_HASJIT
  lj_jitevents_start(events_of(ev), kind_of(&ev->spec), ev);
#else
  UNUSED(ev);
#endif
  return 0;
}

#if LJ_HASJIT
/* Bring the total of exits up to now. */
static void tell_exits(Event *ev)
{
  uint64_t n;
  if (kind_of(&ev->spec) != JIT_EXIT) return;
  n = lj_jitevents_untold(events_of(ev));
  __atomic_add_fetch(&ev->counters[SPF_EVENT_TOTAL], n, __ATOMIC_RELAXED);
}
#endif

static void jit_sync(Event *ev)
{
#if LJ_HASJIT
  tell_exits(ev);
  if (ev->door->is_ours(ev->door))
    lj_jitevents_flush(events_of(ev), kind_of(&ev->spec), ev);
#else
  UNUSED(ev);
#endif
}

static void jit_stop(Event *ev)
{
#if LJ_HASJIT
  lj_jitevents_stop(events_of(ev), kind_of(&ev->spec));
  if (!ev->is_armed) return;
  jit_sync(ev);
  lj_jitevents_rest(events_of(ev), kind_of(&ev->spec), ev);
#else
  UNUSED(ev);
#endif
}

static void jit_limit(const Event *ev, char *text)
{
  uint64_t many = 0, unplaced = 0;
#if LJ_HASJIT
  if (events_of(ev)) lj_jitevents_many(events_of(ev), kind_of(&ev->spec), &many, &unplaced);
#endif
  text[0] = '\0';
  if (unplaced)
    snprintf(
      text, EVENT_TEXT_MAX,
      "%s: %llu events lack their line: more than %d lines and reasons came in a second",
      ev->spec.name, (unsigned long long)unplaced, JIT_SUMS);
  else if (many)
    snprintf(text, EVENT_TEXT_MAX,
	     "%s: %llu samples have only their line: more than %d came in a second",
	     ev->spec.name, (unsigned long long)many, JIT_SAMPLES_MAX);
}

static void jit_forget(void)
{
#if LJ_HASJIT
  lj_jitevents_forget();
#endif
}

#define JIT_OPS(name) \
  { \
    .size = sizeof(JitSource), .is_of_vm = 1, .names = name, .parse = jit_parse, \
    .open = jit_open, .arm = jit_arm, .stop = jit_stop, .sync = jit_sync, \
    .limit = jit_limit, .forget = jit_forget \
  }

const SourceOps lj_jitsource_ops[JIT__MAX] = {
  [JIT_ABORT] = JIT_OPS("trace-abort"), [JIT_BLACKLIST] = JIT_OPS("trace-blacklist"),
  [JIT_FLUSH] = JIT_OPS("trace-flush"), [JIT_STOP] = JIT_OPS("trace-stop"),
  [JIT_EXIT] = JIT_OPS("trace-exit"),
};
