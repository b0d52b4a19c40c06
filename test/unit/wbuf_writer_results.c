/* Results of a writer: all bytes, none, a part, another buffer, the end.
** BASE: none, its modules know no VM
*/

#include <errno.h>

#include "profile/format/lj_wbuf.h"
#include "check.h"
#include "chunks.h"

static uint8_t bufs[2][128];
static struct {
  size_t result;    /* To return, or ~0 for all. */
  int err;          /* To set errno to. */
  const void *next; /* To be the next buffer. */
  int swap;         /* Set it. */
  int calls;
} answer;

static size_t writer(const void **data, size_t len, void *ctx)
{
  (void)ctx;
  answer.calls++;
  if (answer.swap) *data = answer.next;
  errno = answer.err;
  return answer.result == ~(size_t)0 ? len : answer.result;
}

static void begin(WBuf *wb, size_t result, int err)
{
  memset(&answer, 0, sizeof(answer));
  answer.result = result;
  answer.err = err;
  memset(bufs, 0xee, sizeof(bufs));
  lj_wbuf_init(wb, bufs[0], sizeof(bufs[0]), 0, writer, NULL);
  lj_wbuf_byte(wb, 1);
  CHECK(lj_wbuf_commit(wb));
}

int main(void)
{
  WBuf wb;
  Chunk c;
  uint64_t all;

  begin(&wb, ~(size_t)0, EAGAIN); /* errno of a success means nothing. */
  CHECK(lj_wbuf_flush(&wb));
  all = wb.bytes;
  CHECK(all > 0);
  CHECK_EQ(wb.err, 0);
  CHECK(wb.buf == bufs[0]);

  begin(&wb, 0, ENOSPC);
  CHECK(!lj_wbuf_flush(&wb));
  CHECK(!lj_wbuf_isopen(&wb));
  CHECK_EQ(wb.err, ENOSPC);
  CHECK_EQ(wb.bytes, 0);
  CHECK(!lj_wbuf_flush(&wb)); /* Not asked again. */
  CHECK_EQ(answer.calls, 1);

  begin(&wb, 5, 0); /* Short, and no reason given. */
  CHECK(!lj_wbuf_flush(&wb));
  CHECK(!lj_wbuf_isopen(&wb));
  CHECK_EQ(wb.err, EIO);

  begin(&wb, 1000000, 0); /* More than there was: all. */
  CHECK(lj_wbuf_flush(&wb));
  CHECK(lj_wbuf_isopen(&wb));
  CHECK_EQ(wb.bytes, all);

  begin(&wb, ~(size_t)0 - 1, ENOSPC); /* Negative as a signed number: no bytes. */
  CHECK(!lj_wbuf_flush(&wb));
  CHECK_EQ(wb.err, ENOSPC);
  CHECK_EQ(wb.bytes, 0);

  begin(&wb, ~(size_t)0, 0);
  answer.swap = 1;
  answer.next = bufs[1];
  CHECK(lj_wbuf_flush(&wb));
  CHECK(lj_wbuf_isopen(&wb));
  lj_wbuf_byte(&wb, 0x42);
  CHECK(lj_wbuf_commit(&wb));
  answer.next = NULL;
  CHECK(!lj_wbuf_flush(&wb));
  CHECK(!lj_wbuf_isopen(&wb));
  CHECK_EQ(wb.failed, 0); /* The end does not count as a failure. */
  CHECK_EQ(wb.err, 0);
  REQUIRE(chunks_read(bufs[1], sizeof(bufs[1]), &c));
  CHECK_EQ(c.seq, 1);
  CHECK_EQ(c.len, 1);
  CHECK_EQ(c.records[0], 0x42);
  CHECK_EQ(answer.calls, 2);
  CHECK(!lj_wbuf_flush(&wb));
  CHECK_EQ(answer.calls, 2);
  return check_status();
}
