/* Stacks whose hashes share one slot of the table. The stream defines as many as the
** table probes once each. One more replaces another.
*/

#include "profile/stream/lj_stacktab.h"
#include "check.h"
#include "test_batch.h"

static StackTab tab;
static Symtab symtab;
static WBuf wb;
static uint8_t buf[4096];

static size_t writer(const void **data, size_t len, void *ctx)
{
  (void)data;
  (void)ctx;
  return len;
}

static uint32_t id(uint32_t i)
{
  static FrameList fr;
  FrameSpan span;
  lj_framelist_reset(&fr);
  lj_framelist_push(&fr, frame_word(SPF_FRAME_HOST, 0x1000 * (i + 1)));
  lj_framelist_finish(&fr);
  span = lj_framelist_span(&fr);
  /* The last slot: the next ones are the first. */
  return lj_stacktab_id(&tab, &symtab, &batch, &wb, &span,
			(uint64_t)(i + 1) << 32 | (STACKTAB_STACKS - 1));
}

int main(void)
{
  uint32_t i, round;
  lj_wbuf_init(&wb, buf, sizeof(buf), 16, writer, NULL);
  stacktab_next(&tab);
  for (round = 0; round < 2; round++)
    for (i = 0; i < STACKTAB_PROBES; i++) CHECK_EQ(id(i), i + 1);
  CHECK_EQ(tab.nstack, STACKTAB_PROBES);
  for (round = 0; round < 2; round++) CHECK_EQ(id(STACKTAB_PROBES), STACKTAB_PROBES + 1);
  for (i = 1; i < STACKTAB_PROBES; i++) CHECK_EQ(id(i), i + 1);
  CHECK_EQ(id(0), STACKTAB_PROBES + 2);
  return check_status();
}
