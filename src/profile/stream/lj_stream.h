/*
** Profile stream: turns the two stacks of each sample into records.
** Context: handler, unless a function says otherwise.
**
** Writes samples, stacks by reference, names and totals into chunks. Allocates nothing.
*/

#ifndef _LJ_STREAM_H
#define _LJ_STREAM_H

#include "profile/event/lj_event.h"
#include "profile/capture/lj_batch.h"
#include "profile/capture/lj_framelist.h"
#include "profile/stream/lj_stacktab.h"
#include "profile/symbols/lj_symtab.h"
#include "profile/format/lj_wbuf.h"
#include "profile/stream/lj_chunkqueue.h"

/* The stream flushes a chunk of this age, so that a killed process loses little. At first
** it flushes more often: each time the profile is twice as old.
*/
#define STREAM_CHUNK_US 10000000
#define STREAM_FIRST_US 1000000
/* With a background thread, a killed process loses at most one second, plus the thread's
** delay. The handler flushes a chunk when its first sample has this age. If no sample
** comes, the thread flushes it.
*/
#define STREAM_THREAD_US  850000
#define STREAM_OVERDUE_US (STREAM_THREAD_US + 20000)
/* Room for all counters at the end of a chunk, and for those of each event. */
#define STREAM_RESERVE       360
#define STREAM_RESERVE_EVENT (SPF_EVENT__MAX * 10)
/* Room for the modules of a sample, left free while the queue takes no chunk. */
#define STREAM_MODULES 8192

/* An event of a stream. */
typedef struct StreamEvent {
  uint64_t *counters; /* SPF_EVENT__MAX of them; NULL: there is no such event. */
  uint32_t told;      /* Set of those that a chunk has told. */
  uint64_t last_us;   /* Time of its last sample, or of a later context. */
  uint64_t usual;     /* Usual weight, 0: the time. */
  int nfield;         /* See EventSpec. */
  const EventField *field;
  uint64_t lost; /* Weight of lost samples that no SPF_WORK_UNKEPT has told, */
  uint64_t lost_field[SPF_FIELDS_MAX]; /* and the sums of their SPF_FIELD_COUNT. */
  uint64_t rows;                       /* Samples that the stream itself has added. */
} StreamEvent;

/* Labels or a text that samples refer to. */
typedef struct StreamRef {
  uint64_t key;   /* batch_refkey */
  uint32_t at;    /* Offset of the definition in the batch. */
  uint32_t epoch; /* Chunk (or retry) that has it, 0 for none. */
} StreamRef;

typedef struct Stream {
  StackTab stacks;     /* Stacks that the chunk has defined. */
  WBuf wb;             /* The bytes. */
  ChunkQueue *queue;   /* Full chunks for the writer, or NULL. */
  int full;            /* The queue had no room for the last chunk. */
  Symtab *st;          /* The symbols. */
  uint64_t *counters;  /* Totals, SPF_COUNTER__MAX of them. */
  uint32_t tid;        /* Thread of the samples. */
  uint32_t session;    /* Number in the file. */
  uint32_t in_chunk;   /* Samples in the current chunk. */
  uint32_t labels;     /* Labels of the last one, see SPF_LABELLED. */
  uint64_t chunk_us;   /* Time of its beginning, or of its first sample. */
  uint64_t stacks_us;  /* Time of the beginning of the table of stacks. */
  size_t stacks_bytes; /* Bytes of the chunks before that have its stacks. */
  size_t stacks_max;   /* So many at most; set by init to the buffer's size. */
  size_t reserve;      /* Room for all counters. */
  uint64_t age_us;     /* Age of a chunk to flush; 0: STREAM_CHUNK_US. */
  uint64_t time_us;    /* Time of the last sample or context. */
  uint64_t typical_us; /* Typical time between samples. */
  uint64_t step_us;    /* Subtracted from the times of this chunk. */
  uint32_t ref_epoch;  /* Number of the chunk (or retry). */
  int nevent;          /* Events up to the highest index. */
  StreamEvent event[SPF_EVENTS_MAX];
  StreamRef ref[BATCH_REFS];
} Stream;

/* Start a stream into a buffer, in memory that is zero or was a stream. session: its
** number in the writer's file, from 0. If queue is set, the writer must be
** lj_chunkqueue_put, and the buffer the first one of the queue. VM thread.
*/
LJ_FUNC void lj_stream_init(Stream *s, Symtab *st, uint64_t *counters, uint32_t tid,
			    uint8_t *buf, size_t cap, luam_Sysprof_writer writer, void *ctx,
			    uint32_t session);

/* Append a fact about the profile. Only between init and begin. VM thread. */
LJ_FUNC void lj_stream_meta(Stream *s, const char *key, const char *value);

/* Append the event of samples with this index, below SPF_EVENTS_MAX. counters:
** SPF_EVENT__MAX of them. Only between init and begin. VM thread.
*/
LJ_FUNC void lj_stream_event(Stream *s, int index, const EventSpec *spec,
			     uint64_t *counters);

/* Append the name of the samples' thread. Between init and begin, or after a move. VM thread. */
LJ_FUNC void lj_stream_thread(Stream *s, const char *name);

/* The next samples are of another thread. Waits for the writer. VM thread. */
LJ_FUNC void lj_stream_move(Stream *s, uint32_t tid);

/* Append a sample of a batch, with the words of its two sides. Returns 0, or without room
** SPF_COUNTER_LOST_*, which the caller counts.
*/
LJ_FUNC int lj_stream_sample(Stream *s, const Batch *b, const RawSample *r,
			     const FrameSpan *lua, const FrameSpan *host);

/* Note the definition of labels or of a text, which is in the batch at an offset. */
LJ_FUNC void lj_stream_note(Stream *s, const Batch *b, uint32_t at);

/* Append another definition's record. Returns 0 if there is no room. */
LJ_FUNC int lj_stream_record(Stream *s, const uint8_t *record, size_t len);

/* Append the record of an object that is loaded now. Earlier stacks are void: the same
** addresses have other code.
*/
LJ_FUNC void lj_stream_module(Stream *s, const uint8_t *record, size_t len);

/* Is the current chunk old enough to be flushed with the next sample? */
LJ_FUNC int lj_stream_isdue(const Stream *s, uint64_t time_us);

/* Has the current chunk samples that the handler should have flushed? Any thread. */
LJ_FUNC int lj_stream_isoverdue(const Stream *s, uint64_t time_us);

/* Flush the current chunk into the queue. The holder of the sampler. */
LJ_FUNC void lj_stream_handover(Stream *s);

/* From here on, the writer gets chunks at once. A full one that waits goes first. VM thread. */
LJ_FUNC void lj_stream_direct(Stream *s);

/* Append the load map, and flush. Returns 0, or the errno of a failed writer. VM thread. */
LJ_FUNC int lj_stream_begin(Stream *s);

/* Append the names of all functions so far, and flush: the reader can read the file up to
** here. The stream goes on. Returns as lj_stream_begin. VM thread.
*/
LJ_FUNC int lj_stream_dump(Stream *s);

/* Append the names and the end, and flush. Returns as lj_stream_begin. VM thread. */
LJ_FUNC int lj_stream_end(Stream *s);

#endif
