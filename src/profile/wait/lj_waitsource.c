/*
** Off-CPU time as a source of samples: the event `offcpu`, with exact durations.
** Context: under the lock: any thread for open to stop, the background thread for look.
*/

#define lj_waitsource_c
#define LUA_CORE

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profile/base/lj_relaxed.h"
#include "profile/wait/lj_waitlook.h"
#include "profile/wait/lj_waitsource.h"

#define THRESHOLD_NS     2000000    /* Default: shorter waits get no stack. */
#define THRESHOLD_MIN_NS 100000     /* Looks would take too much time. */
#define THRESHOLD_MAX_NS 1000000000 /* A wait is looked at before its first part counts. */

static const EventField fields[] = { { SPF_FIELD_COUNT, "waits" } };

static EventParsed wait_parse(const char *item, size_t len, const EventDefaults *by,
			      EventSpec *spec, char *errmsg)
{
  static const WaitEvent we = { "offcpu", THRESHOLD_NS, THRESHOLD_MIN_NS, THRESHOLD_MAX_NS,
				fields };
  UNUSED(by);
  return lj_eventparse_wait(item, len, &we, spec, errmsg);
}

static EventStatus wait_open(Event *ev, char *errmsg)
{
  WaitLook *wl = waitlook_of(ev);
  memset(wl, 0, sizeof(*wl));
  wl->ring_err = lj_waitring_open(&wl->ring, ev->tid);
  /* Read after the open, so that each later run has a record. */
  wl->has_sched = lj_waitproc_sched(ev->tid, &wl->sched);
  if (wl->ring_err == 0) {
    strcpy(ev->spec.name, "switch-records");
  } else if (wl->has_sched) {
    strcpy(ev->spec.name, "schedstat");
  } else {
    errno = wl->ring_err;
    snprintf(
      errmsg, EVENT_ERRMSG_MAX,
      "the event offcpu needs perf events (%s) or /proc/self/task/TID/schedstat, and "
      "both are unavailable; mount /proc, or allow perf_event_open",
      strerror(wl->ring_err));
    return EVENT_ERROR;
  }
  return EVENT_OK;
}

static int wait_arm(Event *ev)
{
  lj_waitlook_begin(ev);
  return 0;
}

static void wait_stop(Event *ev)
{
  if (ev->is_armed) lj_waitlook_sync(ev);
  lj_waitring_close(&waitlook_of(ev)->ring);
  lj_waitproc_close(&waitlook_of(ev)->file);
}

/* Waits without records. why: there are none. */
static void limit_looks(const Event *ev, const char *why, char *text)
{
  const WaitLook *wl = waitlook_of(ev);
  uint64_t vague_ns = relaxed_get(&wl->vague_ns), apart_ns = relaxed_get(&wl->apart_ns);
  uint64_t least_ns = waitevent_threshold(&ev->spec);
  int n = snprintf(text, EVENT_TEXT_MAX, "offcpu: a wait is exact to a look, %.1f ms: %s",
		   (double)(apart_ns > least_ns ? apart_ns : least_ns) / 1e6, why);
  if (vague_ns && n < EVENT_TEXT_MAX)
    snprintf(text + n, (size_t)(EVENT_TEXT_MAX - n),
	     ". offcpu: the end of a thread is exact to %.0f ms, its waits uncounted",
	     (double)vague_ns / 1e6);
}

/* Waits with records, of threads that have ended. */
static void limit_ends(const Event *ev, char *text)
{
  const WaitLook *wl = waitlook_of(ev);
  uint64_t end_ns = relaxed_get(&wl->vague_ns), ready_ns = relaxed_get(&wl->vague_ready_ns);
  int n = 0;
  if (end_ns)
    n = snprintf(text, EVENT_TEXT_MAX,
		 "offcpu: the end of a thread is exact to %.0f ms, its waits uncounted%s",
		 (double)end_ns / 1e6, ready_ns ? ". " : "");
  if (ready_ns && n < EVENT_TEXT_MAX)
    snprintf(text + n, (size_t)(EVENT_TEXT_MAX - n),
	     "offcpu: the time that a thread was runnable is exact to %.0f ms",
	     (double)ready_ns / 1e6);
}

static void wait_limit(const Event *ev, char *text)
{
  const WaitLook *wl = waitlook_of(ev);
  int hidden = relaxed_get(&wl->hidden);
  char why[EVENT_TEXT_MAX];
  text[0] = '\0';
  if (hidden == ENOSYS)
    snprintf(text, EVENT_TEXT_MAX,
	     "offcpu: stacks of waits are missing, because a seccomp filter or the kernel "
	     "forbids process_vm_readv; allow it");
  else if (hidden)
    snprintf(
      text, EVENT_TEXT_MAX,
      "offcpu: stacks of waits are missing, because /proc/self/task/TID/syscall cannot "
      "be read: %s",
      strerror(hidden));
  else if (wl->ring_err == ENOBUFS)
    limit_looks(ev,
		"locked memory is used up; raise kernel.perf_event_mlock_kb or `ulimit -l`",
		text);
  else if (wl->ring_err) {
    snprintf(why, sizeof(why), "perf_event_open failed: %s", strerror(wl->ring_err));
    limit_looks(ev, why, text);
  } else {
    limit_ends(ev, text);
  }
}

const SourceOps lj_waitsource_ops = {
  .size = sizeof(WaitLook),
  .names = "offcpu",
  .parse = wait_parse,
  .open = wait_open,
  .arm = wait_arm,
  .stop = wait_stop,
  .sync = lj_waitlook_sync,
  .look = lj_waitlook_look,
  .limit = wait_limit,
  .forget = lj_waitproc_forget,
};
