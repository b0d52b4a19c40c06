/* The cache forgets places in Lua functions with the functions, and when an id gets old.
** Two places of one slot do not evict each other.
*/

#include <string.h>

#include "lj_obj.h"
#include "profile/lua/lj_luasites.h"
#include "check.h"

#define PROTOS 3000

static struct {
  GCstr s;
  char text[16];
} chunkname;
static struct {
  GCproto pt;
  BCIns bc[8];
} proto[PROTOS];
static FuncTab ft;
static SafeLoad pk;
static LuaSites sites;

static uintptr_t pc(int i, int pos)
{
  return (uintptr_t)(proto[i].bc + pos);
}

static FrameWord word(int i)
{
  return frame_word2(SPF_FRAME_LFUNC, lj_functab_see(&ft, &pk, &proto[i].pt)->fid, 7);
}

static int has(int i, int pos)
{
  LuaSite *site = lj_luasites_find(&sites, &ft, pc(i, pos));
  if (!site) return 0;
  CHECK(site->pt == &proto[i].pt && site->word == word(i));
  CHECK_EQ(site->delta, (pos + 1 + LJ_FR2) * 8);
  return 1;
}

static void set(int i, int pos)
{
  lj_luasites_set(&sites, &ft, &proto[i].pt, pc(i, pos), word(i));
}

int main(void)
{
  int i, pos, n;
  chunkname.s.gct = (uint8_t)~LJ_TSTR;
  for (i = 0; i < PROTOS; i++) {
    proto[i].pt.gct = (uint8_t)~LJ_TPROTO;
    proto[i].pt.sizebc = 8;
    proto[i].pt.firstline = i;
    setgcref(proto[i].pt.chunkname, obj2gco(&chunkname.s));
    for (pos = 0; pos < 8; pos++) /* The call before pos has A = pos. */
      proto[i].bc[pos] = BCINS_ABC(BC_CALL, pos + 1, 1, 1);
  }
  lj_safeload_reset(&pk);
  CHECK(!has(0, 1));
  for (i = 0; i < 100; i++) {
    set(i, 1);
    set(i, 2);
    CHECK(has(i, 1) && has(i, 2));
  }
  for (n = i = 0; i < 100; i++) n += has(i, 1) + has(i, 2);
  printf("%d of 200\n", n);
  CHECK(n > 150); /* Two hundred in a thousand slots. */
  CHECK(!has(0, 3));

  /* One is freed: all have to be looked at again. */
  CHECK(has(99, 1));
  lj_functab_free(&ft, &proto[98].pt);
  for (i = 0; i < 100; i++) CHECK(!has(i, 1) && !has(i, 2));
  set(99, 1);
  CHECK(has(99, 1));

  /* An id that may be given up has to be got anew. */
  for (i = 100; i < 100 + FUNCTAB_FUNCS / 2; i++) lj_functab_see(&ft, &pk, &proto[i].pt);
  CHECK(!lj_luasites_find(&sites, &ft, pc(99, 1)));
  return check_status();
}
