/* A stack is written as a difference to the one of its chunk with the longest common
** beginning: only the other frames take bytes.
*/

#include "profile/stream/lj_stacktab.h"
#include "check.h"
#include "test_batch.h"

#define DEPTH 100
#define FEW   12 /* Bytes of a stack without its frames, */
#define FRAME 4  /* and of each frame, at most. */

static StackTab tab;
static Symtab symtab;
static WBuf wb;
static uint8_t buf[65536];

static size_t writer(const void **data, size_t len, void *ctx)
{
  (void)data;
  (void)ctx;
  return len;
}

/* Bytes of a stack whose outermost frames, this many, are those of all stacks. */
static size_t bytes(uint32_t same, uint32_t leaf)
{
  static FrameList fr;
  FrameSpan span;
  size_t before = wb.pos;
  uint32_t i;
  lj_framelist_reset(&fr);
  for (i = DEPTH; i-- > 0;)
    lj_framelist_push(
      &fr, frame_word(SPF_FRAME_HOST, 0x10000 + 16 * i + (i < same ? 0 : 0x10000 * leaf)));
  lj_framelist_finish(&fr);
  span = lj_framelist_span(&fr);
  lj_stacktab_id(&tab, &symtab, &batch, &wb, &span, lj_stacktab_hash(&span));
  return wb.pos - before;
}

int main(void)
{
  lj_wbuf_init(&wb, buf, sizeof(buf), 16, writer, NULL);
  stacktab_next(&tab);
  CHECK(bytes(DEPTH, 0) > DEPTH);
  CHECK_EQ(bytes(DEPTH, 0), 0);
  CHECK(bytes(DEPTH - 1, 1) <= FEW + FRAME);
  CHECK(bytes(DEPTH - 5, 2) <= FEW + 5 * FRAME);
  CHECK(bytes(DEPTH - 3, 3) <= FEW + 3 * FRAME);
  CHECK(bytes(10, 4) > DEPTH - 10);
  CHECK(bytes(10, 5) > DEPTH - 10);
  CHECK(bytes(DEPTH - 2, 6) <= FEW + 2 * FRAME);
  /* The next chunk begins again. */
  stacktab_next(&tab);
  CHECK(bytes(DEPTH - 1, 1) > DEPTH);
  CHECK(bytes(DEPTH, 0) <= FEW + FRAME);
  return check_status();
}
