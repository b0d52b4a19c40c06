/* All functions of one sample can be defined, however many functions were seen
** before: what the sample has referred to is not replaced within it.
*/

#include <string.h>

#include "lj_obj.h"
#include "profile/lj_symtab.h"
#include "check.h"

#define DEPTH	(FRAMES_LEAF + FRAMES_ROOT)
#define PROTOS	(SYMTAB_LFUNCS + DEPTH)

static struct { GCstr s; char text[16]; } chunkname;
static struct { GCproto pt; uint32_t bc[4]; } proto[PROTOS];
static Symtab st;
static Peek pk;
static WBuf wb;
static uint8_t buf[128*1024];

static size_t writer(const void **data, size_t len, void *ctx)
{
  (void)data; (void)ctx;
  return len;
}

int main(void)
{
  static uint32_t fid[DEPTH];
  int i, undefined = 0;
  chunkname.s.gct = (uint8_t)~LJ_TSTR;
  chunkname.s.len = 5;
  strcpy(chunkname.text, "@file");
  for (i = 0; i < PROTOS; i++) {
    GCproto *pt = &proto[i].pt;
    pt->gct = (uint8_t)~LJ_TPROTO;
    pt->sizebc = 4;
    pt->firstline = i;
    pt->numline = 1;
    setgcref(pt->chunkname, obj2gco(&chunkname.s));
  }
  lj_peek_reset(&pk);
  lj_wbuf_init(&wb, buf, sizeof(buf), 0, writer, NULL);
  for (i = 0; i < SYMTAB_LFUNCS; i++)
    CHECK(lj_symtab_lfunc(&st, &pk, &proto[i].pt) != 0);
  /* One sample: functions known for long, with new ones among them. */
  for (i = 0; i < DEPTH; i++)
    fid[i] = lj_symtab_lfunc(&st, &pk, &proto[i & 1 ? SYMTAB_LFUNCS + i : i].pt);
  for (i = 0; i < DEPTH; i++) {
    size_t before = wb.pos;
    lj_symtab_define(&st, &wb, fid[i], 1);
    REQUIRE(lj_wbuf_commit(&wb));
    if (wb.pos == before) undefined++;
  }
  CHECK_EQ(undefined, 0);
  return check_status();
}
