/* The cache of the Lua walk adds a walk's steps behind those that it has reused: as many as
** fit from the bottom upwards, by their number, their words and their loads.
*/

#include <string.h>

#include "profile/lua/lj_luamemo.h"
#include "check.h"

static LuaMemo memo;
static FuncTab ft;

/* A walk of some steps on top of those that it reuses, each with so many words and loads.
** Returns the steps that are saved then.
*/
static uint32_t saved(uint32_t reused, uint32_t steps, uint32_t nword, uint32_t nload)
{
  LuaMemoSteps *to = &memo.saved, *from = &memo.recording;
  uint32_t i, k;
  memset(&memo, 0, sizeof(memo));
  memo.records = 1;
  memo.credit = LUAMEMO_CREDIT;
  memo.reused = to->nstep = reused;
  for (i = 0; i < reused; i++) {
    to->at[i] = i;
    to->state[i].sum.word = i + 1;
    to->word[i] = i;
  }
  to->nword = reused;
  from->nstep = steps;
  from->nword = steps * nword;
  from->nload = steps * nload;
  for (i = 0; i < steps; i++) { /* From the leaf. */
    from->at[i] = reused + steps - 1 - i;
    from->state[i].sum.word = i * nword;
    from->state[i].sum.extra = i * nload;
  }
  for (i = 0; i < from->nword; i++) from->word[i] = reused + from->nword - 1 - i;
  for (i = 0; i < from->nload; i++) from->load[i].value = from->nload - 1 - i;
  lj_luamemo_end(&memo, &ft);
  for (i = 0; i < to->nstep; i++) CHECK_EQ(to->at[i], i);
  for (i = 0; i < to->nword; i++) CHECK_EQ(to->word[i], i);
  for (i = 0; i < to->nload; i++) CHECK_EQ(to->load[i].value, i);
  for (i = reused; i < to->nstep; i++) {
    k = i - reused + 1;
    CHECK_EQ(to->state[i].sum.word, reused + k * nword);
    CHECK_EQ(to->state[i].sum.extra, k * nload);
  }
  if (to->nstep > reused) {
    CHECK_EQ(memo.reach, reused);
    CHECK_EQ(memo.credit, LUAMEMO_CREDIT - (int32_t)steps);
  }
  return to->nstep;
}

int main(void)
{
  CHECK_EQ(saved(0, 1, 1, 0), 1);
  CHECK_EQ(saved(0, 20, 2, 3), 20);
  CHECK_EQ(saved(7, 20, 2, 3), 27);
  /* By their number. */
  CHECK_EQ(saved(0, LUAMEMO_STEPS, 1, 1), LUAMEMO_STEPS);
  CHECK_EQ(saved(100, LUAMEMO_STEPS - 100, 1, 1), LUAMEMO_STEPS);
  CHECK_EQ(saved(100, LUAMEMO_STEPS - 99, 1, 1), LUAMEMO_STEPS);
  CHECK_EQ(saved(300, 300, 1, 1), LUAMEMO_STEPS);
  CHECK_EQ(saved(LUAMEMO_STEPS, 10, 1, 1), LUAMEMO_STEPS);
  /* By their words: 300 and 156 times 3 are 768. */
  CHECK_EQ(saved(300, 84, 6, 0), 300 + 78);
  CHECK_EQ(saved(0, 256, 3, 0), 256);
  CHECK_EQ(saved(3, 200, 3, 0), 203);
  CHECK_EQ(saved(300, 80, 9, 0), 300 + 52);
  /* By their loads. */
  CHECK_EQ(saved(0, 256, 1, 3), 256);
  CHECK_EQ(saved(100, 96, 1, 8), 196);
  CHECK_EQ(saved(0, 77, 1, 10), 76);
  return check_status();
}
