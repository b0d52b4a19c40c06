/*
** Queue of full chunks, from the handler that fills them to who writes them.
**
** The handler hands a full buffer in and gets an empty one, without a system call
** and without waiting. What is in the queue is written outside of the handler: by
** the VM at its safe point, by the helper thread, or by who ends the stream. One
** of them at a time: a claim is taken and given back by the same thread, never in
** the handler, and nobody but the end of the stream waits for it.
**
** Which buffers are free is a set of bits: taken by the handler, added to by who
** has written. So few buffers are touched as long as the writer is fast. Allocates
** nothing.
*/

#ifndef _LJ_CHUNKQUEUE_H
#define _LJ_CHUNKQUEUE_H

#include "lj_def.h"
#include "lmisclib.h"

#define CHUNKQUEUE_BUFFERS LUAM_SYSPROF_FLUSH_BUFFERS

/* A full buffer. */
typedef struct QueuedChunk {
  uint32_t index;   /* Which one. */
  uint32_t samples; /* In it. */
  size_t len;       /* Bytes in it. */
} QueuedChunk;

typedef struct ChunkQueue {
  /* Set before the start. */
  uint8_t *mem; /* All buffers, one after the other. */
  size_t size;  /* Of each. */
  luam_Sysprof_writer writer;
  void *ctx; /* The writer's. */
  /* By who fills: the handler, or nobody else while there are no ticks. */
  int outside;      /* Not in the handler: write at once. */
  uint32_t current; /* Buffer that is being filled. */
  uint32_t samples; /* In the next chunk; set by the stream. */
  /* Between who fills and who writes. */
  QueuedChunk chunk[CHUNKQUEUE_BUFFERS]; /* From tail to head, by their number. */
  uint32_t head;                         /* Chunks handed in; by who fills. */
  uint32_t tail;                         /* Chunks written; by who writes. */
  uint32_t free;                         /* Set of buffers that are free. */
  int err;                               /* errno of the writer's failure, or 0. */
  int ended;                             /* The writer has ended the stream. */
  uint64_t lost;                         /* Samples that it did not take from the queue. */
  /* By who has claimed it. */
  int holder;       /* Its thread, 0: nobody. */
  int cancel_state; /* Of that thread before. */
} ChunkQueue;

/* Make the buffers out of len bytes of memory; the first one is filled first. Not in
** the handler.
*/
LJ_FUNC void lj_chunkqueue_init(ChunkQueue *q, uint8_t *mem, size_t len,
				luam_Sysprof_writer writer, void *ctx);

/* A writer for lj_wbuf, ctx is the queue. Only with room. Async-signal-safe unless
** outside is set: then all that is in the queue is written before, and the chunk.
*/
LJ_FUNC size_t lj_chunkqueue_put(const void **data, size_t len, void *ctx);

/* Take the right to write, if there is something to write and nobody else has it.
** The thread cannot be cancelled until lj_chunkqueue_release. Not in the handler.
*/
LJ_FUNC int lj_chunkqueue_claim(ChunkQueue *q);

/* The same whether there is something to write or not; waits for it. */
LJ_FUNC void lj_chunkqueue_wait(ChunkQueue *q);

/* Write what is in the queue now. Needs the claim. Keeps no lock. */
LJ_FUNC void lj_chunkqueue_drain(ChunkQueue *q);

/* Give the claim back: from now on another thread may end the queue. */
LJ_FUNC void lj_chunkqueue_release(ChunkQueue *q);

/* Nobody can claim it any more: wait for who still has it. */
LJ_FUNC void lj_chunkqueue_end(ChunkQueue *q);

/* May a chunk be handed in? Also if the writer has failed, which it is told then. */
static LJ_AINLINE int lj_chunkqueue_hasroom(const ChunkQueue *q)
{
  return q->outside || __atomic_load_n(&q->free, __ATOMIC_RELAXED) != 0 ||
	 __atomic_load_n(&q->err, __ATOMIC_RELAXED) != 0;
}

/* Is there something to write? */
static LJ_AINLINE int lj_chunkqueue_ispending(const ChunkQueue *q)
{
  return __atomic_load_n(&q->head, __ATOMIC_RELAXED) !=
	 __atomic_load_n(&q->tail, __ATOMIC_RELAXED);
}

#endif
