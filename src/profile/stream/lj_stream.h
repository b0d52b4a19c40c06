/*
** The stream of a profile: samples, stacks by reference, totals.
**
** Turns the two walked stacks of a sample into records. Runs in the signal handler
** and, at start and stop, outside of it. Allocates nothing.
*/

#ifndef _LJ_STREAM_H
#define _LJ_STREAM_H

#include "profile/format/lj_framelist.h"
#include "profile/stream/lj_stacktab.h"
#include "profile/symbols/lj_symtab.h"
#include "profile/format/lj_wbuf.h"
#include "profile/stream/lj_chunkqueue.h"

/* A chunk is handed out at this age, so that little is lost with the process; the first
** ones whenever the profile is twice as old.
*/
#define STREAM_CHUNK_US 10000000
#define STREAM_FIRST_US 1000000
/* Room for all counters at the end of a chunk. */
#define STREAM_RESERVE 400
/* Room for the modules of a sample, left free where no chunk can be handed out. */
#define STREAM_MODULES 8192

typedef struct Stream {
  WBuf wb;                           /* The bytes. */
  ChunkQueue *queue;                 /* Where chunks wait for the writer, or NULL. */
  int full;                          /* No chunk could be handed out when it was time. */
  Symtab *st;                        /* The symbols. */
  uint64_t *counters;                /* Totals, SPF_COUNTER__MAX of them. */
  uint32_t tid;                      /* Thread of the samples. */
  uint32_t session;                  /* Number in the file. */
  uint32_t in_chunk;                 /* Samples in the current chunk. */
  uint64_t chunk_us;                 /* Time at which it was begun. */
  uint64_t time_us;                  /* Time of the last sample or context. */
  uint64_t event_us[SPF_EVENTS_MAX]; /* The same by event. */
  uint64_t typical_us;               /* Typical time between samples. */
  uint64_t step_us;                  /* What times in the chunk are less. */
  StackTab stacks;                   /* What the chunk has defined. */
} Stream;

/* Start a stream into a buffer, in memory that is zero or was a stream. session:
** its number in what the writer writes, from 0. If queue is set before, the writer is
** lj_chunkqueue_put, and the buffer the queue's first. Not in the handler.
*/
LJ_FUNC void lj_stream_init(Stream *s, Symtab *st, uint64_t *counters, uint32_t tid,
			    uint8_t *buf, size_t cap, luam_Sysprof_writer writer, void *ctx,
			    uint32_t session);

/* Append a fact about the profile. Only between init and begin. */
LJ_FUNC void lj_stream_meta(Stream *s, const char *key, const char *value);

/* Append what causes samples of the event index, below SPF_EVENTS_MAX. unit:
** SPF_UNIT_*; period: of a sample, in nanoseconds or in the unit, see SPF_EVENT.
** Only between init and begin.
*/
LJ_FUNC void lj_stream_event(Stream *s, int index, const char *name, int unit,
			     uint64_t period);

/* Append the name of the samples' thread. Only between init and begin. */
LJ_FUNC void lj_stream_thread(Stream *s, const char *name);

/* The samples that follow are of another thread. Not in the handler, and waits for
** the writer.
*/
LJ_FUNC void lj_stream_move(Stream *s, uint32_t tid);

/* Append a sample. time_us: microseconds since the start; weight: what it stands
** for, in the unit of its event. Counts it as lost and returns 0 if it cannot be
** kept. Async-signal-safe.
*/
LJ_FUNC int lj_stream_sample(Stream *s, int event, int state, uint64_t time_us,
			     uint64_t weight, const FrameList *lua, const FrameList *host);

/* Append what is known at the start, the load map, and hand it out. Not in the
** handler. Returns 0, or the errno of a failed writer.
*/
LJ_FUNC int lj_stream_begin(Stream *s);

/* Append the names of what was seen so far, and hand the chunk out: what is written can
** be read then. The stream goes on. Not in the handler. Returns as lj_stream_begin.
*/
LJ_FUNC int lj_stream_dump(Stream *s);

/* Append names and the end, and hand the last chunk out. Not in the handler.
** Returns 0, or the errno of a failed writer.
*/
LJ_FUNC int lj_stream_end(Stream *s);

#endif
