/*
** A source of samples that exists in the tests only: what a new source has to write. It
** samples a VM, in ordinary code: the event `road` takes a sample at each road_take, with a
** weight in bytes, objects, labels, and a thing that may end. A program that links it has its
** table of sources in place of the profiler's.
*/

#define LUA_CORE

#include <stdio.h>
#include <string.h>

#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_relaxed.h"
#include "profile/clock/lj_clocksource.h"
#include "profile/session/lj_sourcetable.h"
#include "road_source.h"

static const EventField fields[] = {
  { SPF_FIELD_COUNT, "objects" },
  { SPF_FIELD_THING, "object" },
  { SPF_FIELD_TEXT, "type" },
  { SPF_FIELD_NUMBER, "number" },
};

/* One VM of a process has the source. Its door stays. */
static EventDoor *door;
static int armed;

static EventParsed road_parse(const char *item, size_t len, const EventDefaults *by,
			      EventSpec *spec, char *errmsg)
{
  (void)by;
  if (len < 4 || memcmp(item, "road", 4) != 0 || (len > 4 && item[4] != ':'))
    return EVENT_UNKNOWN;
  if (len > 4) {
    snprintf(errmsg, EVENT_ERRMSG_MAX, "the event road takes no modifiers: '%.*s'",
	     (int)len, item);
    return EVENT_REFUSED;
  }
  strcpy(spec->name, "road");
  spec->measures = EVENT_OCCURRENCES;
  spec->unit = SPF_UNIT_BYTES;
  spec->period = 1;
  spec->has_weights = 1;
  spec->nfield = sizeof(fields) / sizeof(fields[0]);
  spec->field = fields;
  return EVENT_PARSED;
}

static EventStatus road_open(Event *ev, char *errmsg)
{
  (void)errmsg;
  relaxed_set(&door, ev->door);
  return EVENT_OK;
}

static int road_arm(Event *ev)
{
  (void)ev;
  relaxed_set(&armed, 1);
  return 0;
}

static void road_stop(Event *ev)
{
  (void)ev;
  relaxed_set(&armed, 0);
}

static const SourceOps road_ops = {
  .is_of_vm = 1,
  .names = "road",
  .parse = road_parse,
  .open = road_open,
  .arm = road_arm,
  .stop = road_stop,
};

const SourceOps *const lj_sourcetable[] = { &road_ops, &lj_clocksource_ops, NULL };

/* -- Samples ----------------------------------------------------------------- */

/* Append a string as in the stream. */
static uint8_t *string_put(uint8_t *p, const char *s)
{
  size_t len = strlen(s);
  *p++ = (uint8_t)len;
  memcpy(p, s, len);
  return p + len;
}

/* Define a text "TYPE", or labels with the key "request" and the value "TYPE". */
static SampleDef def_of(int tag, uint32_t id, uint8_t *payload)
{
  SampleDef def = { tag, id, payload, 0 };
  char text[16];
  uint8_t *p = payload;
  snprintf(text, sizeof(text), "%c%u", tag == SPF_LABELS ? 'r' : 't', id);
  if (tag == SPF_LABELS) p = string_put(p, "request");
  def.len = (uint32_t)(string_put(p, text) - payload);
  return def;
}

static Event *enter(void)
{
  return relaxed_get(&armed) ? door->enter(door, &road_ops) : NULL;
}

uint32_t road_take(uint32_t bytes, uint32_t objects, uint32_t thing, uint32_t type,
		   uint32_t labels)
{
  Event *ev = enter();
  uint8_t payload[2][32];
  SampleDef def[2];
  SampleHead head;
  WalkRegs regs;
  int taken;
  if (!ev) return 0;
  memset(&head, 0, sizeof(head));
  head.time_ns = mono_ns();
  head.weight = bytes;
  head.def = def;
  if (type) def[head.ndef++] = def_of(SPF_TEXT, type, payload[0]);
  if (labels) def[head.ndef++] = def_of(SPF_LABELS, labels, payload[1]);
  head.labels = labels;
  head.field[0] = objects;
  head.field[1] = thing;
  head.field[2] = type;
  head.field[3] = bytes;
  walkregs_here(&regs);
  taken = ev->take(ev, &head, &regs);
  if (taken) relaxed_add(&ev->counters[SPF_EVENT_TOTAL], bytes);
  door->leave(door);
  return taken ? head.session + 1 : 0;
}

uint32_t road_end(uint32_t session, uint32_t thing, uint32_t age)
{
  Event *ev = enter();
  SampleEnd end = { thing, age };
  int done;
  if (!ev) return 0;
  while (!(done = ev->ended(ev, session - 1, SPF_ENDED_GONE, &end, 1)) &&
	 relaxed_get(&armed)) {}
  door->leave(door);
  return (uint32_t)done;
}

uint32_t road_mark(uint32_t kind, uint32_t arg)
{
  Event *ev = enter();
  uint64_t number = arg;
  int done;
  if (!ev) return 0;
  done = ev->mark(ev, (int)kind, &number, 1);
  door->leave(door);
  return (uint32_t)done;
}
