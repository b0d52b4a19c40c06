/*
** Events: what samples count, and the interface of the sources that take them.
** Context: handler or any thread, as each function says.
**
** An event is one item of the option `clock`, such as cpu or page-faults. Its source knows
** the event's name, and calls Event.take in the sampled thread when a period has passed. A
** source knows no session. A session knows no source: it loops over SourceOps.
**
** A source samples threads, like a clock, or a VM, like an allocator. An event of threads is
** open in each session of a profile. An event of a VM is open in the first one only. The
** session of the calling thread gets its samples.
**
** A new source needs a folder, its SourceOps, and a line in session/lj_sourcetable.c.
**
**   parse -> open -> arm -> (samples) -> stop
*/

#ifndef _LJ_EVENT_H
#define _LJ_EVENT_H

#include <stddef.h>

#include "lj_def.h"
#include "profile/base/lj_ossigmask.h"
#include "profile/capture/lj_walkregs.h"
#include "profile/format/lj_sysprof_format.h"

#define EVENT_NAME_MAX   48  /* Bytes of a name, with its NUL. */
#define EVENT_ERRMSG_MAX 512 /* Bytes of an error message, with its NUL. */
#define EVENT_TEXT_MAX   192 /* Bytes of SourceOps.limit, with its NUL. */
#define EVENT_OWN        112 /* Bytes of a spec that belong to its source. */

/* -- What a start asks for --------------------------------------------------- */

/* What the period of an event measures. */
typedef enum EventMeasure {
  EVENT_CPU_TIME,   /* CPU time of the thread, in nanoseconds. */
  EVENT_REAL_TIME,  /* Real time, in nanoseconds. */
  EVENT_OCCURRENCES /* Occurrences, in the event's unit. */
} EventMeasure;

/* A field of an event's samples, see SPF_EVENT. */
typedef struct EventField {
  int kind;         /* SPF_FIELD_*. */
  const char *name; /* What it counts. */
} EventField;

typedef struct EventSpec {
  const struct SourceOps *ops;
  char name[EVENT_NAME_MAX]; /* As requested; once open, the event in use. */
  EventMeasure measures;     /* The period. */
  int unit;                  /* SPF_UNIT_*, of the weights. */
  uint64_t period;           /* Usual distance of two samples. */
  int has_weights; /* The source gives the weight of each sample. 0: it is the growth of
		   ** the total since the last sample in the stream. */
  int nfield;      /* Fields of its samples, at most SPF_FIELDS_MAX. */
  const EventField *field; /* They outlive the profile. */
  const char
    *sum; /* Name of the sum that it is a part of, or NULL. Equal names have one address. */
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

/* A definition that a sample refers to: of its labels, or of a text in its fields. The
** profiler copies it.
*/
typedef struct SampleDef {
  int tag;                /* SPF_LABELS or SPF_TEXT. */
  uint32_t id;            /* Not 0. Always the same for the same bytes. */
  const uint8_t *payload; /* As in the stream, after the id. */
  uint32_t len;           /* At most SAMPLE_DEF_MAX. */
} SampleDef;

#define SAMPLE_DEF_MAX 4096

/* A Lua stack that a source names, instead of the stacks of the thread. */
typedef struct SampleStack {
  struct lua_State *L;      /* A coroutine that does not run, or NULL. */
  const struct GCproto *pt; /* Without a coroutine: one Lua function, or NULL. */
  const void *pc;           /* Its PC, behind the instruction that it runs. */
} SampleStack;

typedef struct SampleHead {
  uint64_t time_ns; /* CLOCK_MONOTONIC when the source began with it. */
  uint64_t cpu_ns;  /* CPU time of the thread then; 0: not read. */
  uint64_t total;   /* Total of the source, see SourceOps.total; 0: not read. */
  uint64_t weight;  /* If the spec has weights. */
  uint32_t inner; /* Innermost host frames that it leaves out: of the source's own work. */
  int
    of_lua; /* It leaves out the VM's work for the innermost function of Lua, on both sides. */
  int state;       /* SPF_VMST_*; 0: as the VM tells. */
  uint32_t labels; /* Id of an SPF_LABELS; 0: none. */
  int ndef;        /* Definitions that it refers to. */
  const SampleDef *def;
  const SampleStack
    *stack; /* For take from ordinary code of the VM; NULL: the thread's stacks. */
  uint64_t field[SPF_FIELDS_MAX]; /* As many as the spec has. */
  /* For append, and for take with a stack. */
  int is_kept;       /* Append: the sample has the stack that keep has read. */
  int work;          /* SPF_WORK_*, its leaf. Take: 0 for no such leaf. */
  uint32_t work_arg; /* Argument of work. */
  int is_retried;    /* Take with a stack: without a sample the source keeps the weight. */
  /* Set by take. */
  uint64_t end_ns;   /* CLOCK_MONOTONIC at the end. */
  uint64_t spent_ns; /* Time since time_ns in which the thread ran, about. */
  uint32_t session;  /* Number of the session that has it. */
} SampleHead;

/* A thing of SPF_FIELD_THING that has ended. */
typedef struct SampleEnd {
  uint64_t thing; /* Its number. */
  uint64_t age;   /* Cycles of the garbage collector since the sample. */
} SampleEnd;

#define SAMPLE_ENDS_MAX 256 /* Of one call. */

/* -- An open event ----------------------------------------------------------- */

typedef enum EventStatus {
  EVENT_OK,
  EVENT_BUSY, /* Another profiler runs, or too many events are open. */
  EVENT_ERROR /* The event is unavailable: see errno and errmsg. */
} EventStatus;

/* What Event.keep has done. */
typedef enum EventKept {
  KEPT_STACK, /* It keeps a stack, which may be broken. */
  KEPT_MOVED, /* The thread has run meanwhile, or the stack has too many functions. */
  KEPT_NOT    /* Fault-safe copies are unavailable. */
} EventKept;

/* The way from code of the VM to its running profile. Lives as long as the VM. */
typedef struct Event Event;
typedef struct EventDoor EventDoor;
struct EventDoor {
  void *vm; /* Its global_State. */
  /* Return the event of a source in the session of the calling thread, which runs the VM. It
  ** is there until leave. NULL: no profile with it runs, or the profile does not sample the
  ** thread; then do not leave. Not in the handler.
  */
  Event *(*enter)(EventDoor *door, const struct SourceOps *ops);
  void (*leave)(EventDoor *door);
  /* Does no other thread run the VM? Under the lock. */
  int (*is_ours)(EventDoor *door);
  /* Set a counter SPF_EVENT_* of the event of a source in all sessions. Between enter and
  ** leave, or under the lock.
  */
  void (*set_all)(EventDoor *door, const struct SourceOps *ops, int counter,
		  uint64_t value);
  /* Of the garbage collector, since the profile began. Only the thread that runs the VM sets
  ** them.
  */
  uint32_t gc_cycles;    /* Cycles that have ended. */
  uint64_t gc_end_ns;    /* CLOCK_MONOTONIC at the end of the last one, */
  uint64_t gc_held;      /* and what the VM held then, in bytes. */
  uintptr_t moving_from; /* The VM resizes the Lua stack at this address, or did so last. */
  uintptr_t at_work;     /* Frame of a source that works for the profiler just now, or 0. */
  uintptr_t collects;    /* Frame that collects garbage for the profiler just now, or 0. */
  int hides_locals; /* The last collection took what only locals of the main chunk held. */
  int is_freed; /* lua_close frees all that the VM holds, while others of its file go on. */
};

/* From here to eventdoor_rest, the calling function works for the profiler: what interrupts it
** is no sample of the program's code. The program may jump out of it, so the frame counts.
*/
static LJ_AINLINE void eventdoor_work(EventDoor *door)
{
  __atomic_store_n(&door->at_work, (uintptr_t)__builtin_frame_address(0), __ATOMIC_RELAXED);
}

static LJ_AINLINE void eventdoor_rest(EventDoor *door)
{
  __atomic_store_n(&door->at_work, 0, __ATOMIC_RELAXED);
}

/* An event of a session. The session clears it, and sets the first members before open. */
struct Event {
  EventSpec spec;
  /* Take a sample of the event, on the sampled thread: from a signal, with the registers that
  ** it interrupted, or from ordinary code, with those of walkregs_here. Returns 0 if it took
  ** none: it interrupted another sample. That one notes it, unless the spec has weights: then
  ** it is lost. Without a stack and registers it is lost, too: there is no room to take it. May
  ** change errno. Async-signal-safe.
  */
  int (*take)(Event *ev, SampleHead *head, const WalkRegs *regs);
  /* Append a moment without weight, now. kind: SPF_MARK_*, with n arguments. Returns 0 if
  ** the session is in use, or its buffers are full: try again later. Not in the handler.
  */
  int (*mark)(Event *ev, int kind, const uint64_t *arg, int n);
  /* Things that samples of a session began have ended. how: SPF_ENDED_*. n: at most
  ** SAMPLE_ENDS_MAX. Returns 0 as mark does. Not in the handler.
  */
  int (*ended)(Event *ev, uint32_t session, int how, const SampleEnd *end, int n);
  /* Read the stack of the sampled thread, which sleeps with these registers, and keep it for
  ** append. has_moved: may the thread have run since they were read? Background thread, under the
  ** lock.
  */
  EventKept (*keep)(Event *ev, const WalkRegs *regs, int (*has_moved)(const Event *ev));
  /* Append a sample of a wait. Returns 0 if the session is in use for long: then the sample is
  ** lost. Any thread, under the lock, not in the handler.
  */
  int (*append)(Event *ev, SampleHead *head);
  EventDoor *door;                   /* For a source of a VM. */
  uint64_t counters[SPF_EVENT__MAX]; /* SPF_EVENT_*. Its source adds to some. */
  void *source;                      /* SourceOps.size bytes, cleared. */
  int index;                         /* Of the event in the profile. */
  int tid;                           /* The sampled thread. */
  uint64_t alive_ns;                 /* When the session last saw it alive, */
  uint64_t alive_cpu_ns;             /* and its CPU time then. */
  int is_open, is_armed;
  int signo;  /* Signal of its samples. 0: the source chooses one, or needs none. */
  int shared; /* Once open: the program has a handler for the signal. */
};

/* A source of samples. Functions that may be missing say what NULL means. */
typedef struct SourceOps {
  size_t size;       /* Bytes of Event.source. */
  int is_of_vm;      /* It samples a VM, not a thread. */
  const char *names; /* Of its events: a list for users, the end of a sentence. */
  /* Read an item of the option `clock`. Sets all of a cleared spec but ops. If it is refused,
  ** errmsg[EVENT_ERRMSG_MAX] gets one sentence. Any thread.
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
  int (*arm)(Event *ev); /* Samples may come from now on. Returns 0 or an errno. */
  /* Close an open event. No sample comes after this returns. Code of the VM may still be
  ** between enter and leave: the profile waits for it before it ends.
  */
  void (*stop)(Event *ev);
  /* A dump follows: bring the counters up to now, and report what has ended. Under the lock,
  ** while samples come. NULL: nothing.
  */
  void (*sync)(Event *ev);
  /* Look at the thread from the background thread, under the lock, while samples come. Returns
  ** the nanoseconds until it should look again, at the latest. NULL: nothing.
  */
  uint64_t (*look)(Event *ev);
  /* Does the thread block the samples, so that the event should not be open? NULL: no. */
  SigBlocked (*blocked)(const Event *ev);
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
  /* Total of the thread so far, in the unit of the spec. 0: the thread has ended, or the event
  ** is closed and cannot tell. NULL: the source gives weights, and itself adds to the counter
  ** SPF_EVENT_TOTAL of the event that has the sample.
  */
  uint64_t (*total)(const Event *ev);
} SourceOps;

#endif
