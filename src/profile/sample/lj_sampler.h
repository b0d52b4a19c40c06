/*
** Sampler: all that the samples of a thread touch, and who may touch it.
** Context: the holder of the sampler | else as each function says.
**
** Whoever touches a sampler holds it: a sample in its thread, or another thread that writes
** old samples, dumps or ends the profile. A sample never waits for the hold. If the sampled
** thread holds the sampler, its sample is noted, and the holder's next one appends one of the
** work SPF_WORK_PROFILER. If another thread holds it, the sample is lost.
**
** The maker of a sampler holds it until it begins, and the thread that ends the profile for
** good.
*/

#ifndef _LJ_SAMPLER_H
#define _LJ_SAMPLER_H

#include "profile/base/lj_hist.h"
#include "profile/base/lj_relaxed.h"
#include "profile/event/lj_event.h"
#include "profile/lua/lj_luawalk.h"
#include "profile/sample/lj_keptstack.h"
#include "profile/sample/lj_profileopts.h"
#include "profile/sample/lj_sizelimit.h"
#include "profile/vm/lj_vmgate.h"
#include "profile/vm/lj_vmtables.h"
#include "profile/stream/lj_chunkqueue.h"
#include "profile/stream/lj_encoder.h"
#include "profile/stream/lj_stream.h"

/* An event of a sampler. Its total counts in the event's unit, on the sampled threads, since
** the start. Unless its source gives weights, the weight of a sample is the total's growth
** since the last sample. e.counters has the total at the last sample.
*/
typedef struct SampleEvent {
  Event e; /* What its source knows. First. */
  struct Sampler *sampler;
  uint64_t before; /* Total of the threads before this one. */
  uint64_t base;   /* The source's total when this thread began. */
  uint64_t seen;   /* Total at the last look. Under the lock. */
  uint64_t taken;  /* Total at the last sample, which may be lost. */
  uint64_t others; /* Of threads that no session has, for the end of the stream. */
  uint64_t rests;  /* Samples of lj_sample_rest: no tick. */
  /* Of samples that have interrupted another one. Handler of the sampled thread. */
  uint32_t nested;       /* How many. */
  uint64_t nested_total; /* Total at the last of them, if known. */
  /* Of samples that are lost: the sampler was held, or the stack had no room. Any thread. */
  uint64_t lost_total;  /* Total at the last of them, unless they have weights. */
  uint64_t lost_weight; /* Sum of their weights, */
  uint64_t lost_field[SPF_FIELDS_MAX]; /* and of their SPF_FIELD_COUNT. */
} SampleEvent;

/* Return the total at the last sample. */
static LJ_AINLINE uint64_t sampleevent_total(const SampleEvent *ev)
{
  return relaxed_get(&ev->e.counters[SPF_EVENT_TOTAL]);
}

/* Who holds a sampler. Nobody: 0. */
#define SAMPLER_THREAD 1 /* The sampled thread: its samples meanwhile are noted. */
#define SAMPLER_OTHER  2 /* Another thread: samples meanwhile are lost. */

#define SAMPLER_SPENT 64 /* Times of samples that are counted together. */

typedef struct Sampler {
  VmReader reader; /* The handler as a reader of the VM, and the sampled thread. */
  /* Set before the start. */
  VmGate *gate;
  VmTables *vm;
  const ProfileOptions *opt;
  SizeLimit *size;    /* Of the file. */
  uint32_t number;    /* Number of its session in the file. */
  uint64_t start_ns;  /* CLOCK_MONOTONIC at the start of the profile. */
  uint64_t origin_ns; /* Time 0 of the stream. */
  int nevent;
  /* Under the lock. In microseconds. */
  uint64_t cpu_before; /* CPU time of the threads before this one. */
  uint64_t cpu_base;   /* CPU time of this thread when it began. */
  uint64_t cpu_seen;   /* CPU time of all these threads at the last look. */
  uint64_t over_us;    /* Real time at which its thread's samples ended; 0: not yet. */
  const char *note;    /* Sentence before those of the events, or NULL. */
  /* Any thread. */
  int user; /* SAMPLER_*: who holds it. */
  /* Handler of the sampled thread. */
  int has_nested; /* An event has noted a sample. */
  /* Of the holder. */
  int state;         /* SPF_VMST_* of the current sample. */
  uint64_t cpu_us;   /* CPU time of all these threads at the last sample that read it. */
  uint64_t spent_ns; /* Time of the last sample, which the next one lists. */
  uint32_t nlong;    /* Samples in a row that took unusually long. */
  uint64_t spent[SAMPLER_SPENT]; /* Times that lj_totals_account has not counted. */
  uint32_t nspent;
  uint64_t counted;   /* Bytes that it has counted in size. */
  uintptr_t leaf_pc;  /* Interrupted address, for backtracers. */
  SampleEvent *event; /* nevent of them. */
  KeptStack *kept;    /* Of the current wait; NULL: no event needs it. Under the lock. */
  uint64_t counters[SPF_COUNTER__MAX];
  Hist handler; /* Times of samples. */
  LuaResult lua;
  LabelCopy labels; /* Of the coroutine. */
  Symtab symtab;
  SafeLoad peek;
  HostWalk host;
  FrameList host_frames, lua_frames;
  Batch batch;      /* Captured samples. */
  Stream stream;    /* What they become. */
  ChunkQueue queue; /* Queue of its chunks, unless the handler writes them. */
} Sampler;

/* Return the sampler of a gate's reader. */
static LJ_AINLINE Sampler *sampler_of_reader(VmReader *reader)
{
  return (Sampler *)reader;
}

/* Does a writer outside of the handler write the chunks? */
static LJ_AINLINE int sampler_isqueued(const Sampler *s)
{
  return s->stream.queue != NULL;
}

/* Hold a sampler. Returns 0 if it is held. Any thread, async-signal-safe. */
LJ_FUNC int lj_sampler_hold(Sampler *s);
LJ_FUNC void lj_sampler_release(Sampler *s);

/* The same, but waits for so long at most, because a sample may go on. Not in the handler. */
LJ_FUNC int lj_sampler_holdsoon(Sampler *s, uint64_t ns);

/* Hold a sampler whose sources are stopped. Waits for a sample of another thread. Takes the
** sampler over from a thread that has ended, and from the calling thread, which has jumped
** out of a sample. Not in the handler.
*/
LJ_FUNC void lj_sampler_seize(Sampler *s);

#endif
