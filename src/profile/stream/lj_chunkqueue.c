/*
** Lock-free queue of full chunks.
** Context: handler for lj_chunkqueue_put; see the header.
*/

#define lj_chunkqueue_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "profile/base/lj_osthread.h"
#include "profile/format/lj_wbuf.h"
#include "profile/stream/lj_chunkqueue.h"

#define WAIT_NS 1000000 /* Between two polls of the holder. */

void lj_chunkqueue_init(ChunkQueue *q, uint8_t *mem, size_t len, luam_Sysprof_writer writer,
			void *ctx)
{
  q->mem = mem;
  q->size = len / CHUNKQUEUE_BUFFERS;
  q->writer = writer;
  q->ctx = ctx;
  q->outside = 0;
  q->current = 0;
  q->samples = 0;
  q->head = q->tail = 0;
  q->free = (1u << CHUNKQUEUE_BUFFERS) - 2u;
  q->err = q->ended = q->holder = 0;
  q->lost = 0;
}

/* -- Write ------------------------------------------------------------------- */

/* Returns 0 if the writer has not taken the chunk. */
static int chunk_write(ChunkQueue *q, uint32_t index, size_t len)
{
  const void *data = q->mem + index * q->size;
  if (q->err || q->ended) return 0;
  errno = 0;
  if (!wbuf_alltaken(q->writer(&data, len, q->ctx), len)) {
    __atomic_store_n(&q->err, errno ? errno : EIO, __ATOMIC_RELEASE);
    return 0;
  }
  if (!data) __atomic_store_n(&q->ended, 1, __ATOMIC_RELEASE);
  return 1;
}

/* Leaves later chunks to the next writer, so that it ends. */
void lj_chunkqueue_drain(ChunkQueue *q)
{
  uint32_t head = __atomic_load_n(&q->head, __ATOMIC_ACQUIRE);
  uint32_t tail = q->tail;
  for (; tail != head; tail++) {
    const QueuedChunk *c = &q->chunk[tail % CHUNKQUEUE_BUFFERS];
    uint32_t index = c->index;
    if (!chunk_write(q, index, c->len))
      __atomic_fetch_add(&q->lost, c->samples, __ATOMIC_RELAXED);
    __atomic_fetch_or(&q->free, 1u << index, __ATOMIC_RELEASE);
    __atomic_store_n(&q->tail, tail + 1, __ATOMIC_RELEASE);
  }
}

/* -- Claims ------------------------------------------------------------------ */

static int claim_from(ChunkQueue *q, int holder)
{
  int state;
  /* A thread that is cancelled in a write would keep the claim. */
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  if (!__atomic_compare_exchange_n(&q->holder, &holder, lj_osthread_self(), 0,
				   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    pthread_setcancelstate(state, NULL);
    return 0;
  }
  q->cancel_state = state;
  return 1;
}

int lj_chunkqueue_claim(ChunkQueue *q)
{
  return lj_chunkqueue_ispending(q) && claim_from(q, 0);
}

/* If this thread holds the claim, a jump left the write. Other holders may have ended. */
void lj_chunkqueue_wait(ChunkQueue *q)
{
  static const struct timespec wait = { 0, WAIT_NS };
  while (!claim_from(q, 0)) {
    int holder = __atomic_load_n(&q->holder, __ATOMIC_RELAXED);
    if (holder && (holder == lj_osthread_self() || !lj_osthread_lives(holder)) &&
	claim_from(q, holder))
      break;
    nanosleep(&wait, NULL);
  }
}

void lj_chunkqueue_release(ChunkQueue *q)
{
  int state = q->cancel_state;
  __atomic_store_n(&q->holder, 0, __ATOMIC_RELEASE);
  pthread_setcancelstate(state, NULL);
}

void lj_chunkqueue_end(ChunkQueue *q)
{
  lj_chunkqueue_wait(q);
  lj_chunkqueue_release(q);
}

/* -- Fill -------------------------------------------------------------------- */

/* Put the full buffer into the queue and get an empty one. */
static void put_later(ChunkQueue *q, const void **data, size_t len)
{
  uint32_t set = __atomic_load_n(&q->free, __ATOMIC_ACQUIRE), index = 0;
  QueuedChunk *c = &q->chunk[q->head % CHUNKQUEUE_BUFFERS];
  while (!(set >> index & 1)) index++;
  __atomic_fetch_and(&q->free, ~(1u << index), __ATOMIC_RELAXED);
  c->index = q->current;
  c->samples = q->samples;
  c->len = len;
  __atomic_store_n(&q->head, q->head + 1, __ATOMIC_RELEASE);
  q->current = index;
  *data = q->mem + index * q->size;
}

/* Queue or write a chunk, unless the writer has failed or ended the stream. */
static size_t put(ChunkQueue *q, const void **data, size_t len)
{
  if (!__atomic_load_n(&q->err, __ATOMIC_ACQUIRE) &&
      !__atomic_load_n(&q->ended, __ATOMIC_ACQUIRE)) {
    if (!q->outside) put_later(q, data, len);
    else if (chunk_write(q, q->current, len) && q->ended) *data = NULL;
  } else if (q->ended) {
    __atomic_fetch_add(&q->lost, q->samples, __ATOMIC_RELAXED);
    *data = NULL;
  }
  errno = __atomic_load_n(&q->err, __ATOMIC_ACQUIRE);
  return errno ? 0 : len;
}

size_t lj_chunkqueue_put(const void **data, size_t len, void *ctx)
{
  ChunkQueue *q = (ChunkQueue *)ctx;
  if (!q->outside) return put(q, data, len);
  lj_chunkqueue_wait(q);
  lj_chunkqueue_drain(q);
  len = put(q, data, len);
  lj_chunkqueue_release(q);
  return len;
}
