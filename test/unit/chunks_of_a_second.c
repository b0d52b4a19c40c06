/*
** Chunks where a background thread writes. The handler flushes a chunk when its first sample
** is old enough, however long the chunk was empty; where no sample comes, the thread does.
** Such a chunk refers to the stacks of the chunks before it, until these are 10 seconds old
** or as long as a buffer.
*/

#include "profile/stream/lj_stream.h"
#include "check.h"
#include "test_batch.h"
#include "test_event.h"
#include "chunks.h"

#define CHUNK   (16 * 1024)
#define STEP_US 100000 /* Between two samples. */

static Stream stream;
static Symtab symtab;
static SafeLoad peek;
static uint64_t counters[SPF_COUNTER__MAX], of_event[SPF_EVENT__MAX];
static uint8_t buf[CHUNK];
static uint64_t now;
static struct {
  int n;           /* Chunks. */
  size_t bytes;    /* Of the last one. */
  uint64_t before; /* Stacks before the last one that it refers to. */
} seen;

static uint64_t num(const uint8_t **p)
{
  uint64_t v;
  *p += chunks_uleb(*p, 10, &v);
  return v;
}

static size_t writer(const void **data, size_t len, void *ctx)
{
  const uint8_t *p = (const uint8_t *)*data, *end;
  size_t prologue = seen.n == 0 ? SPF_PROLOGUE_SIZE : 0;
  Chunk c = { 0, NULL, 0 };
  uint64_t ignored = 0;
  int i;
  (void)ctx;
  REQUIRE(chunks_read(p + prologue, len - prologue, &c) == len - prologue);
  p = c.records;
  REQUIRE(*p == SPF_CONTEXT);
  end = p + 2 + p[1];
  for (i = 0, p += 2; i < 4; i++) ignored |= num(&p);
  seen.before = p < end ? num(&p) : 0;
  CHECK(p == end && ignored != 0);
  seen.bytes = len;
  seen.n++;
  return len;
}

/* A sample after some time, on a stack of this many frames near an address. */
static void sample(uint64_t after, uint64_t address, int depth)
{
  static FrameList lua, host;
  FrameSpan lua_span, host_span;
  lj_framelist_reset(&lua);
  lj_framelist_reset(&host);
  while (depth--)
    lj_framelist_push(&host, frame_word(SPF_FRAME_HOST, address + ((depth & 1u) << 20)));
  lj_framelist_finish(&lua);
  lj_framelist_finish(&host);
  lua_span = lj_framelist_span(&lua);
  host_span = lj_framelist_span(&host);
  now += after;
  CHECK(!lj_stream_sample(&stream, &batch, raw_sample(0, SPF_VMST_CFUNC, now, after),
			  &lua_span, &host_span));
}

static void begin(void)
{
  seen.n = 0;
  now = 0;
  lj_stream_init(&stream, &symtab, counters, 1, buf, CHUNK, writer, NULL, 0);
  stream.age_us = STREAM_THREAD_US;
  lj_stream_event(&stream, 0, event_spec("wall", SPF_UNIT_US, STEP_US * 1000), of_event);
  symtab.loadmap.pk = &peek;
  CHECK_EQ(lj_stream_begin(&stream), 0);
  CHECK_EQ(seen.n, 1);
}

/* Samples until a chunk is flushed. */
static int samples(void)
{
  int n = 0, before = seen.n;
  while (seen.n == before && n < 100) {
    sample(STEP_US, 0x1234, 1);
    n++;
  }
  return n;
}

int main(void)
{
  int i, k, new_tables;
  /* The age of the first sample counts: nine steps after it, more than 850 ms. */
  begin();
  CHECK_EQ(samples(), 10);
  CHECK_EQ(samples(), 10);
  now += 5000000;
  CHECK(!lj_stream_isoverdue(&stream, now));
  CHECK_EQ(samples(), 10);
  CHECK_EQ(stream.stacks.nstack, 1);
  /* Ten of these chunks have one table. The next one defines the stack again. */
  begin();
  for (i = 0, new_tables = 0; i < 60; i++) {
    CHECK_EQ(samples(), 10);
    CHECK_EQ(stream.stacks.nstack, (i + 1) % 10 != 0);
    CHECK_EQ(seen.before, i % 10 != 0);
    new_tables += seen.before == 0;
  }
  CHECK_EQ(new_tables, 6);
  /* Long stacks, each a new one, two in a chunk: the table ends with a buffer's length. */
  begin();
  for (i = 0, k = 0; i < 9; i++) {
    size_t bytes = 0;
    do {
      sample(STEP_US, (uint64_t)++k << 24, 500);
      sample(STREAM_THREAD_US, (uint64_t)++k << 24, 500);
      bytes += seen.bytes;
    } while (stream.stacks.nstack != 0 && k < 1000);
    CHECK(bytes >= CHUNK && bytes - seen.bytes < CHUNK);
  }
  /* Where no sample comes, the thread flushes a chunk that has samples. */
  begin();
  now += 5000000;
  CHECK(!lj_stream_isoverdue(&stream, now));
  lj_stream_handover(&stream);
  CHECK_EQ(seen.n, 1);
  sample(STEP_US, 0x1234, 1);
  CHECK(!lj_stream_isoverdue(&stream, now + STREAM_OVERDUE_US - 1));
  CHECK(lj_stream_isoverdue(&stream, now + STREAM_OVERDUE_US));
  lj_stream_handover(&stream);
  CHECK_EQ(seen.n, 2);
  lj_stream_handover(&stream);
  CHECK_EQ(seen.n, 2);
  CHECK_EQ(counters[SPF_COUNTER_LOST_BUFFER], 0);
  return check_status();
}
