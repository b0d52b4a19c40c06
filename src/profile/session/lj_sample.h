/*
** Sampler: takes a sample at each tick, and owns all that the handler touches.
** Context: handler, on the sampled thread | else as each function says.
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
#include "profile/stream/lj_encoder.h"
#include "profile/stream/lj_stream.h"

/* A clock or event of a sampler. Its total counts occurrences on the sampled threads since
** the start, in the event's unit. The weight of a sample is the total's growth since the
** last sample in the stream.
*/
typedef struct SampleEvent {
  Clock clock;
  int is_open;      /* The clock is open. */
  uint64_t before;  /* Total of the threads before this one. */
  uint64_t base;    /* The clock's count when this thread began. */
  uint64_t total;   /* Total at the last tick. Handler only. */
  uint64_t seen;    /* Total at the last poll. Session only. */
  uint64_t taken;   /* Total at the last sample in the stream. */
  uint64_t samples; /* Samples taken. */
  uint64_t tick_ns; /* Time of the last tick. */
} SampleEvent;

typedef struct Sampler {
  VmReader reader; /* The handler as a reader of the VM, and the sampled thread. */
  /* Set before the start. */
  VmGate *gate;
  const ProfileOptions *opt;
  uint64_t start_ns;  /* CLOCK_MONOTONIC at the start of the profile. */
  uint64_t origin_ns; /* Time 0 of the stream. */
  int nevent;
  uint64_t cpu_before; /* CPU time of the threads before this one. */
  uint64_t cpu_base;   /* CPU time of this thread when it began. */
  /* Handler only, while the clocks run. */
  uint64_t cpu_us; /* CPU time of all these threads at the last tick. */
  int in_handler;  /* 1: a tick or a dump is at work, so another tick is lost. */
  int state;       /* SPF_VMST_* of the current sample. */
  Throttle throttle;
  uint64_t begin_cpu_ns; /* CPU time of the thread when the tick began. */
  uint64_t spent_ns;     /* Handler's time for the last sample. The next tick counts it,
			  ** since counting takes time, too. */
  uintptr_t leaf_pc;     /* Interrupted address, for backtracers. */
  SampleEvent event[SPF_EVENTS_MAX];
  uint64_t counters[SPF_COUNTER__MAX];
  Hist handler; /* Time in the handler. */
  SafeLoad peek;
  HostWalk host;
  LuaWalk lua;
  FrameList host_frames, lua_frames;
  Symtab symtab;
  Batch batch; /* Captured samples, */
  Encoder encoder;
  Stream stream;    /* and what they become. */
  ChunkQueue queue; /* Queue of its chunks, unless the handler writes them. */
} Sampler;

/* Does a writer outside of the handler write the chunks? */
static LJ_AINLINE int sampler_isqueued(const Sampler *s)
{
  return s->stream.queue != NULL;
}

/* Handle a tick of a sampler's clock, see ClockTick. Async-signal-safe. */
LJ_FUNC void lj_sample_tick(void *sampler, int event, int overrun, ucontext_t *uc);

/* Encode the captured samples. In the handler, or while no tick runs. */
LJ_FUNC void lj_sample_encode(Sampler *s);

/* Has no tick encoded the captured samples in time? Any thread. */
LJ_FUNC int lj_sample_isoverdue(const Sampler *s, uint64_t time_us);

/* Count the handler's time for the last sample. No tick may run. */
LJ_FUNC void lj_sample_account(Sampler *s);

#endif
