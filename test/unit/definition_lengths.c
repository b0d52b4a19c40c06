/* A definition's length takes one byte or two, at each boundary; a longer definition is
** not written. A short record has the first part of its length in its tag, and needs no
** room for more.
** BASE: none, its modules know no VM
*/

#include "profile/format/lj_wbuf.h"
#include "check.h"
#include "chunks.h"

static uint8_t buf[70000];
static Chunk chunk;

static size_t writer(const void **data, size_t len, void *ctx)
{
  (void)ctx;
  REQUIRE(chunks_read((const uint8_t *)*data + SPF_PROLOGUE_SIZE, len - SPF_PROLOGUE_SIZE,
		      &chunk));
  return len;
}

static void define(size_t len)
{
  WBuf wb;
  uint64_t v;
  size_t mark, i, n;
  lj_wbuf_init(&wb, buf, sizeof(buf), 0, writer, NULL);
  lj_wbuf_byte(&wb, 0x81); /* Something before it, that must stay. */
  CHECK(lj_wbuf_commit(&wb));
  mark = lj_wbuf_def_begin(&wb, SPF_META);
  for (i = 0; i < len; i++) lj_wbuf_byte(&wb, (uint8_t)(i * 7 + 1));
  lj_wbuf_def_end(&wb, mark);
  CHECK_EQ(lj_wbuf_commit(&wb), len < 16384);
  lj_wbuf_byte(&wb, 0x82); /* And after it. */
  CHECK(lj_wbuf_commit(&wb));
  CHECK(lj_wbuf_flush(&wb));
  CHECK_EQ(chunk.records[0], 0x81);
  CHECK_EQ(chunk.records[chunk.len - 1], 0x82);
  if (len >= 16384) {
    CHECK_EQ(chunk.len, 2);
    return;
  }
  CHECK_EQ(chunk.records[1], SPF_META);
  n = chunks_uleb(chunk.records + 2, chunk.len - 2, &v);
  CHECK_EQ(n, len < 128 ? 1 : 2);
  CHECK_EQ(v, len);
  CHECK_EQ(chunk.len, 3 + n + len);
  for (i = 0; i < len; i++)
    if (chunk.records[2 + n + i] != (uint8_t)(i * 7 + 1)) break;
  CHECK_EQ(i, len);
}

#define TAG  0x40
#define MASK 0x3f

/* A short record in a buffer that leaves room for so many bytes. */
static void define_short(size_t len, size_t room)
{
  WBuf wb;
  uint64_t more = 0;
  size_t mark, i, n = 0;
  size_t need = len < MASK ? 0 : len - MASK < 128 ? 1 : len - MASK < 16384 ? 2 : 3;
  size_t head = SPF_PROLOGUE_SIZE + SPF_CHUNK_HEADER + 2; /* With the tag. */
  lj_wbuf_init(&wb, buf, head + len + room, 0, writer, NULL);
  lj_wbuf_byte(&wb, 0x81);
  CHECK(lj_wbuf_commit(&wb));
  mark = lj_wbuf_short_begin(&wb);
  for (i = 0; i < len; i++) lj_wbuf_byte(&wb, (uint8_t)(i * 7 + 1));
  lj_wbuf_short_end(&wb, mark, TAG, MASK);
  CHECK_EQ(lj_wbuf_commit(&wb), need <= room);
  CHECK(lj_wbuf_flush(&wb));
  CHECK_EQ(chunk.records[0], 0x81);
  if (need > room) {
    CHECK_EQ(chunk.len, 1);
    return;
  }
  CHECK_EQ(chunk.records[1], TAG | (len < MASK ? len : MASK));
  if (len >= MASK) {
    n = chunks_uleb(chunk.records + 2, chunk.len - 2, &more);
    CHECK_EQ(more, len - MASK);
  }
  CHECK_EQ(n, need);
  CHECK_EQ(chunk.len, 2 + n + len);
  for (i = 0; i < len; i++)
    if (chunk.records[2 + n + i] != (uint8_t)(i * 7 + 1)) break;
  CHECK_EQ(i, len);
}

int main(void)
{
  static const size_t shorts[] = { 0,   1,   2,   61,  62,    63,    64,    65,
				   190, 191, 192, 300, 16445, 16446, 16447, 16448 };
  size_t room;
  static const size_t lens[] = { 0,   1,   2,     126,   127,   128,   129,
				 255, 256, 16382, 16383, 16384, 16385, 65536 };
  size_t i;
  for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) define(lens[i]);
  for (i = 0; i < sizeof(shorts) / sizeof(shorts[0]); i++)
    for (room = 0; room < 5; room++) define_short(shorts[i], room);
  return check_status();
}
