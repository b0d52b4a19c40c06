/*
** Events: what samples count, and the interface of the sources that take them.
** Context: handler or any thread, as each function says.
**
** An event is one item of the option `clock`, such as cpu or page-faults. Its source knows
** the event's name, and calls Event.take in the sampled thread when a period has passed. A
** source knows no session. A session knows no source: it loops over SourceOps.
**
** A new source needs a folder, its SourceOps, and a line in session/lj_sources.c.
**
**   parse -> open -> arm -> (samples) -> stop
*/

#ifndef _LJ_EVENT_H
#define _LJ_EVENT_H

#include <stddef.h>

#include "lj_def.h"
#include "profile/event/lj_walkregs.h"
#include "profile/format/lj_sysprof_format.h"

#define EVENT_NAME_MAX   48  /* Bytes of a name, with its NUL. */
#define EVENT_ERRMSG_MAX 256 /* Bytes of an error message, with its NUL. */
#define EVENT_TEXT_MAX   192 /* Bytes of SourceOps.limit, with its NUL. */
#define EVENT_OWN        112 /* Bytes of a spec that belong to its source. */

/* -- What a start asks for --------------------------------------------------- */

/* What the period of an event measures. */
typedef enum EventMeasure {
  EVENT_CPU_TIME,   /* CPU time of the thread, in nanoseconds. */
  EVENT_REAL_TIME,  /* Real time, in nanoseconds. */
  EVENT_OCCURRENCES /* Occurrences, in the event's unit. */
} EventMeasure;

typedef struct EventSpec {
  const struct SourceOps *ops;
  char name[EVENT_NAME_MAX]; /* As requested; once open, the event in use. */
  EventMeasure measures;     /* The period. */
  int unit;                  /* SPF_UNIT_*, of the weights. */
  uint64_t period;           /* Usual distance of two samples. */
  union {
    uint64_t align;
    char bytes[EVENT_OWN];
  } own; /* Of the source. */
} EventSpec;

/* Does the period measure time? */
static LJ_AINLINE int eventspec_istime(const EventSpec *spec)
{
  return spec->measures != EVENT_OCCURRENCES;
}

/* What the items of a list share. */
typedef struct EventDefaults {
  uint64_t interval_ns; /* Period of time. */
  uint64_t period;      /* Period of occurrences; 0: the event's own. */
  int jitter;           /* Vary each period at random. */
  int prefer_tick;      /* If interrupts are costly, take the kernel's tick. */
} EventDefaults;

typedef enum EventParsed {
  EVENT_PARSED,
  EVENT_UNKNOWN, /* The source has no event of this name. */
  EVENT_REFUSED  /* Its modifiers or its period are wrong. */
} EventParsed;

/* -- What a sample brings ---------------------------------------------------- */

typedef struct SampleHead {
  uint64_t time_ns; /* CLOCK_MONOTONIC when the source began with it. */
  uint64_t cpu_ns;  /* CPU time of the thread then; 0: not read. */
  uint64_t total;   /* Total of the source, see SourceOps.total; 0: not read. */
  /* Set by take. */
  uint64_t end_ns;   /* CLOCK_MONOTONIC at the end. */
  uint64_t spent_ns; /* Time since time_ns in which the thread ran, about. */
} SampleHead;

/* -- An open event ----------------------------------------------------------- */

typedef enum EventStatus {
  EVENT_OK,
  EVENT_BUSY, /* Another profiler runs, or too many events are open. */
  EVENT_ERROR /* The event is unavailable: see errno and errmsg. */
} EventStatus;

/* An event of a session. The session clears it, and sets the first members before open. */
typedef struct Event Event;
struct Event {
  EventSpec spec;
  /* Take a sample of the event, on the sampled thread: from a signal, with the registers that
  ** it interrupted, or from ordinary code, with those of a function that called it. Returns
  ** 0 if it interrupted another sample, which notes it. May change errno. Async-signal-safe.
  */
  int (*take)(Event *ev, SampleHead *head, const WalkRegs *regs);
  uint64_t *counters; /* SPF_COUNTER__MAX of them, to which its source adds. */
  void *source;       /* SourceOps.size bytes, cleared. */
  int index;          /* Of the event in the profile. */
  int tid;            /* The sampled thread. */
  int is_open;
  int signo;  /* Signal of its samples. 0: the source chooses one, or needs none. */
  int shared; /* Once open: the program has a handler for the signal. */
};

/* A source of samples. Functions that may be missing say what NULL means. */
typedef struct SourceOps {
  size_t size; /* Bytes of Event.source. */
  /* Read an item of the option `clock`. Sets all of a cleared spec but ops. Unless it is
  ** parsed, errmsg[EVENT_ERRMSG_MAX] gets one sentence. Any thread.
  */
  EventParsed (*parse)(const char *item, size_t len, const EventDefaults *by,
		       EventSpec *spec, char *errmsg);

  /* -- Under the lock of lj_process, not in the handler -- */
  /* A profile with this event is about to start. signo: as in Event. NULL: nothing. */
  void (*prepare)(const EventSpec *spec, int signo);
  /* Create it, without samples. May change its spec and signo. On EVENT_ERROR, sets errno and
  ** one sentence in errmsg[EVENT_ERRMSG_MAX] with the reason and the remedy.
  */
  EventStatus (*open)(Event *ev, char *errmsg);
  int (*arm)(Event *ev);   /* Samples may come from now on. Returns 0 or an errno. */
  void (*stop)(Event *ev); /* Close an open event. No sample comes after this returns. */
  /* Does the thread block the samples, so that the event should not be open? NULL: no. */
  int (*blocked)(const Event *ev);
  /* Samples may have stopped because the program took their signals. NULL: nothing. */
  void (*revive)(Event *ev);
  /* Has the program replaced our handler of the samples' signal? NULL: no. */
  int (*replaced)(const Event *ev);
  /* Write one sentence into text[EVENT_TEXT_MAX] if the event does not reach its rate, or did
  ** not while it was open; else "". NULL: "".
  */
  void (*limit)(const Event *ev, char *text);
  void (*forget)(void); /* In a child of fork(): forget all events. NULL: nothing. */

  /* -- Any thread, async-signal-safe -- */
  /* Total of the thread so far, in the unit of the spec. 0: the thread has ended, or the
  ** event is closed and cannot tell.
  */
  uint64_t (*total)(const Event *ev);
} SourceOps;

#endif
