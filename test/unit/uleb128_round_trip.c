/* ULEB128: each value around each power of two comes back, in the shortest form. Also
** known vectors of DWARF's appendix.
** BASE: none, its modules know no VM
*/

#include "profile/format/lj_wbuf.h"
#include "check.h"
#include "chunks.h"

static size_t writer(const void **data, size_t len, void *ctx)
{
  (void)data;
  (void)ctx;
  return len;
}

static uint8_t buf[256];
static WBuf wb;

static size_t put(uint64_t v)
{
  size_t at = wb.pos;
  lj_wbuf_uleb(&wb, v);
  return wb.pos - at;
}

static void round_trip(uint64_t v)
{
  uint64_t back = 0;
  size_t at = SPF_PROLOGUE_SIZE + SPF_CHUNK_HEADER, n, need = 1;
  lj_wbuf_init(&wb, buf, sizeof(buf), 0, writer, NULL);
  n = put(v);
  while (need < 10 && v >> (7 * need)) need++;
  CHECK_EQ(n, need);
  CHECK_EQ(chunks_uleb(buf + at, n, &back), n);
  CHECK(back == v);
}

static void round_trip_signed(int64_t d)
{
  uint64_t v = 0;
  size_t at = SPF_PROLOGUE_SIZE + SPF_CHUNK_HEADER;
  lj_wbuf_init(&wb, buf, sizeof(buf), 0, writer, NULL);
  lj_wbuf_signed(&wb, d);
  CHECK_EQ(chunks_uleb(buf + at, wb.pos - at, &v), wb.pos - at);
  CHECK_EQ(wb.pos - at == 1, d >= -64 && d < 64);
  CHECK((v & 1) == (d < 0));
  CHECK(v >> 1 == (d < 0 ? (uint64_t) - (d + 1) : (uint64_t)d));
}

int main(void)
{
  const uint8_t *p = buf + SPF_PROLOGUE_SIZE + SPF_CHUNK_HEADER;
  int bit, d;
  for (bit = 0; bit < 64; bit++)
    for (d = -2; d <= 2; d++) round_trip(((uint64_t)1 << bit) + (uint64_t)(int64_t)d);
  for (bit = 0; bit < 63; bit++)
    for (d = -2; d <= 2; d++) {
      round_trip_signed(((int64_t)1 << bit) + d);
      round_trip_signed(-((int64_t)1 << bit) - d);
    }
  round_trip_signed(INT64_MAX);
  round_trip_signed(INT64_MIN);
  round_trip(0);
  round_trip(~(uint64_t)0);
  lj_wbuf_init(&wb, buf, sizeof(buf), 0, writer, NULL);
  CHECK_EQ(put(12857), 2);
  CHECK(p[0] == 0x39 + 0x80 && p[1] == 100);
  lj_wbuf_init(&wb, buf, sizeof(buf), 0, writer, NULL);
  CHECK_EQ(put(~(uint64_t)0), 10);
  CHECK(p[8] == 0xff && p[9] == 0x01);
  return check_status();
}
