/* Ids of Lua functions: each function has one, and no two share one, even if one takes
** the other's place in memory. Each chunk defines the functions that it uses.
*/

#include "chunks.h"
#include "made_functions.h"

#define PROTOS (FUNCTAB_FUNCS + 1000)

static MadeName chunkname[2];
static MadeProto proto[PROTOS];

static void make(int i, int line, int name)
{
  made_proto(&proto[i], &chunkname[name], line, 10);
}

static uint32_t id(int i)
{
  return made_id(&proto[i]);
}

/* Functions come and go without end. One that stays keeps its id, and stays in the table. */
static void check_churn(void)
{
  static uint8_t seen[32 * PROTOS];
  uint32_t stays, fid = 0;
  int i, k;
  memset(&funcs, 0, sizeof(funcs));
  make(0, 1, 0);
  stays = id(0);
  for (k = 0; k < 20; k++) {
    for (i = 1; i < FUNCTAB_FUNCS / 4; i++) {
      make(i, i, k & 1);
      fid = id(i);
      REQUIRE(fid > 0 && fid < sizeof(seen));
      CHECK_EQ(seen[fid], 0);
      seen[fid] = 1;
      CHECK_EQ(id(0), stays);
    }
    for (i = 1; i < FUNCTAB_FUNCS / 4; i++) {
      CHECK(lj_functab_find(&funcs, &proto[i].pt) != NULL);
      lj_functab_free(&funcs, &proto[i].pt);
      CHECK(lj_functab_find(&funcs, &proto[i].pt) == NULL);
    }
  }
  CHECK(fid > 4 * FUNCTAB_FUNCS);
  CHECK(!funcs.is_full);
  CHECK(lj_functab_find(&funcs, &proto[0].pt) == lj_functab_entry(&funcs, stays));
}

int main(void)
{
  static uint8_t seen[3 * PROTOS];
  GCproto *far;
  uint32_t a, b, fid;
  uint64_t v;
  const uint8_t *p;
  int i;
  made_name(&chunkname[0], "@file.lua");
  made_name(&chunkname[1], "@other.lua");
  made_begin();

  make(0, 5, 0);
  make(1, 5, 0);
  a = id(0);
  b = id(1);
  CHECK(a != 0 && b != 0 && a != b); /* Two copies of one function. */
  CHECK_EQ(id(0), a);
  CHECK_EQ(id(1), b);

  /* Its memory is used again: other line, other name, other length. */
  make(0, 6, 0);
  fid = id(0);
  CHECK(fid != a && fid != b);
  make(0, 5, 1);
  CHECK(id(0) != a && id(0) != fid);
  make(0, 5, 0);
  proto[0].pt.numline = 11;
  CHECK(id(0) != a);
  make(0, 5, 0);
  proto[0].pt.sizebc = 5;
  CHECK(id(0) != a);
  make(0, 5, 0);
  CHECK_EQ(id(0), a); /* As it was. */

  /* A definition for each epoch, and its content. */
  p = buf + wb.pos;
  CHECK(made_define(a, 1) > 0);
  CHECK_EQ(p[0], SPF_LFUNC);
  CHECK_EQ(p[1], wb.pos - (size_t)(p - buf) - 2);
  p += 2 + chunks_uleb(p + 2, 10, &v);
  CHECK_EQ(v, a);
  CHECK_EQ(p[0], 5);
  CHECK_EQ(p[1], 15);
  CHECK_EQ(p[2], 9);
  CHECK(memcmp(p + 3, "@file.lua", 9) == 0);
  CHECK_EQ(made_define(a, 1), 0);
  CHECK(made_define(a, 2) > 0);

  /* An unreadable name gives no id. */
  far = &proto[2].pt;
  make(2, 5, 0);
  setgcrefp(far->chunkname, (void *)(uintptr_t)0x10);
  CHECK_EQ(id(2), 0);

  /* More functions than there is room for: ids stay unique. */
  memset(&st, 0, sizeof(st));
  for (i = 0; i < PROTOS; i++) make(i, i, i & 1);
  for (i = 0; i < PROTOS; i++) {
    fid = id(i);
    REQUIRE(fid > 0 && fid < sizeof(seen));
    CHECK_EQ(seen[fid], 0);
    seen[fid] = 1;
    CHECK_EQ(id(i), fid);
    CHECK(made_define(fid, 1) > 0);
    if (wb.pos > sizeof(buf) / 2) lj_wbuf_flush(&wb);
  }
  /* The table has forgotten the first functions. They get new ids. */
  for (i = 0; i < 1000; i++) {
    fid = id(i);
    REQUIRE(fid > 0 && fid < sizeof(seen));
    CHECK_EQ(seen[fid], 0);
    seen[fid] = 1;
  }
  check_churn();
  return check_status();
}
