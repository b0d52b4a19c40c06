/* Appending to a stream that its writer has ended does nothing. Names and the load map
** are appended in a loop, and the end may come in the middle of it.
** BASE: none, its modules know no VM
*/

#include "profile/format/lj_wbuf.h"
#include "check.h"

static size_t writer(const void **data, size_t len, void *ctx)
{
  (void)ctx;
  *data = NULL;
  return len;
}

int main(void)
{
  uint8_t buf[256];
  size_t mark;
  WBuf wb;
  int i;
  lj_wbuf_init(&wb, buf, sizeof(buf), 0, writer, NULL);
  CHECK(!lj_wbuf_flush(&wb));
  CHECK(wb.buf == NULL);
  for (i = 0; i < 3; i++) {
    mark = lj_wbuf_def_begin(&wb, SPF_META);
    lj_wbuf_str(&wb, "key", 3);
    lj_wbuf_uleb(&wb, 300);
    lj_wbuf_def_end(&wb, mark);
    lj_wbuf_commit(&wb);
    CHECK(!lj_wbuf_flush(&wb));
  }
  return check_status();
}
