/* The write buffer begins with both prologues, and cuts the records into numbered chunks
** with a correct checksum.
** BASE: none, its modules know no VM
*/

#include "profile/format/lj_wbuf.h"
#include "check.h"
#include "chunks.h"

static uint8_t taken[4096];
static size_t ntaken;

static size_t writer(const void **data, size_t len, void *ctx)
{
  CHECK(ctx == &ntaken);
  memcpy(taken + ntaken, *data, len);
  ntaken += len;
  return len;
}

int main(void)
{
  static const uint8_t prologue[] = "ljs\3\0\0\0\x80ljp\4\0\0";
  uint8_t buf[256];
  const uint8_t *p;
  WBuf wb;
  Chunk c;
  size_t n;
  int i;
  CHECK_EQ(chunks_crc32(0, (const uint8_t *)"123456789", 9), 0xcbf43926);
  lj_wbuf_init(&wb, buf, sizeof(buf), 0, writer, &ntaken);
  CHECK(lj_wbuf_isopen(&wb));
  for (i = 0; i < 3; i++) {
    lj_wbuf_str(&wb, "abcdefgh", (size_t)i);
    CHECK(lj_wbuf_commit(&wb));
    lj_wbuf_byte(&wb, (uint8_t)(0xf0 + i));
    CHECK(lj_wbuf_commit(&wb));
    lj_wbuf_byte(&wb, 0); /* Never committed: must not be in the chunk. */
    CHECK(lj_wbuf_flush(&wb));
  }
  CHECK(lj_wbuf_flush(&wb)); /* An empty one. */
  CHECK_EQ(wb.bytes, ntaken);
  REQUIRE(ntaken > SPF_PROLOGUE_SIZE);
  CHECK_EQ(SPF_PROLOGUE_SIZE, sizeof(prologue));
  CHECK(memcmp(taken, prologue, SPF_PROLOGUE_SIZE) == 0);
  p = taken + SPF_PROLOGUE_SIZE;
  for (i = 0; i < 4; i++) {
    n = chunks_read(p, (size_t)(taken + ntaken - p), &c);
    REQUIRE(n > 0);
    CHECK_EQ(c.seq, i);
    CHECK_EQ(c.len, i < 3 ? i + 2 : 0);
    if (i < 3) {
      CHECK_EQ(c.records[0], i);
      CHECK(memcmp(c.records + 1, "abcdefgh", (size_t)i) == 0);
      CHECK_EQ(c.records[1 + i], 0xf0 + i);
    }
    p += n;
  }
  CHECK(p == taken + ntaken);
  return check_status();
}
