/* The stream flushes a chunk at the age of 10 seconds, and before that each time the
** profile is twice as old. But while another chunk waits in the queue, it flushes none:
** each would take a buffer, however small. Then a program that does not write for a
** minute would lose samples.
*/

#include "profile/stream/lj_stream.h"
#include "check.h"
#include "test_batch.h"
#include "test_event.h"

#define CHUNK (16 * 1024)

static Stream stream;
static Symtab symtab;
static SafeLoad peek;
static ChunkQueue queue;
static uint64_t counters[SPF_COUNTER__MAX], of_event[SPF_EVENT__MAX];
static uint8_t buf[CHUNKQUEUE_BUFFERS * CHUNK];
static int writes;

static size_t writer(const void **data, size_t len, void *ctx)
{
  (void)data;
  (void)ctx;
  writes++;
  return len;
}

/* A sample each second. Returns the seconds until something is handed out, limit if
** nothing is.
*/
static int seconds(uint64_t *now, int limit)
{
  static FrameList lua, host;
  FrameSpan lua_span, host_span;
  uint32_t head = queue.head;
  int i, before = writes;
  lj_framelist_reset(&lua);
  lj_framelist_reset(&host);
  lj_framelist_push(&host, frame_word(SPF_FRAME_HOST, 0x1234));
  lj_framelist_finish(&lua);
  lj_framelist_finish(&host);
  lua_span = lj_framelist_span(&lua);
  host_span = lj_framelist_span(&host);
  for (i = 1; i < limit && writes == before && queue.head == head; i++) {
    *now += 1000000;
    CHECK(!lj_stream_sample(&stream, &batch, raw_sample(0, SPF_VMST_CFUNC, *now, 1000000),
			    &lua_span, &host_span));
  }
  return i;
}

static void drain(void)
{
  REQUIRE(lj_chunkqueue_claim(&queue));
  lj_chunkqueue_drain(&queue);
  lj_chunkqueue_release(&queue);
}

int main(void)
{
  uint64_t now = 0;
  int n;
  lj_chunkqueue_init(&queue, buf, sizeof(buf), writer, NULL);
  stream.queue = &queue;
  lj_stream_init(&stream, &symtab, counters, 1, buf, queue.size, lj_chunkqueue_put, &queue,
		 0);
  lj_stream_event(&stream, 0, event_spec("wall", SPF_UNIT_US, 1000000), of_event);
  symtab.loadmap.pk = &peek;
  CHECK_EQ(lj_stream_begin(&stream), 0);
  CHECK_EQ(seconds(&now, 100), 2); /* The first one. */
  CHECK(lj_chunkqueue_ispending(&queue));
  CHECK_EQ(seconds(&now, 100), 100); /* More than nine times that age. */
  drain();
  CHECK_EQ(seconds(&now, 100), 2); /* The next sample. */
  drain();
  n = seconds(&now, 100);
  CHECK(n > 5 && n < 20);
  drain();
  /* Without a queue: at that age, each. */
  stream.queue = NULL;
  queue.head = queue.tail;
  lj_stream_init(&stream, &symtab, counters, 1, buf, CHUNK, writer, NULL, 0);
  symtab.loadmap.pk = &peek;
  CHECK_EQ(lj_stream_begin(&stream), 0);
  for (n = 0, now = 0; n < 7; n++) {
    static const uint64_t at[7] = { 1, 2, 4, 8, 16, 26, 36 };
    seconds(&now, 100);
    CHECK_EQ(now, at[n] * 1000000);
  }
  CHECK_EQ(counters[SPF_COUNTER_LOST_QUEUE], 0);
  return check_status();
}
