/* Times, weights, events, fields, labels and stacks of samples come out of a stream as they
** went in, over many chunks, with the largest and smallest differences. So do marks, ends of
** things, and the counters of each event. Also through a queue that is
** sometimes full: then samples are lost, and only then. The decoder here follows the
** description of the format, and shares no code with the profiler.
*/

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/stream/lj_stream.h"
#include "check.h"
#include "test_batch.h"
#include "test_event.h"
#include "chunks.h"

#define SAMPLES     20000
#define SHAPES      700
#define DEPTH_MAX   90
#define DEEP        1000 /* Of the first ones, without near addresses. */
#define DEEP_SHAPES 14
#define CHUNK       (24 * 1024) /* A sample of two such stacks and a half. */
#define SESSION     77

typedef struct Shape {
  int n;
  uint64_t frame[DEEP];
} Shape;

#define NFIELDS 4
#define TEXTS   70 /* Ids of texts and of labels. More than a batch can have in its slots. */
#define ALLOC   2  /* The event with fields. */

typedef struct Expected {
  int event, state, lua, host; /* lua, host: index of a shape, or -1. */
  uint64_t time, weight, field[NFIELDS];
  uint32_t labels;
} Expected;

static const EventField fields[NFIELDS] = {
  { SPF_FIELD_COUNT, "objects" },
  { SPF_FIELD_THING, "object" },
  { SPF_FIELD_TEXT, "type" },
  { SPF_FIELD_NUMBER, "size" },
};

static Stream stream;
static Symtab symtab;
static SafeLoad peek;
static uint64_t counters[SPF_COUNTER__MAX], of_event[SPF_EVENTS_MAX][SPF_EVENT__MAX];
static uint64_t read_counter[SPF_COUNTER_EVENT + SPF_EVENTS_MAX * SPF_COUNTER_EVENT_STEP];
static ChunkQueue queue;
static uint8_t buf[CHUNKQUEUE_BUFFERS * CHUNK];
static Shape shape[SHAPES];
static Expected expected[SAMPLES];
static int nread, nchunks, nevents, nthreads, longest, nmarks, nends;

/* -- Decoder ---------------------------------------------------------------- */

static const uint8_t *p, *stop;

static uint64_t num(void)
{
  uint64_t v;
  size_t n = chunks_uleb(p, (size_t)(stop - p), &v);
  REQUIRE(n > 0);
  p += n;
  return v;
}

static int64_t diff(void)
{
  uint64_t v = num();
  return v & 1 ? -(int64_t)(v >> 1) - 1 : (int64_t)(v >> 1);
}

static int is_text(const char *s)
{
  uint64_t len = num();
  int same = (len == strlen(s) && memcmp(p, s, len) == 0);
  p += len;
  return same;
}

/* Texts and labels of a chunk: 1 if it has defined them. */
static uint8_t has_text[TEXTS], has_labels[TEXTS];
static uint64_t in_slot[BATCH_REFS]; /* Last definition of each slot in the chunk. */

/* Stacks of a chunk by number. Addresses only. */
static Shape *defined;
static int ndefined;

static const Shape *stack_of(uint64_t ref)
{
  static const Shape empty;
  if (ref == 0) return &empty;
  if (ref <= 2) {
    REQUIRE(ref <= (uint64_t)ndefined);
    return &defined[ndefined - (int)ref];
  }
  REQUIRE(ref - 2 <= (uint64_t)ndefined);
  return &defined[ref - 3];
}

static void read_stack(int tag)
{
  size_t len = (size_t)(tag & SPF_STACK_LENGTH);
  const Shape *base;
  const uint8_t *last;
  Shape *sh;
  uint64_t keep, above = 0;
  uint64_t i;
  if (len == SPF_STACK_LENGTH) len += num();
  last = p + len;
  if ((int)len > longest) longest = (int)len;
  base = stack_of(num());
  keep = num();
  REQUIRE(keep <= (uint64_t)base->n);
  REQUIRE(ndefined < 2 * SHAPES);
  sh = &defined[ndefined];
  sh->n = 0;
  for (i = 0; i < keep; i++) sh->frame[sh->n++] = above = base->frame[i];
  while (p < last) {
    uint64_t word = num(), v = word >> 4;
    if ((word & 15) == SPF_FRAME_NEAR)
      v = above + (v & 1 ? (uint64_t)(-(int64_t)(v >> 1) - 1) : v >> 1);
    else CHECK_EQ(word & 15, SPF_FRAME_HOST);
    REQUIRE(sh->n < DEEP);
    sh->frame[sh->n++] = above = v;
  }
  CHECK(p == last);
  ndefined++;
}

static int is_shape(uint64_t ref, int i)
{
  const Shape *sh = stack_of(ref);
  if (i < 0) return ref == 0;
  return sh->n == shape[i].n &&
	 memcmp(sh->frame, shape[i].frame, sizeof(uint64_t) * (size_t)sh->n) == 0;
}

/* The text of an id. */
static const char *text_of(uint32_t id)
{
  static char text[200];
  memset(text, 'a' + (int)id % 26, sizeof(text));
  text[1 + id * 2] = '\0';
  return text;
}

/* A chunk repeats a definition only after another one took its slot. */
static void check_repeats(int tag, uint64_t id)
{
  uint64_t *last = &in_slot[batch_refslot(tag, id)];
  CHECK(*last != batch_refkey(tag, id));
  *last = batch_refkey(tag, id);
}

static void read_event(const uint8_t *last)
{
  static const int units[] = { SPF_UNIT_US, SPF_UNIT_COUNT, SPF_UNIT_BYTES };
  static const char *const names[] = { "cpu-clock", "page-faults", "alloc", "other" };
  uint64_t index = num();
  int i;
  CHECK(is_text(names[index < 3 ? index : 3]));
  CHECK_EQ(num(), units[index < 3 ? index : 0]);
  CHECK_EQ(num(), index == 1 ? 100 : 1000000);
  for (i = 0; index == ALLOC && i < NFIELDS; i++) {
    CHECK_EQ(num(), fields[i].kind);
    CHECK(is_text(fields[i].name));
  }
  CHECK(p == last);
  nevents++;
}

static void read_definition(int tag)
{
  size_t len = (size_t)num();
  const uint8_t *last = p + len;
  if (tag == SPF_EVENT) {
    read_event(last);
  } else if (tag == SPF_TEXT) {
    uint64_t id = num();
    REQUIRE(id > 0 && id < TEXTS);
    CHECK(is_text(text_of((uint32_t)id)));
    has_text[id] = 1;
    check_repeats(tag, id);
  } else if (tag == SPF_LABELS) {
    uint64_t id = num();
    REQUIRE(id > 0 && id < TEXTS);
    CHECK(is_text("key") && is_text(text_of((uint32_t)id)));
    has_labels[id] = 1;
    check_repeats(tag, id);
  } else if (tag == SPF_MARK) {
    CHECK_EQ(num(), nmarks);
    CHECK_EQ(num(), SPF_MARK_DUMP);
    nmarks++;
  } else if (tag == SPF_ENDED) {
    CHECK_EQ(num(), ALLOC);
    CHECK_EQ(num(), SPF_ENDED_GONE);
    CHECK_EQ(num(), nends);
    CHECK_EQ(num(), 7);
    nends++;
  } else if (tag == SPF_COUNTERS) {
    while (p < last) {
      uint64_t id = num();
      REQUIRE(id < sizeof(read_counter) / sizeof(read_counter[0]));
      read_counter[id] = num();
    }
  } else if (tag == SPF_THREAD) {
    CHECK_EQ(num(), 4321);
    CHECK(is_text("worker"));
    nthreads++;
  }
  p = last;
}

static void read_chunk(const Chunk *c)
{
  uint64_t step, now, last[SPF_EVENTS_MAX], labels = 0;
  int i;
  memset(has_text, 0, sizeof(has_text));
  memset(has_labels, 0, sizeof(has_labels));
  memset(in_slot, 0, sizeof(in_slot));
  p = c->records;
  stop = p + c->len;
  CHECK_EQ(c->seq, nchunks);
  nchunks++;
  ndefined = 0;
  CHECK_EQ(*p, SPF_CONTEXT); /* The first record. */
  p += 2;
  CHECK_EQ(num(), 4321);
  now = num();
  CHECK_EQ(num(), SESSION);
  step = num();
  for (i = 0; i < SPF_EVENTS_MAX; i++) last[i] = now;
  while (p < stop) {
    int tag = *p++;
    if (tag >= SPF_SAMPLE) {
      const Expected *e = &expected[nread++];
      int event = (tag & SPF_SAMPLE_EVENT) >> 4;
      int64_t more = 0;
      uint64_t usual;
      REQUIRE(nread <= SAMPLES);
      if (event == SPF_EVENT_IN_TAG) event += (int)num();
      CHECK_EQ(event, e->event);
      CHECK_EQ(tag & SPF_SAMPLE_STATE, e->state);
      now += step + (uint64_t)diff();
      CHECK_EQ(now, e->time);
      if (!(tag & SPF_SAMPLE_WEIGHT_USUAL)) {
	more = diff();
	CHECK(more != 0);
      }
      usual = event == 1       ? 100 /* See read_event. */
	      : event == ALLOC ? 1000000
			       : now - last[event];
      CHECK_EQ(usual + (uint64_t)more, e->weight);
      last[event] = now;
      CHECK_EQ(labels, e->labels);
      for (i = 0; event == ALLOC && i < NFIELDS; i++) CHECK_EQ(num(), e->field[i]);
      if (event == ALLOC) CHECK(e->field[2] == 0 || has_text[e->field[2]]);
      CHECK(is_shape(num(), e->lua));
      CHECK(is_shape(num(), e->host));
    } else if (tag >= SPF_STACK) {
      read_stack(tag);
    } else if (tag >= SPF_LABELLED) {
      labels = (uint64_t)tag & SPF_LABELLED_ID;
      if (labels == SPF_LABELLED_ID) labels += num();
      REQUIRE(labels < TEXTS);
      CHECK(labels == 0 || has_labels[labels]);
    } else {
      read_definition(tag);
    }
  }
  CHECK(p == stop);
}

static size_t writer(const void **data, size_t len, void *ctx)
{
  const uint8_t *at = (const uint8_t *)*data;
  size_t n = len;
  Chunk c = { 0, NULL, 0 };
  (void)ctx;
  if (nchunks == 0) {
    at += SPF_PROLOGUE_SIZE;
    n -= SPF_PROLOGUE_SIZE;
  }
  REQUIRE(chunks_read(at, n, &c) == n);
  read_chunk(&c);
  return len;
}

/* -- Samples ---------------------------------------------------------------- */

static uint32_t seed = 1;

static uint32_t any(uint32_t n)
{
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % n;
}

/* Call paths that share beginnings, of all lengths; addresses near and far. */
static void make_shapes(void)
{
  int i, k;
  for (i = 0; i < SHAPES; i++) {
    Shape *sh = &shape[i];
    sh->n = i < DEEP_SHAPES ? DEEP : 1 + (int)any(i % 5 == 0 ? DEPTH_MAX : 12);
    for (k = 0; k < sh->n; k++) {
      if (i < DEEP_SHAPES) sh->frame[k] = (uint64_t)any(1u << 23) << 24 | any(1u << 24);
      else if (i > 0 && k < shape[i - 1].n && any(9) != 0 &&
	       (k == 0 || sh->frame[k - 1] == shape[i - 1].frame[k - 1]))
	sh->frame[k] = shape[i - 1].frame[k];
      else if (any(20) == 0) sh->frame[k] = any(2) ? 1 : ((uint64_t)1 << 47) - 1;
      else sh->frame[k] = 0x550000000000 + (any(2) ? any(1000) : any(1u << 24));
    }
  }
}

static FrameSpan frames_of(FrameList *fr, int i)
{
  int k;
  lj_framelist_reset(fr);
  for (k = i < 0 ? 0 : shape[i].n; k-- > 0;)
    lj_framelist_push(fr, frame_word(SPF_FRAME_HOST, shape[i].frame[k]));
  lj_framelist_finish(fr);
  return lj_framelist_span(fr);
}

/* Time since the sample before. */
static uint64_t interval(void)
{
  switch (any(12)) {
  case 0: return any(3);
  case 1: return any(20000);
  case 2: return any(400) == 0 ? ((uint64_t)1 << 40) + any(9) : 1000;
  case 3: return 1000 - 64 + any(128);
  default: return 1000 - 3 + any(6);
  }
}

static uint64_t weight_of(uint64_t since)
{
  switch (any(8)) {
  case 0: return 0;
  case 1: return any(1000);
  case 2: return any(100) == 0 ? (uint64_t)1 << 45 : 10000;
  case 3: return since + 1;
  case 4: return 100;
  default: return since;
  }
}

/* Labels for some time, and the fields of one event. */
static void set_fields(Expected *e)
{
  int i;
  memset(e->field, 0, sizeof(e->field));
  e->labels = any(3) == 0 ? 0 : any(TEXTS);
  if (e->event != ALLOC) return;
  for (i = 0; i < NFIELDS; i++) e->field[i] = any(9) == 0 ? (uint64_t)1 << 60 : any(300);
  e->field[2] = any(TEXTS);
}

/* Have the batch define a text or labels. */
static void define(int tag, uint32_t id)
{
  uint8_t payload[210];
  WBuf wb;
  uint32_t at = batch.used;
  if (id == 0) return;
  memset(&wb, 0, sizeof(wb));
  wb.buf = payload;
  wb.cap = sizeof(payload);
  if (tag == SPF_LABELS) lj_wbuf_str(&wb, "key", 3);
  lj_wbuf_str(&wb, text_of(id), strlen(text_of(id)));
  REQUIRE(lj_batch_ref(&batch, tag, id, payload, (uint32_t)wb.pos));
  if (batch.used > at) lj_stream_note(&stream, &batch, at);
}

/* Append what a sample refers to, and the sample. Batches are of ten samples. */
static int put(int i, const Expected *e, const FrameSpan *lua, const FrameSpan *host)
{
  RawSample *raw = raw_sample(e->event, e->state, e->time, e->weight);
  int lost;
  if (i % 10 == 0) lj_batch_reset(&batch);
  define(SPF_LABELS, e->labels);
  if (e->event == ALLOC) {
    define(SPF_TEXT, (uint32_t)e->field[2]);
    raw->head.nfield = NFIELDS;
    memcpy(rawsample_fields(raw), e->field, sizeof(e->field));
  }
  raw->labels = e->labels;
  lost = lj_stream_sample(&stream, &batch, raw, lua, host);
  if (lost) counters[lost]++;
  return !lost;
}

/* Append a mark or an end of a thing. Returns 1 if the stream has it. */
static int put_record(int tag, uint64_t a, uint64_t b, uint64_t c, int n)
{
  uint8_t bytes[64];
  WBuf wb;
  size_t mark;
  memset(&wb, 0, sizeof(wb));
  wb.buf = bytes;
  wb.cap = sizeof(bytes);
  mark = lj_wbuf_def_begin(&wb, (uint8_t)tag);
  lj_wbuf_uleb(&wb, a);
  lj_wbuf_uleb(&wb, b);
  if (n > 2) lj_wbuf_uleb(&wb, c);
  if (n > 2) lj_wbuf_uleb(&wb, 7);
  lj_wbuf_def_end(&wb, mark);
  return lj_stream_record(&stream, bytes, wb.pos);
}

static void put_events(void)
{
  int i, k;
  for (i = 0; i < SPF_EVENTS_MAX; i++) {
    EventSpec spec = *event_spec(i == 0   ? "cpu-clock"
				 : i == 1 ? "page-faults"
				 : i == 2 ? "alloc"
					  : "other",
				 i == 1   ? SPF_UNIT_COUNT
				 : i == 2 ? SPF_UNIT_BYTES
					  : SPF_UNIT_US,
				 i == 1 ? 100 : 1000000);
    if (i == ALLOC) {
      spec.field = fields;
      spec.nfield = NFIELDS;
    }
    lj_stream_event(&stream, i, &spec, of_event[i]);
    for (k = 0; k < SPF_EVENT__MAX; k++)
      of_event[i][k] = any(3) == 0 ? ((uint64_t)1 << 50) - any(9) : any(1000);
  }
}

static void check_counters(void)
{
  int i, k;
  for (i = 0; i < SPF_EVENTS_MAX; i++)
    for (k = 0; k < SPF_EVENT__MAX; k++)
      CHECK_EQ(read_counter[SPF_COUNTER_EVENT + i * SPF_COUNTER_EVENT_STEP + k],
	       of_event[i][k]);
}

/* Must the queue be written now? For a while rarely, so that it fills up. */
static int is_time_to_write(int i)
{
  return any((i / 4000) % 2 ? 4000 : 40) == 0;
}

/* Samples that were kept. */
static int round_trip(int queued)
{
  static FrameList lua, host;
  static uint64_t last[SPF_EVENTS_MAX];
  uint64_t now = 0;
  int i, kept = 0, marks = 0, ends = 0;
  nread = nchunks = nevents = nthreads = longest = nmarks = nends = 0;
  memset(read_counter, 0, sizeof(read_counter));
  memset(last, 0, sizeof(last));
  memset(counters, 0, sizeof(counters));
  if (queued) {
    lj_chunkqueue_init(&queue, buf, sizeof(buf), writer, NULL);
    stream.queue = &queue;
    lj_stream_init(&stream, &symtab, counters, 4321, buf, queue.size, lj_chunkqueue_put,
		   &queue, SESSION);
  } else {
    lj_stream_init(&stream, &symtab, counters, 4321, buf, CHUNK, writer, NULL, SESSION);
  }
  put_events();
  lj_stream_thread(&stream, "worker");
  symtab.loadmap.pk = &peek;
  CHECK_EQ(lj_stream_begin(&stream), 0);
  for (i = 0; i < SAMPLES; i++) {
    Expected *e = &expected[kept];
    FrameSpan lua_span, host_span;
    int many = (i / 1000) % 4 == 3; /* Now and then, nearly all are new. */
    now += interval();
    e->event = any(10) == 0 ? (int)any(SPF_EVENTS_MAX) : 0;
    e->state = (int)any(SPF_VMST__MAX);
    e->time = now;
    e->weight = weight_of(now - last[e->event]);
    e->lua = any(30) == 0 ? -1 : DEEP_SHAPES + (int)any(many ? SHAPES - DEEP_SHAPES : 20);
    e->host = any(30) == 0 ? -1 : DEEP_SHAPES + (int)any(many ? SHAPES - DEEP_SHAPES : 150);
    if (queued && !lj_chunkqueue_hasroom(&queue)) { /* More than the free room. */
      e->lua = (int)any(DEEP_SHAPES);
      e->host = (int)any(DEEP_SHAPES);
    }
    set_fields(e);
    lua_span = frames_of(&lua, e->lua);
    host_span = frames_of(&host, e->host);
    if (any(50) == 0) marks += put_record(SPF_MARK, (uint64_t)marks, SPF_MARK_DUMP, 0, 2);
    if (any(50) == 0)
      ends += put_record(SPF_ENDED, ALLOC, SPF_ENDED_GONE, (uint64_t)ends, 4);
    if (put(i, e, &lua_span, &host_span)) {
      last[e->event] = now;
      kept++;
    } else {
      CHECK(queued);
    }
    if (queued && is_time_to_write(i) && lj_chunkqueue_claim(&queue)) {
      lj_chunkqueue_drain(&queue);
      lj_chunkqueue_release(&queue);
    }
  }
  CHECK_EQ(lj_stream_end(&stream), 0);
  CHECK_EQ(nread, kept);
  CHECK_EQ(counters[SPF_COUNTER_LOST_QUEUE], SAMPLES - kept);
  CHECK_EQ(nevents, SPF_EVENTS_MAX);
  CHECK_EQ(nmarks, marks);
  CHECK_EQ(nends, ends);
  CHECK(marks > SAMPLES / 100 && ends > SAMPLES / 100);
  check_counters();
  CHECK_EQ(nthreads, 1);
  CHECK(nchunks > 10);
  CHECK(longest > SPF_STACK_LENGTH + 128);
  return kept;
}

static size_t ignore(const void **data, size_t len, void *ctx)
{
  (void)data;
  (void)ctx;
  return len;
}

/* What the stream subtracts from the times between samples, at first. */
static uint64_t first_step(int index, int unit)
{
  lj_stream_init(&stream, &symtab, counters, 4321, buf, CHUNK, ignore, NULL, SESSION);
  lj_stream_event(&stream, index, event_spec("name", unit, 1000000), of_event[index]);
  symtab.loadmap.pk = &peek;
  CHECK_EQ(lj_stream_begin(&stream), 0);
  return stream.step_us;
}

int main(void)
{
  int kept;
  defined = (Shape *)calloc(2 * SHAPES, sizeof(Shape));
  REQUIRE(defined);
  make_shapes();
  CHECK_EQ(first_step(0, SPF_UNIT_US), 1000);
  CHECK_EQ(first_step(1, SPF_UNIT_US), 0);
  CHECK_EQ(first_step(0, SPF_UNIT_COUNT), 0);
  CHECK_EQ(round_trip(0), SAMPLES);
  kept = round_trip(1);
  printf("%d of %d samples kept by a queue\n", kept, SAMPLES);
  CHECK(kept < SAMPLES && kept > SAMPLES / 2);
  free(defined);
  return check_status();
}
