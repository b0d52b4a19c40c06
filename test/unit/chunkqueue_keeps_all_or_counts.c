/* The queue of full buffers. Its writers, on any thread, write whole chunks in their
** order. The queue refuses a chunk that finds no buffer, and takes it later. It counts
** the chunks that the writer does not take. First step by step, then with one thread that
** fills and three that write.
*/

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "profile/stream/lj_chunkqueue.h"
#include "check.h"

#define SIZE   64
#define CHUNKS 200000

static ChunkQueue q;
static uint8_t mem[CHUNKQUEUE_BUFFERS * SIZE];
static uint8_t *buf; /* To be filled. */
static uint32_t next_in, next_out;
static int calls, fail_at, end_at, in_writer;

static size_t writer(const void **data, size_t len, void *ctx)
{
  const uint8_t *p = (const uint8_t *)*data;
  uint32_t n;
  size_t i;
  CHECK(ctx == &calls);
  CHECK_EQ(__atomic_fetch_add(&in_writer, 1, __ATOMIC_RELAXED), 0);
  memcpy(&n, p, sizeof(n));
  CHECK_EQ(n, next_out);
  CHECK(len >= sizeof(n) && len <= SIZE);
  for (i = sizeof(n); i < len; i++)
    if (p[i] != (uint8_t)n) break;
  CHECK(i == len);
  next_out++;
  calls++;
  __atomic_fetch_sub(&in_writer, 1, __ATOMIC_RELAXED);
  if (calls == fail_at) {
    errno = ENOSPC;
    return 0;
  }
  if (calls == end_at) *data = NULL;
  return calls % 2 ? len : len + 7; /* More than there is counts as all. */
}

static void begin(void)
{
  memset(&q, 0x5a, sizeof(q)); /* It was another queue. */
  lj_chunkqueue_init(&q, mem, sizeof(mem), writer, &calls);
  CHECK_EQ(q.size, SIZE);
  buf = mem;
  next_in = next_out = 0;
  calls = fail_at = end_at = 0;
}

/* Fill the buffer and hand it in. */
static size_t fill(uint32_t samples)
{
  const void *data = buf;
  size_t len = sizeof(next_in) + next_in % (SIZE - sizeof(next_in)), taken;
  memset(buf, (uint8_t)next_in, len);
  memcpy(buf, &next_in, sizeof(next_in));
  next_in++;
  q.samples = samples;
  taken = lj_chunkqueue_put(&data, len, &q);
  buf = (uint8_t *)data;
  return taken == len ? len : 0;
}

static int drain(void)
{
  if (!lj_chunkqueue_claim(&q)) return 0;
  lj_chunkqueue_drain(&q);
  lj_chunkqueue_release(&q);
  return 1;
}

/* -- Step by step -------------------------------------------------------------- */

static void test_full(void)
{
  int i, k;
  begin();
  CHECK(!drain());
  for (k = 0; k < 5; k++) {
    for (i = 0; i < CHUNKQUEUE_BUFFERS - 1; i++) {
      uint8_t *before = buf;
      CHECK(lj_chunkqueue_hasroom(&q));
      CHECK(fill(1));
      CHECK(buf != before && buf >= mem && buf < mem + sizeof(mem));
      CHECK(lj_chunkqueue_ispending(&q));
    }
    CHECK(!lj_chunkqueue_hasroom(&q));
    CHECK_EQ(calls, k * (CHUNKQUEUE_BUFFERS - 1)); /* Not by the handler. */
    CHECK(drain());
    CHECK_EQ(next_out, next_in);
    CHECK(!lj_chunkqueue_ispending(&q) && lj_chunkqueue_hasroom(&q));
  }
  CHECK_EQ(q.lost, 0);
}

/* A fast writer: the same two buffers all the time. */
static void test_reuse(void)
{
  int i;
  begin();
  for (i = 0; i < 20; i++) {
    CHECK(fill(1));
    CHECK(drain());
    CHECK(buf < mem + 2 * SIZE);
  }
}

/* Outside of the handler: what waits, then this one, at once. */
static void test_outside(void)
{
  uint8_t *before;
  begin();
  CHECK(fill(1) && fill(1));
  q.outside = 1;
  before = buf;
  CHECK(fill(1));
  CHECK(buf == before);
  CHECK_EQ(next_out, 3);
  CHECK(!lj_chunkqueue_ispending(&q));
}

static void test_failure(void)
{
  begin();
  fail_at = 2;
  CHECK(fill(10) && fill(20) && fill(40));
  CHECK(drain());
  CHECK_EQ(calls, 2); /* Not asked again. */
  CHECK_EQ(q.lost, 60);
  CHECK(lj_chunkqueue_hasroom(&q)); /* To tell it. */
  errno = 0;
  CHECK(!fill(80));
  CHECK_EQ(errno, ENOSPC);
  CHECK_EQ(q.lost, 60); /* The caller counts those. */
  q.outside = 1;
  CHECK(!fill(80));
  CHECK_EQ(errno, ENOSPC);
  CHECK_EQ(calls, 2);
}

static void test_end(void)
{
  begin();
  end_at = 1;
  CHECK(fill(10) && fill(20));
  CHECK(drain());
  CHECK_EQ(calls, 1);
  CHECK_EQ(q.lost, 20);
  CHECK(fill(40)); /* Taken, to nowhere. */
  CHECK(buf == NULL);
  CHECK_EQ(q.lost, 60);
}

/* One that has ended without giving the claim back, and one that has jumped out. */
static void *claims(void *arg)
{
  (void)arg;
  lj_chunkqueue_wait(&q);
  return NULL;
}

static void test_claims(void)
{
  pthread_t t;
  begin();
  CHECK(fill(1));
  lj_chunkqueue_wait(&q);
  CHECK(!lj_chunkqueue_claim(&q));
  lj_chunkqueue_wait(&q); /* This thread's own. */
  lj_chunkqueue_release(&q);
  REQUIRE(pthread_create(&t, NULL, claims, NULL) == 0);
  REQUIRE(pthread_join(t, NULL) == 0);
  CHECK(!lj_chunkqueue_claim(&q));
  lj_chunkqueue_end(&q);
  CHECK(lj_chunkqueue_claim(&q));
  lj_chunkqueue_release(&q);
}

/* -- Threads ------------------------------------------------------------------- */

static int done;

static void *drains(void *arg)
{
  (void)arg;
  while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE))
    if (!drain()) sched_yield();
  return NULL;
}

static void test_threads(void)
{
  pthread_t t[3];
  uint32_t refused = 0;
  int i;
  begin();
  for (i = 0; i < 3; i++) REQUIRE(pthread_create(&t[i], NULL, drains, NULL) == 0);
  while (next_in < CHUNKS) {
    if (lj_chunkqueue_hasroom(&q)) {
      CHECK(fill(1));
    } else {
      refused++;
      sched_yield();
    }
  }
  q.outside = 1;
  CHECK(fill(1));
  CHECK_EQ(next_out, next_in);
  __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
  for (i = 0; i < 3; i++) REQUIRE(pthread_join(t[i], NULL) == 0);
  CHECK_EQ(q.lost, 0);
  printf("%u chunks, refused %u times\n", next_in, refused);
}

int main(void)
{
  test_full();
  test_reuse();
  test_outside();
  test_failure();
  test_end();
  test_claims();
  test_threads();
  return check_status();
}
