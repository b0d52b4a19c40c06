/*
** Looks at one thread: what it has waited for since the last look, and where it waits now.
** Context: under the lock, on any thread, outside of the handler.
**
** A wait that is over goes into the stream: with the stack that an earlier look has kept, or in a
** sum without a stack. If a wait goes on above the threshold, a look reads its stack.
** A record of a switch does not tell when a sleeping thread was woken up. So the wake-ups between
** two reads of schedstat share its run delay evenly, but none takes more than its wait.
** The kernel counts the microseconds of a switch in both a record and the CPU time. So a balance
** compares the sums with the real time, each second and at the end.
*/

#ifndef _LJ_WAITLOOK_H
#define _LJ_WAITLOOK_H

#include "profile/event/lj_event.h"
#include "profile/event/lj_eventparse.h"
#include "profile/wait/lj_waitproc.h"
#include "profile/wait/lj_waitring.h"

/* The stack of the current wait. */
typedef enum StackState {
  STACK_NONE,  /* Nobody has read it yet. */
  STACK_LATE,  /* The thread had been woken up before. */
  STACK_KEPT,  /* The session keeps it. */
  STACK_MOVED, /* The thread ran while it was read: the wait is over. */
  STACK_HIDDEN /* It cannot be read. */
} StackState;

/* Waits without stacks, until they go into the stream. */
typedef struct WaitSum {
  uint64_t ns, n;
} WaitSum;

/* Time that threads were ready after wake-ups, and how many. */
typedef struct WakeReady {
  uint64_t ns, n;
} WakeReady;

/* Part of an event that belongs to the source. */
typedef struct WaitLook {
  WaitRing ring; /* Without one, durations come from the figures of looks. */
  int ring_err;  /* Why there is none. */
  WaitPlaceFile file;
  int has_sched;     /* The kernel tells WaitSched. */
  int hidden;        /* errno: why the kernel does not tell where the thread sleeps. */
  uint32_t idle;     /* Looks since the last switch. */
  uint64_t random;   /* State of the distances of looks. */
  uint64_t usual_ns; /* Most waits above the threshold last as long, or longer. */
  uint32_t long_256; /* How many of 256 waits are above the threshold: a moving mean. */
  /* At the last look that found a switch. */
  uint64_t looked_ns, cpu_ns;
  uint64_t apart_ns; /* Without records: looks were so far apart, see note_apart. */
  double apart_sum, apart_squares;
  /* Without records: while is_off is not set, it may have left its processor so long before. */
  uint64_t end_ns;
  uint64_t off_ns; /* Time without a processor so far. */
  WaitSched sched;
  /* Whether all records came, see find_loss. */
  uint64_t first_runs; /* sched.runs when the ring was empty. */
  uint64_t ins;        /* Records since then in which the thread got a processor. */
  uint64_t missed;     /* Those that did not come, as far as known. */
  int has_gap;         /* More runs than records: some did not come. */
  int has_dropped;     /* The kernel may have dropped some since the last balance. */
  int is_settled;      /* What is missing is in `lost` before the kernel says so. */
  uint64_t
    settled_ns; /* All time before is in a wait or in a sum, whatever records say later. */
  uint64_t in_ns;    /* When it last got a processor; 0: not known. */
  uint64_t last_ns;  /* So long it ran then. */
  uint64_t gone_ns;  /* A look found that the thread had ended, without records; or 0. */
  uint64_t vague_ns; /* It may have ended so long before; 0: little of its life. */
  /* Time that the thread was ready after wake-ups, see ready_of_all. */
  uint64_t sched_ns;    /* When sched was read. */
  int64_t wakes;        /* Since then. */
  int64_t preempted_ns; /* Since then. */
  int64_t owed_ns;      /* What no wait has been reduced by yet. Without records, too. */
  WakeReady known;      /* Up to the last reading. */
  uint64_t unread;      /* Wake-ups that the kernel has not told before the end. */
  uint64_t
    vague_ready_ns; /* Ready time after these, or beyond what was owed; 0: little of its life. */
  /* Without records, see take_runs. */
  WaitLeft left;       /* At the last look that found a switch. */
  int64_t ended_waits; /* Less those that have been counted. */
  uint64_t woken_ns;   /* A wait was over then, at some time before: not ready yet; or 0. */
  /* The current wait. */
  int is_off;       /* The thread has no processor. */
  int is_preempted; /* But it could run. */
  uint64_t begun_ns;
  uint64_t told_ns; /* The time before is in the stream, or in a sum. */
  StackState stack;
  WaitPlaceKind place;
  uint32_t nr; /* Its system call. */
  /* Waits that are over. */
  uint64_t told_off_ns; /* All time without a processor, in the stream or in a sum. */
  WaitSum too_short, ready;
  WaitSum lost;       /* Waits that no record and no look tells of. */
  uint64_t summed_ns; /* When sums last went into the stream. */
  /* See balance. */
  uint64_t since_ns, since_cpu_ns; /* Time and CPU time when it began. */
  int64_t balanced_ns;             /* What the sums have got so far. */
} WaitLook;

static LJ_AINLINE WaitLook *waitlook_of(const Event *ev)
{
  return (WaitLook *)ev->source;
}

/* Begin with an open event. */
LJ_FUNC void lj_waitlook_begin(Event *ev);

/* Look at the thread, see SourceOps.look. Background thread. */
LJ_FUNC uint64_t lj_waitlook_look(Event *ev);

/* Append all up to now. */
LJ_FUNC void lj_waitlook_sync(Event *ev);

#endif
