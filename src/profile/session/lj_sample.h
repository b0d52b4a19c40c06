/*
** Sampler: all that a tick touches, and the sample that it takes.
** Context: handler, on the sampled thread; the rest as each function says.
**
** A tick of a clock becomes a sample: totals, both stacks, a record of the stream. The
** handler takes no lock. It touches its own sampler and, through the gate, the VM.
*/

#ifndef _LJ_SAMPLE_H
#define _LJ_SAMPLE_H

#include "profile/base/lj_hist.h"
#include "profile/clock/lj_clock.h"
#include "profile/lua/lj_luawalk.h"
#include "profile/session/lj_profileopts.h"
#include "profile/session/lj_throttle.h"
#include "profile/session/lj_vmgate.h"
#include "profile/stream/lj_chunkqueue.h"
#include "profile/stream/lj_stream.h"

/* An event of a sampler. A total is what happened on the sampled threads since the
** start, in the event's unit. A sample stands for what was added since the last sample
** that the stream took.
*/
typedef struct SampleEvent {
  Clock clock;
  int is_open;      /* The clock has been opened. */
  uint64_t before;  /* Total of the threads before this one. */
  uint64_t base;    /* What the clock said when this one began. */
  uint64_t total;   /* As the last tick has it. Handler only. */
  uint64_t seen;    /* As the last poll has it. Session only. */
  uint64_t taken;   /* What the samples of the stream stand for. */
  uint64_t samples; /* Samples taken. */
  uint64_t tick_ns; /* Time of the last tick. */
} SampleEvent;

typedef struct Sampler {
  VmReader reader; /* Its handler, with the sampled thread. */
  /* Set before the start. */
  VmGate *gate;
  const ProfileOptions *opt;
  uint64_t start_ns;  /* CLOCK_MONOTONIC at the start of the profile. */
  uint64_t origin_ns; /* Where the times of the stream begin. */
  int nevent;
  uint64_t cpu_before; /* CPU time of the threads before this one, */
  uint64_t cpu_base;   /* of this one when it began. */
  /* Handler only, while the clocks run. */
  uint64_t cpu_us; /* CPU time of all these threads, as the last tick has it. */
  int in_handler;  /* Guards against a nested tick, and in a dump. */
  int state;       /* SPF_VMST_* of the current sample. */
  Throttle throttle;
  uint64_t begin_cpu_ns; /* Thread's CPU time when the tick began. */
  uint64_t spent_ns;     /* Handler's time for the last sample. The next tick counts it,
			  ** as counting takes time as well. */
  uintptr_t leaf_pc;     /* Interrupted address, for backtracers. */
  SampleEvent event[SPF_EVENTS_MAX];
  uint64_t counters[SPF_COUNTER__MAX];
  Hist handler; /* Time in the handler. */
  SafeLoad peek;
  HostWalk host;
  LuaWalk lua;
  FrameList host_frames, lua_frames;
  Symtab symtab;
  Stream stream;
  ChunkQueue queue; /* Of its chunks, unless the handler writes them. */
} Sampler;

/* Does the handler leave the chunks to be written? */
static LJ_AINLINE int sampler_isqueued(const Sampler *s)
{
  return s->stream.queue != NULL;
}

/* Tick of a sampler's clock, see ClockTick. Async-signal-safe. */
LJ_FUNC void lj_sample_tick(void *sampler, int event, int overrun, ucontext_t *uc);

/* Count the handler's time for the last sample. While no tick runs. */
LJ_FUNC void lj_sample_account(Sampler *s);

#endif
