/*
** Waits of coroutines as a source of samples: the event `coroutine-wait`.
** Context: as SourceOps says.
*/

#define lj_cosource_c
#define LUA_CORE

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profile/base/lj_relaxed.h"
#include "profile/coroutine/lj_cosource.h"
#include "profile/coroutine/lj_cowait.h"
#include "profile/event/lj_eventparse.h"

#define THRESHOLD_NS     100000 /* Default: shorter waits are summed by line. */
#define THRESHOLD_MAX_NS 1000000000

static const EventField fields[] = { { SPF_FIELD_COUNT, "waits" } };

/* Part of an event that belongs to this source. Only the event of the VM's session has a state. */
typedef struct CoSource {
  CoWait *wait;
} CoSource;

static CoWait *wait_of(const Event *ev)
{
  return ((CoSource *)ev->source)->wait;
}

static EventParsed co_parse(const char *item, size_t len, const EventDefaults *by,
			    EventSpec *spec, char *errmsg)
{
  static const WaitEvent we = { "coroutine-wait", THRESHOLD_NS, 0, THRESHOLD_MAX_NS,
				fields };
  UNUSED(by);
  return lj_eventparse_wait(item, len, &we, spec, errmsg);
}

static EventStatus co_open(Event *ev, char *errmsg)
{
  CoWait *w = lj_cowait_of((global_State *)ev->door->vm);
  ((CoSource *)ev->source)->wait = w;
  if (w) return EVENT_OK;
  snprintf(errmsg, EVENT_ERRMSG_MAX,
	   "the event coroutine-wait has no memory for its table; free some memory");
  errno = ENOMEM;
  return EVENT_ERROR;
}

static int co_arm(Event *ev)
{
  lj_cowait_start(wait_of(ev), ev, waitevent_threshold(&ev->spec));
  return 0;
}

/* Only the thread that runs the VM may read the functions of the sums. */
static void co_sync(Event *ev)
{
  if (ev->door->is_ours(ev->door)) lj_cowait_flush(wait_of(ev), ev);
}

static void co_stop(Event *ev)
{
  int is_ours = ev->door->is_ours(ev->door);
  if (ev->is_armed && is_ours) lj_cowait_flush(wait_of(ev), ev);
  lj_cowait_stop(wait_of(ev), is_ours);
  if (ev->is_armed) lj_cowait_rest(wait_of(ev), ev);
}

static void co_limit(const Event *ev, char *text)
{
  uint64_t many = wait_of(ev) ? relaxed_get(&wait_of(ev)->many) : 0;
  uint64_t untimed = wait_of(ev) ? relaxed_get(&wait_of(ev)->untimed) : 0;
  text[0] = '\0';
  if (untimed)
    snprintf(text, EVENT_TEXT_MAX,
	     "coroutine-wait: %llu waits are missing: there was no memory for their time",
	     (unsigned long long)untimed);
  else if (many)
    snprintf(text, EVENT_TEXT_MAX,
	     "coroutine-wait: %llu waits have no stack, only their line: samples would "
	     "take more than 2 %% of the time",
	     (unsigned long long)many);
}

const SourceOps lj_cosource_ops = {
  .size = sizeof(CoSource),
  .is_of_vm = 1,
  .names = "coroutine-wait",
  .parse = co_parse,
  .open = co_open,
  .arm = co_arm,
  .stop = co_stop,
  .sync = co_sync,
  .limit = co_limit,
  .forget = lj_cowait_forget,
};
