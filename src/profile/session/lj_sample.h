/*
** Sampler: takes the samples of a thread, and owns all that a sample touches.
** Context: handler, on the sampled thread | else as each function says.
**
** A clock's tick, or other code of the sampled thread, takes a sample: totals, both stacks,
** a record of the stream. It takes no lock. It touches its own sampler and, through the
** gate, the VM.
**
** A signal may interrupt the sample of other code. Then it only notes that, and the sample
** that it interrupted also appends one of the work SPF_WORK_PROFILER, without a walk.
*/

#ifndef _LJ_SAMPLE_H
#define _LJ_SAMPLE_H

#include "profile/base/lj_hist.h"
#include "profile/clock/lj_clock.h"
#include "profile/lua/lj_luawalk.h"
#include "profile/session/lj_profileopts.h"
#include "profile/session/lj_throttle.h"
#include "profile/session/lj_vmgate.h"
#include "profile/session/lj_vmtables.h"
#include "profile/stream/lj_chunkqueue.h"
#include "profile/stream/lj_encoder.h"
#include "profile/stream/lj_stream.h"

/* A clock or event of a sampler. Its total counts occurrences on the sampled threads since
** the start, in the event's unit. The weight of a sample is the total's growth since the
** last sample in the stream.
*/
typedef struct SampleEvent {
  Clock clock;
  int is_open;           /* The clock is open. */
  uint64_t before;       /* Total of the threads before this one. */
  uint64_t base;         /* The clock's count when this thread began. */
  uint64_t total;        /* Total at the last tick. Handler only. */
  uint64_t seen;         /* Total at the last poll. Session only. */
  uint64_t taken;        /* Total at the last sample in the stream. */
  uint64_t samples;      /* Samples taken. */
  uint64_t tick_ns;      /* Time of the last tick. */
  uint32_t nested;       /* Samples that have interrupted another one. */
  uint64_t nested_total; /* Total at the last of them, if known. */
} SampleEvent;

/* Who uses a sampler. Nobody: 0. */
#define SAMPLER_THREAD 1 /* The sampled thread: its samples meanwhile are noted. */
#define SAMPLER_OTHER  2 /* Another thread: samples meanwhile are lost. */

#define SAMPLER_SPENT 64 /* Times of samples that are counted together. */

typedef struct Sampler {
  VmReader reader; /* The handler as a reader of the VM, and the sampled thread. */
  /* Set before the start. */
  VmGate *gate;
  VmTables *vm;
  const ProfileOptions *opt;
  uint64_t start_ns;  /* CLOCK_MONOTONIC at the start of the profile. */
  uint64_t origin_ns; /* Time 0 of the stream. */
  int nevent;
  uint64_t cpu_before; /* CPU time of the threads before this one. */
  uint64_t cpu_base;   /* CPU time of this thread when it began. */
  /* Handler only, while the clocks run. */
  uint64_t cpu_us; /* CPU time of all these threads at the last tick. */
  int user;        /* SAMPLER_*: who is at work. */
  int has_nested;  /* An event has noted a sample. */
  int state;       /* SPF_VMST_* of the current sample. */
  Throttle throttle;
  uint64_t begin_cpu_ns; /* CPU time of the thread when the tick began. */
  uint64_t spent_ns;     /* Handler's time for the last sample, which the next one lists. */
  uint64_t spent[SAMPLER_SPENT]; /* Times that lj_sample_account has not counted. */
  uint32_t nspent;
  uintptr_t leaf_pc; /* Interrupted address, for backtracers. */
  SampleEvent event[SPF_EVENTS_MAX];
  uint64_t counters[SPF_COUNTER__MAX];
  Hist handler; /* Time in the handler. */
  LuaResult lua;
  Encoder encoder;
  Symtab symtab;
  SafeLoad peek;
  HostWalk host;
  FrameList host_frames, lua_frames;
  Stream stream;    /* What captured samples become. */
  ChunkQueue queue; /* Queue of its chunks, unless the handler writes them. */
  Batch batch;      /* Captured samples. Last: its end may be missing. */
} Sampler;

/* Does a writer outside of the handler write the chunks? */
static LJ_AINLINE int sampler_isqueued(const Sampler *s)
{
  return s->stream.queue != NULL;
}

/* What a source knows of a sample. */
typedef struct SampleValues {
  uint64_t time_ns; /* CLOCK_MONOTONIC. */
  uint64_t total;   /* Of the event, since the start of the profile. */
} SampleValues;

/* Take a sample of an event, on the sampled thread: from a signal, with the interrupted
** registers, or from ordinary code, with those of a function that called it. May change
** errno. Async-signal-safe.
*/
LJ_FUNC void lj_sample_take(Sampler *s, int event, const SampleValues *v,
			    const WalkRegs *regs);

/* Handle a tick of a sampler's clock, see ClockSample. Async-signal-safe. */
LJ_FUNC void lj_sample_tick(void *sampler, int event, int overrun, ucontext_t *uc);

/* Append samples that were noted. The caller holds the sampler, or no tick may run. */
LJ_FUNC void lj_sample_nested(Sampler *s);

/* Hold a sampler. Returns 0 if it is in use. Any thread. */
LJ_FUNC int lj_sample_hold(Sampler *s);
LJ_FUNC void lj_sample_release(Sampler *s);

/* Encode the captured samples. In the handler, or while no tick runs. */
LJ_FUNC void lj_sample_encode(Sampler *s);

/* Has no tick encoded the captured samples in time? Any thread. */
LJ_FUNC int lj_sample_isoverdue(const Sampler *s, uint64_t time_us);

/* Count the handler's times of the last samples. The caller holds the sampler, or no tick
** may run.
*/
LJ_FUNC void lj_sample_account(Sampler *s);

#endif
