/*
** A stream ends while a chunk waits in the queue. If the writer fails or ends the stream
** there, the samples that were lost are counted, exactly.
*/

#include <errno.h>

#include "profile/stream/lj_stream.h"
#include "check.h"
#include "test_batch.h"
#include "test_event.h"

#define CHUNK    4096
#define IN_QUEUE 50 /* Samples of the first chunk. */
#define IN_LAST  7  /* Of the one that the end writes. */

static Stream stream;
static Symtab symtab;
static SafeLoad peek;
static ChunkQueue queue;
static uint64_t counters[SPF_COUNTER__MAX], of_event[SPF_EVENT__MAX];
static uint8_t buf[CHUNKQUEUE_BUFFERS * CHUNK];
static uint64_t now;
static int writes, end_at, fail_at;

static size_t writer(const void **data, size_t len, void *ctx)
{
  (void)ctx;
  writes++;
  if (writes == end_at) *data = NULL;
  if (writes != fail_at) return len;
  errno = ENOSPC;
  return 0;
}

static void sample(void)
{
  static FrameList lua, host;
  FrameSpan lua_span, host_span;
  lj_framelist_reset(&lua);
  lj_framelist_reset(&host);
  lj_framelist_push(&host, frame_word(SPF_FRAME_HOST, 0x1234));
  lj_framelist_finish(&lua);
  lj_framelist_finish(&host);
  lua_span = lj_framelist_span(&lua);
  host_span = lj_framelist_span(&host);
  now += 1000;
  CHECK(!lj_stream_sample(&stream, &batch, raw_sample(0, SPF_VMST_CFUNC, now, 1000),
			  &lua_span, &host_span));
}

/* The chunk in the queue is the second that is written, the last is the third. */
static void run(int end, int fail, int err, uint64_t lost)
{
  int i;
  writes = 0;
  end_at = end;
  fail_at = fail;
  now = 0;
  counters[SPF_COUNTER_LOST_WRITER] = 0;
  lj_chunkqueue_init(&queue, buf, sizeof(buf), writer, NULL);
  stream.queue = &queue;
  lj_stream_init(&stream, &symtab, counters, 1, buf, queue.size, lj_chunkqueue_put, &queue,
		 0);
  lj_stream_event(&stream, 0, event_spec("wall", SPF_UNIT_US, 1000000), of_event);
  symtab.loadmap.pk = &peek;
  CHECK_EQ(lj_stream_begin(&stream), 0);
  CHECK_EQ(writes, 1);
  for (i = 0; i < IN_QUEUE; i++) sample();
  CHECK(!lj_chunkqueue_ispending(&queue));
  now += 5000000; /* The chunk is old enough. */
  sample();
  CHECK(lj_chunkqueue_ispending(&queue));
  for (i = 0; i < IN_LAST; i++) sample();
  CHECK_EQ(lj_stream_end(&stream), err);
  CHECK_EQ(queue.lost + counters[SPF_COUNTER_LOST_WRITER], lost);
  CHECK_EQ(counters[SPF_COUNTER_LOST_QUEUE], 0);
}

int main(void)
{
  run(0, 0, 0, 0);
  run(2, 0, 0, IN_LAST);                     /* Ends after the first. */
  run(3, 0, 0, 0);                           /* After the last: it was taken. */
  run(0, 2, ENOSPC, IN_QUEUE + 1 + IN_LAST); /* Fails at the first, */
  run(0, 3, ENOSPC, IN_LAST);                /* at the last. */
  return check_status();
}
