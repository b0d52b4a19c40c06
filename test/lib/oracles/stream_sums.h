/*
** Sums of a stream by session: samples and weights of each event, the stream's totals, and
** whether it is complete. Follows the description of the format, and shares no code with
** the profiler or the reader.
*/

#ifndef STREAM_SUMS_H
#define STREAM_SUMS_H

#include "chunks.h"
#include "check.h"

#define SUMS_SESSIONS 256
#define SUMS_EVENTS   16
#define SUMS_COUNTERS 384

/* Counters, as the format numbers them. */
#define SUMS_LOST_BUFFER              16
#define SUMS_LOST_WRITER              17
#define SUMS_LOST_NESTED              18
#define SUMS_LOST_QUEUE               29
#define SUMS_LUA_NOT_VM               (32 + 5)
#define SUMS_OF_EVENT(event, counter) (128 + 16 * (event) + (counter))
#define SUMS_TOTAL(event)             SUMS_OF_EVENT(event, 0)
#define SUMS_OVERRUNS(event)          SUMS_OF_EVENT(event, 4)

typedef struct SessionSums {
  uint32_t number;
  uint64_t tid, first_tid; /* Thread of the last chunk, and of the first one. */
  uint32_t chunks;
  uint64_t samples[SUMS_EVENTS], weight[SUMS_EVENTS];
  uint64_t others
    [SUMS_EVENTS]; /* Of the weights, those of threads that were not sampled: thread 0. */
  int is_others;   /* The last context is of these. */
  uint64_t state[16]; /* Samples in each state of the VM. */
  uint64_t counter[SUMS_COUNTERS];
  int fields[SUMS_EVENTS];      /* Of the samples of each event. */
  int is_count[SUMS_EVENTS];    /* The unit is not time, */
  uint64_t period[SUMS_EVENTS]; /* so weights are less the period. */
  char thread[32];              /* Its name. */
  int ended;
} SessionSums;

typedef struct StreamSums {
  int n;
  SessionSums s[SUMS_SESSIONS];
  const char *fault; /* What is wrong with the stream, or NULL. */
} StreamSums;

static inline SessionSums *sums_session(StreamSums *ss, uint64_t number)
{
  int i;
  for (i = 0; i < ss->n; i++)
    if (ss->s[i].number == number) return &ss->s[i];
  REQUIRE(ss->n < SUMS_SESSIONS);
  memset(&ss->s[ss->n], 0, sizeof(SessionSums));
  ss->s[ss->n].number = (uint32_t)number;
  return &ss->s[ss->n++];
}

/* Read the ULEB128 at *p, and move *p behind it. */
static inline uint64_t sums_uleb(const uint8_t **p, const uint8_t *end)
{
  uint64_t v = 0;
  size_t n = chunks_uleb(*p, (size_t)(end - *p), &v);
  *p = n ? *p + n : end;
  return v;
}

/* Read a difference D: D * 2, or -D * 2 - 1 if D is negative. */
static inline int64_t sums_signed(const uint8_t **p, const uint8_t *end)
{
  uint64_t v = sums_uleb(p, end);
  return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static inline void sums_event(SessionSums *s, const uint8_t *p, const uint8_t *end)
{
  uint64_t index = sums_uleb(&p, end), len = sums_uleb(&p, end);
  REQUIRE(index < SUMS_EVENTS);
  p += len;
  s->is_count[index] = sums_uleb(&p, end) != 0;
  s->period[index] = sums_uleb(&p, end);
  for (s->fields[index] = 0; p < end; s->fields[index]++) {
    sums_uleb(&p, end);
    len = sums_uleb(&p, end);
    p += len;
  }
}

static inline void sums_definition(StreamSums *ss, SessionSums *s, int tag,
				   const uint8_t *p, const uint8_t *end)
{
  if (s->ended) ss->fault = "a record after the end of its session";
  if (tag == 0x08) {
    while (p < end) {
      uint64_t id = sums_uleb(&p, end), value = sums_uleb(&p, end);
      if (id < SUMS_COUNTERS) s->counter[id] = value;
    }
  } else if (tag == 0x0a) {
    sums_event(s, p, end);
  } else if (tag == 0x09) {
    s->ended = 1;
  } else if (tag == 0x0b) {
    size_t len;
    sums_uleb(&p, end);
    len = (size_t)sums_uleb(&p, end);
    if (len < sizeof(s->thread) && len <= (size_t)(end - p)) {
      memcpy(s->thread, p, len);
      s->thread[len] = '\0';
    }
  }
}

/* Times of a chunk, in microseconds. */
typedef struct SumsTimes {
  uint64_t step, now, event[SUMS_EVENTS];
} SumsTimes;

static inline SessionSums *sums_context(StreamSums *ss, SumsTimes *times, const uint8_t *p,
					const uint8_t *end)
{
  uint64_t tid = sums_uleb(&p, end);
  SessionSums *s;
  int i;
  times->now = sums_uleb(&p, end);
  s = sums_session(ss, sums_uleb(&p, end));
  times->step = sums_uleb(&p, end);
  for (i = 0; i < SUMS_EVENTS; i++) times->event[i] = times->now;
  if (s->chunks == 0) s->first_tid = tid;
  s->is_others = tid == 0;
  if (tid != 0) s->tid = tid;
  return s;
}

static inline void sums_sample(SessionSums *s, SumsTimes *times, int tag, const uint8_t **p,
			       const uint8_t *end)
{
  int event = (tag >> 4) & 3, i;
  int64_t weight;
  if (event == 3) event += (int)sums_uleb(p, end);
  REQUIRE(event < SUMS_EVENTS);
  times->now += times->step + (uint64_t)sums_signed(p, end);
  weight = (int64_t)(s->is_count[event] ? s->period[event]
					: times->now - times->event[event]);
  if (!(tag & 0x40)) weight += sums_signed(p, end);
  times->event[event] = times->now;
  s->samples[event]++;
  s->state[tag & 15]++;
  s->weight[event] += (uint64_t)weight;
  if (s->is_others) s->others[event] += (uint64_t)weight;
  for (i = 0; i < s->fields[event]; i++) sums_uleb(p, end);
  sums_uleb(p, end);
  sums_uleb(p, end);
}

static inline void sums_chunk(StreamSums *ss, const Chunk *c)
{
  const uint8_t *p = c->records, *end = p + c->len;
  SessionSums *s = NULL;
  SumsTimes times;
  memset(&times, 0, sizeof(times));
  while (p < end) {
    int tag = *p++;
    uint64_t len;
    if (tag >= 0x80) {
      if (s) sums_sample(s, &times, tag, &p, end);
    } else {
      const uint8_t *payload;
      if (tag >= 0x20 && tag < 0x40) { /* Labels. */
	if (tag == 0x3f) sums_uleb(&p, end);
	continue;
      }
      if (tag >= 0x40) { /* A stack. */
	len = (uint64_t)(tag & 0x3f);
	if (len == 0x3f) len += sums_uleb(&p, end);
      } else {
	len = sums_uleb(&p, end);
      }
      if (len > (uint64_t)(end - p)) {
	ss->fault = "a record that is longer than its chunk";
	return;
      }
      payload = p;
      p += len;
      if (tag == 0x02) {
	s = sums_context(ss, &times, payload, p);
	if (payload == c->records + 2 && s->chunks++ != c->seq)
	  ss->fault = "a chunk is missing";
      } else if (s && tag < 0x40) {
	sums_definition(ss, s, tag, payload, p);
      }
    }
    if (!s) {
      ss->fault = "a chunk that names no session";
      return;
    }
  }
}

/* Add up a stream. Each session begins with a prologue. */
static inline void sums_read(StreamSums *ss, const uint8_t *bytes, size_t len)
{
  size_t at = 0;
  memset(ss, 0, sizeof(*ss));
  while (at < len && !ss->fault) {
    Chunk c;
    size_t n;
    if (len - at > 15 && memcmp(bytes + at, "ljs", 3) == 0) at += 15;
    n = chunks_read(bytes + at, len - at, &c);
    if (n == 0) {
      ss->fault = "a damaged chunk";
      return;
    }
    sums_chunk(ss, &c);
    at += n;
  }
}

static inline int sums_all_ended(const StreamSums *ss)
{
  int i;
  for (i = 0; i < ss->n; i++)
    if (!ss->s[i].ended) return 0;
  return ss->n > 0;
}

#endif
