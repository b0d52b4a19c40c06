/* A freed function gives neither its id nor its name to the next one at its address. A
** function keeps its best name, and the path of that name.
*/

#include "made_functions.h"

#define OTHERS (FUNCTAB_FUNCS / 2 + 10)

static MadeName chunkname;
static MadeProto proto[OTHERS];

static uint32_t id(int i)
{
  return made_id(&proto[i]);
}

/* Name a function by up to two parts. */
static void name(int i, NameRank rank, const char *a, const char *b)
{
  FuncEntry *fe = lj_functab_find(&funcs, &proto[i].pt);
  NamePart part[2];
  REQUIRE(fe != NULL);
  part[0].s = a;
  part[0].len = (uint32_t)strlen(a);
  part[1].s = b;
  part[1].len = b ? (uint32_t)strlen(b) : 0;
  lj_functab_setname(fe, rank, part, b ? 2 : 1);
}

static int has_name(int i, const char *expected)
{
  const FuncEntry *fe = lj_functab_find(&funcs, &proto[i].pt);
  return fe && fe->namelen == strlen(expected) &&
	 memcmp(fe->name, expected, fe->namelen) == 0;
}

/* Name a function, with a path of any length. */
static void name_path(int i, const char *a, const char *path)
{
  NameText text, second;
  text.len = (uint8_t)strlen(a);
  memcpy(text.s, a, text.len);
  second.len = (uint8_t)strlen(path);
  memcpy(second.s, path, second.len);
  lj_functab_settext(&funcs, lj_functab_find(&funcs, &proto[i].pt), NAME_PATH, &text,
		     &second);
}

static int has_path(int i, const char *expected)
{
  const FuncEntry *fe = lj_functab_find(&funcs, &proto[i].pt);
  return fe && fe->pathlen == strlen(expected) &&
	 memcmp(functab_path(&funcs, fe), expected, fe->pathlen) == 0;
}

int main(void)
{
  char many[100];
  uint32_t a, b, fid, last;
  int i;
  made_name(&chunkname, "@file");
  for (i = 0; i < OTHERS; i++) made_proto(&proto[i], &chunkname, 1, 1);
  made_begin();

  /* Names: the best one, in parts, cut. */
  a = id(0);
  b = id(1);
  CHECK(has_name(0, ""));
  CHECK(made_define(a, 1) > 0);
  name(0, NAME_CALL, "f", NULL);
  CHECK(has_name(0, "f"));
  CHECK(made_define(a, 1) > 0); /* Again, because it has a name now. */
  CHECK_EQ(made_define(a, 1), 0);
  name(0, NAME_CALL, "g", NULL);
  name(0, NAME_ROLE, "h", NULL);
  CHECK(has_name(0, "f"));
  name(0, NAME_PATH, "module", "f");
  CHECK(has_name(0, "module.f"));
  memset(many, 'x', sizeof(many) - 1);
  many[sizeof(many) - 1] = '\0';
  name(1, NAME_DEF, many, many);
  many[FUNCTAB_NAME_MAX] = '\0';
  CHECK(has_name(1, many));

  /* A prototype that is equal in every respect; the first one was freed. */
  lj_functab_free(&funcs, &proto[0].pt);
  CHECK(lj_functab_find(&funcs, &proto[0].pt) == NULL);
  CHECK_EQ(made_define(a, 2), 0);
  fid = id(0);
  CHECK(fid != a && fid != b);
  CHECK(has_name(0, ""));
  CHECK_EQ(id(0), fid);
  CHECK_EQ(id(1), b);
  lj_functab_free(&funcs, &proto[OTHERS - 1].pt); /* Was never seen. */

  /* In a full table, one that is renewed keeps its name. */
  funcs.is_full = 1;
  name(0, NAME_CALL, "call", NULL);
  CHECK(has_path(0, ""));
  name_path(0, "kept", "module.kept");
  name_path(0, "worse", "module.worse");
  for (i = 2; i < OTHERS; i++) CHECK(id(i) != 0);
  a = id(0);
  CHECK(a != fid);
  CHECK(has_name(0, "kept"));
  CHECK(has_path(0, "module.kept"));
  /* Both of its ids are gone when it is freed. */
  lj_functab_free(&funcs, &proto[0].pt);
  CHECK(lj_functab_find(&funcs, &proto[0].pt) == NULL);
  fid = id(0);
  CHECK(fid > a);
  CHECK(has_name(0, ""));
  CHECK(has_path(0, ""));

  /* Many short lives leave room for the others. */
  last = fid;
  for (i = 0; i < 10 * FUNCTAB_FUNCS; i++) {
    int k = i % 7;
    lj_functab_free(&funcs, &proto[k].pt);
    fid = id(k);
    CHECK(fid > last);
    CHECK_EQ(id(k), fid);
    last = fid;
  }
  return check_status();
}
