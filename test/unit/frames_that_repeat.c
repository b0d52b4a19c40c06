/* Runs of equal frames become one word, and unfold to the same frames. The folded list ends
** where the list ended, and is never longer. A recursion of any depth takes a few words.
*/

#include <stdlib.h>
#include <string.h>

#include "profile/stream/lj_frameruns.h"
#include "check.h"

#define ROUNDS 20000

static FrameWord list[FRAMELIST_MAX], copy[FRAMELIST_MAX], back[FRAMELIST_MAX];

static uint32_t any(uint32_t n)
{
  static uint64_t seed = 1;
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(seed >> 33) % n;
}

/* Unfold by the rule of the format, root first. Returns the number of frames. */
static uint32_t unfold(FrameSpan fr)
{
  uint32_t i, j, n = 0, apart = 0;
  for (i = fr.len; i-- > 0;) {
    FrameWord w = fr.list[i];
    if (frame_kind(w) == SPF_FRAME_REPEAT) {
      uint32_t times = frame_payload_lo(w), group = frame_aux(w);
      CHECK(times >= 1 && group >= 1 && group <= SPF_REPEAT_FRAMES && group <= apart);
      REQUIRE(n + times * group <= FRAMELIST_MAX);
      for (j = 0; j < times * group; j++, n++) back[n] = back[n - group];
      apart = 0;
    } else {
      REQUIRE(n < FRAMELIST_MAX);
      back[n++] = w;
      apart++;
    }
  }
  return n;
}

/* Fold the first len words of list. Returns the number of words that are left. */
static uint32_t check_fold(uint32_t len)
{
  FrameSpan fr;
  uint32_t i, n;
  memcpy(copy, list, sizeof(list));
  fr = lj_frameruns_fold(list, len);
  CHECK(fr.len <= len && fr.list + fr.len == list + len);
  CHECK(memcmp(list + len, copy + len, (FRAMELIST_MAX - len) * sizeof(FrameWord)) == 0);
  n = unfold(fr);
  CHECK_EQ(n, len);
  for (i = 0; i < n; i++)
    if (back[n - 1 - i] != copy[i]) break;
  CHECK_EQ(i, n);
  return fr.len;
}

/* A stack of groups that repeat, and of other frames between them. */
static uint32_t make_stack(void)
{
  uint32_t n = 0, len = any(FRAMELIST_MAX + 1), kinds = 1 + any(6);
  while (n < len) {
    uint32_t from = n, group = 1 + any(SPF_REPEAT_FRAMES + 8), times = 1 + any(60), i;
    for (i = 0; i < group && n < len; i++)
      list[n++] = frame_word2(SPF_FRAME_LFUNC, any(kinds) + 1, any(kinds));
    for (i = 0; i < group * times && n < len; i++, n++) list[n] = list[from + i];
  }
  return len;
}

/* Words of a recursion of groups, below a frame of its own. */
static uint32_t recursion(uint32_t len, uint32_t group)
{
  uint32_t i;
  for (i = 0; i < len; i++) list[i] = frame_word(SPF_FRAME_HOST, 100 + i % group);
  list[len - 1] = frame_word(SPF_FRAME_HOST, 7);
  return check_fold(len);
}

int main(void)
{
  uint32_t i, group;
  for (i = 0; i < ROUNDS; i++) check_fold(make_stack());
  for (i = 0; i < FRAMERUNS_MIN; i++) list[i] = frame_word(SPF_FRAME_VM, 0);
  CHECK_EQ(lj_frameruns_fold(list, FRAMERUNS_MIN - 1).len, FRAMERUNS_MIN - 1);
  for (group = 1; group <= SPF_REPEAT_FRAMES; group++)
    for (i = FRAMERUNS_MIN + 3 * SPF_REPEAT_FRAMES; i <= FRAMELIST_MAX; i += 13) {
      /* The group, a second one whose frames share slots, and one that is not whole. */
      CHECK(recursion(i, group) <= 1 + 3 * group + 1);
    }
  /* A group that is too long stays. */
  CHECK_EQ(recursion(FRAMELIST_MAX, SPF_REPEAT_FRAMES + 1), FRAMELIST_MAX);
  return check_status();
}
