/* The buffer takes back a whole transaction that does not fit, at every size of the
** buffer. It touches nothing behind the buffer or in its reserve.
** BASE: none, its modules know no VM
*/

#include "profile/format/lj_wbuf.h"
#include "check.h"
#include "chunks.h"

#define CAP     200
#define RESERVE 40

static uint8_t taken[CAP];
static size_t ntaken;

static size_t writer(const void **data, size_t len, void *ctx)
{
  (void)ctx;
  memcpy(taken, *data, len);
  ntaken = len;
  return len;
}

static void fill(size_t cap)
{
  uint8_t buf[CAP + 64];
  size_t head = SPF_PROLOGUE_SIZE + SPF_CHUNK_HEADER, room, i, n;
  uint8_t first;
  WBuf wb;
  Chunk c;
  memset(buf, 0xee, sizeof(buf));
  lj_wbuf_init(&wb, buf, cap, RESERVE, writer, NULL);
  room = cap - RESERVE - head;
  /* Records of 7 bytes while there is room; the one that fails is the first
  ** which cannot fit.
  */
  for (n = 0;; n++) {
    for (i = 0; i < 7; i++) lj_wbuf_byte(&wb, (uint8_t)(n * 7 + i));
    if (!lj_wbuf_commit(&wb)) break;
    REQUIRE(n < CAP);
  }
  CHECK_EQ(n, room / 7);
  /* A smaller one still fits into the rest. */
  if (room % 7 > 0) {
    lj_wbuf_byte(&wb, 0xaa);
    CHECK(lj_wbuf_commit(&wb));
  }
  for (i = cap - RESERVE; i < sizeof(buf); i++) CHECK_EQ(buf[i], 0xee);
  /* Without the reserve, the rest of the buffer can be used, and no more. */
  wb.reserve = 0;
  for (i = wb.pos; i < cap; i++) lj_wbuf_byte(&wb, 0xbb);
  CHECK(lj_wbuf_commit(&wb));
  lj_wbuf_byte(&wb, 0xcc);
  CHECK(!lj_wbuf_commit(&wb));
  for (i = cap; i < sizeof(buf); i++) CHECK_EQ(buf[i], 0xee);
  CHECK(lj_wbuf_flush(&wb));
  CHECK_EQ(ntaken, cap);
  REQUIRE(chunks_read(taken + SPF_PROLOGUE_SIZE, cap - SPF_PROLOGUE_SIZE, &c));
  CHECK_EQ(c.len, cap - head);
  first = 0;
  for (i = 0; i < n * 7; i++) CHECK_EQ(c.records[i], first++);
  /* An overflow is forgotten with its transaction. */
  lj_wbuf_byte(&wb, 1);
  CHECK(lj_wbuf_commit(&wb));
}

int main(void)
{
  size_t cap;
  for (cap = SPF_PROLOGUE_SIZE + SPF_CHUNK_HEADER + RESERVE; cap <= CAP; cap++) fill(cap);
  return check_status();
}
