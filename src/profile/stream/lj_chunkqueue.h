/*
** Lock-free queue of full chunks: the handler produces, one writer at a time consumes.
** Context: any thread; see the functions.
**
** The handler puts a full buffer in and gets an empty one, without a system call and
** without waiting. The writer is the VM at its safe point, the background thread, or the
** end of the stream. A writer first claims the queue, and releases it in the same thread,
** never in the handler. Only the end of the stream waits for a claim.
**
** A set of bits holds the free buffers. The handler takes from it, the writer adds to it.
** So a fast writer keeps the number of touched buffers small. Allocates nothing.
*/

#ifndef _LJ_CHUNKQUEUE_H
#define _LJ_CHUNKQUEUE_H

#include "lj_def.h"
#include "lmisclib.h"

#define CHUNKQUEUE_BUFFERS LUAM_SYSPROF_FLUSH_BUFFERS

/* A full buffer. */
typedef struct QueuedChunk {
  uint32_t index;   /* Number of the buffer. */
  uint32_t samples; /* Samples in it. */
  size_t len;       /* Bytes in it. */
} QueuedChunk;

typedef struct ChunkQueue {
  /* Set before the start. */
  uint8_t *mem; /* All buffers, one after the other. */
  size_t size;  /* Of each. */
  luam_Sysprof_writer writer;
  void *ctx; /* The writer's. */
  /* Of the producer: the holder of the sampler. */
  int outside;      /* Not in the handler: write at once. */
  uint32_t current; /* Buffer that the producer fills. */
  uint32_t samples; /* In the next chunk; set by the stream. */
  /* Of both. */
  QueuedChunk chunk[CHUNKQUEUE_BUFFERS]; /* From tail to head. */
  uint32_t head;                         /* Chunks put in; set by the producer. */
  uint32_t tail;                         /* Chunks written; set by the writer. */
  uint32_t free;                         /* Set of the free buffers. */
  int err;                               /* errno of the writer's failure, or 0. */
  int ended;                             /* The writer has ended the stream. */
  uint64_t lost;                         /* Samples of the chunks that failed. */
  /* Of the holder of the claim. */
  int holder;       /* Its thread, 0: nobody. */
  int cancel_state; /* Of that thread before. */
} ChunkQueue;

/* Make the buffers out of len bytes of memory; the producer begins with the first one.
** VM thread.
*/
LJ_FUNC void lj_chunkqueue_init(ChunkQueue *q, uint8_t *mem, size_t len,
				luam_Sysprof_writer writer, void *ctx);

/* A writer for lj_wbuf, ctx is the queue. Needs lj_chunkqueue_hasroom. Handler; if outside
** is set, VM thread: then it writes the whole queue, and the chunk.
*/
LJ_FUNC size_t lj_chunkqueue_put(const void **data, size_t len, void *ctx);

/* Claim the queue, if it has a chunk and nobody else holds it. Until lj_chunkqueue_release,
** the thread cannot be cancelled. Any thread, not in the handler.
*/
LJ_FUNC int lj_chunkqueue_claim(ChunkQueue *q);

/* Claim the queue, even an empty one. Waits for its holder. */
LJ_FUNC void lj_chunkqueue_wait(ChunkQueue *q);

/* Write the chunks that are in the queue now. Needs the claim. */
LJ_FUNC void lj_chunkqueue_drain(ChunkQueue *q);

/* Release the claim: from now on another thread may end the queue. */
LJ_FUNC void lj_chunkqueue_release(ChunkQueue *q);

/* Wait for the last holder, when no thread can claim the queue again. */
LJ_FUNC void lj_chunkqueue_end(ChunkQueue *q);

/* Does the queue take a chunk? It does after a failure, to report that. Handler. */
static LJ_AINLINE int lj_chunkqueue_hasroom(const ChunkQueue *q)
{
  return q->outside || __atomic_load_n(&q->free, __ATOMIC_RELAXED) != 0 ||
	 __atomic_load_n(&q->err, __ATOMIC_RELAXED) != 0;
}

/* Does the queue have a chunk? Any thread. */
static LJ_AINLINE int lj_chunkqueue_ispending(const ChunkQueue *q)
{
  return __atomic_load_n(&q->head, __ATOMIC_RELAXED) !=
	 __atomic_load_n(&q->tail, __ATOMIC_RELAXED);
}

#endif
