/* Deep stacks keep their innermost and outermost frames. The list counts the frames
** between them, and their boundaries.
** BASE: none, its modules know no VM
*/

#include <string.h>

#include "lj_arch.h"
#include "profile/capture/lj_framelist.h"
#include "check.h"

static FrameList fr;

/* Every seventh frame is a boundary; the other's payload is its number. */
static FrameWord frame_at(uint32_t i)
{
  return i % 7 == 3 ? frame_word(SPF_FRAME_VM, 0)
		    : frame_word(SPF_FRAME_HOST, 0x7f0000000000u + i);
}

static void depth(uint32_t n)
{
  uint32_t i, kept = n, bounds = 0;
  memset(&fr, 0xee, sizeof(fr));
  lj_framelist_reset(&fr);
  for (i = 0; i < n; i++) lj_framelist_push(&fr, frame_at(i));
  lj_framelist_finish(&fr);
  CHECK_EQ(fr.n, n);
  if (n > FRAMELIST_LEAF + FRAMELIST_ROOT) kept = FRAMELIST_LEAF + 1 + FRAMELIST_ROOT;
  CHECK_EQ(fr.len, kept);
  REQUIRE(fr.len <= FRAMELIST_MAX);
  for (i = 0; i < n && i < FRAMELIST_LEAF; i++) CHECK(fr.list[i] == frame_at(i));
  if (n <= FRAMELIST_LEAF + FRAMELIST_ROOT) {
    for (; i < n; i++) CHECK(fr.list[i] == frame_at(i));
    return;
  }
  for (i = FRAMELIST_LEAF; i < n - FRAMELIST_ROOT; i++) bounds += (i % 7 == 3);
  CHECK_EQ(frame_kind(fr.list[FRAMELIST_LEAF]), SPF_FRAME_CUT);
  CHECK_EQ(frame_payload_lo(fr.list[FRAMELIST_LEAF]), n - FRAMELIST_LEAF - FRAMELIST_ROOT);
  CHECK_EQ(frame_aux(fr.list[FRAMELIST_LEAF]), bounds);
  for (i = 0; i < FRAMELIST_ROOT; i++)
    CHECK(fr.list[FRAMELIST_LEAF + 1 + i] == frame_at(n - FRAMELIST_ROOT + i));
}

typedef void (*KeepFunc)(FrameList *fr);

static void keep_lua(FrameList *list)
{
  lj_framelist_keeplua(list);
}

static void keep_host(FrameList *list)
{
  lj_framelist_keephost(list);
}

/* Check which of n frames, leaf first, the mode LEAF keeps: n_kept, by their places. */
static void leaf(KeepFunc keep, const int *kind, uint32_t n, uint32_t n_kept, uint32_t a,
		 uint32_t b)
{
  uint32_t i;
  lj_framelist_reset(&fr);
  for (i = 0; i < n; i++) lj_framelist_push(&fr, frame_word(kind[i], i));
  lj_framelist_finish(&fr);
  keep(&fr);
  CHECK_EQ(fr.len, n_kept);
  if (n_kept > 0) CHECK_EQ(frame_payload(fr.list[0]), a);
  if (n_kept > 1) CHECK_EQ(frame_payload(fr.list[1]), b);
}

enum {
  L = SPF_FRAME_LFUNC,
  C = SPF_FRAME_CFUNC,
  F = SPF_FRAME_FFUNC,
  B = SPF_FRAME_CBOUND,
  R = SPF_FRAME_RESUME,
  X = SPF_FRAME_BROKEN,
  T = SPF_FRAME_TRACE,
  H = SPF_FRAME_HOST,
  V = SPF_FRAME_VM
};

static void leaves(void)
{
  static const int called[] = { C, F, B, C, L, L }, resumed[] = { C, R, L };
  static const int unknown[] = { C, X, L }, broken[] = { X, L }, compiled[] = { T, L, L };
  static const int lua[] = { L, L, B }, bounds[] = { B, B };
  static const int vm[] = { V, H, H }, host[] = { H, V, H }, missing[] = { H, V, X };
  leaf(keep_lua, lua, 3, 1, 0, 0);
  leaf(keep_lua, called, 6, 2, 0, 4);
  leaf(keep_lua, resumed, 3, 1, 0, 0);
  leaf(keep_lua, unknown, 3, 1, 0, 0);
  leaf(keep_lua, broken, 2, 2, 0, 1);
  leaf(keep_lua, compiled, 3, 2, 0, 1);
  leaf(keep_lua, bounds, 2, 1, 0, 0);
  leaf(keep_lua, bounds, 0, 0, 0, 0);
  leaf(keep_host, vm, 3, 1, 0, 0);
  leaf(keep_host, host, 3, 1, 0, 0);
  leaf(keep_host, missing, 3, 2, 0, 2);
  leaf(keep_host, broken, 1, 1, 0, 0);
  leaf(keep_host, vm, 0, 0, 0, 0);
}

int main(void)
{
  static const uint32_t depths[] = { 0,
				     1,
				     FRAMELIST_LEAF - 1,
				     FRAMELIST_LEAF,
				     FRAMELIST_LEAF + 1,
				     FRAMELIST_LEAF + FRAMELIST_ROOT - 1,
				     FRAMELIST_LEAF + FRAMELIST_ROOT,
				     FRAMELIST_LEAF + FRAMELIST_ROOT + 1,
				     FRAMELIST_LEAF + FRAMELIST_ROOT + 2,
				     FRAMELIST_LEAF + 2 * FRAMELIST_ROOT,
				     8192,
				     100000 };
  FrameWord w;
  size_t i;
  for (i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) depth(depths[i]);
  w = frame_word2(SPF_FRAME_LFUNC, FRAME_PAYLOAD_LO_MAX, ~0u);
  CHECK_EQ(frame_kind(w), SPF_FRAME_LFUNC);
  CHECK_EQ(frame_payload_lo(w), FRAME_PAYLOAD_LO_MAX);
  CHECK_EQ(frame_aux(w), ~0u);
  CHECK(frame_isbound(frame_word(SPF_FRAME_CBOUND, 0)));
  CHECK(frame_isbound(frame_word(SPF_FRAME_RESUME, 0)));
  CHECK(!frame_isbound(frame_word(SPF_FRAME_CUT, 5)));
  leaves();
  return check_status();
}
