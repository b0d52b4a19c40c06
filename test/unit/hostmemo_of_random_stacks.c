/* Reuse of the last host walk, on stacks of random words. Each word can be a return
** address or a frame pointer, and the address gives the rule of its step. Between two
** walks, some words change, or the walk begins elsewhere, or another stack replaces this
** one. The walk that reuses the last one must find the same as a walk without it.
** Deterministic.
*/

#include <string.h>

#include "profile/host/lj_hostmemo.h"
#include "profile/host/lj_cficache.h"
#include "check.h"

#define WORDS 2000 /* Of the stack. */
#define ROOT  100  /* Of these, zeros at the end of the stack. */
#define RULES 61
#define WALKS 20000
#define STEPS WORDS

static uintptr_t stack[WORDS];
static CfiRule rules[RULES];
static SafeLoad pk;
static HostMemoLists lists;
static HostMemo memo = { .lists = &lists };

typedef struct List {
  int n, ok; /* Whether it came to the root. */
  FrameWord frame[STEPS];
} List;

static uint32_t random_below(uint32_t n)
{
  static uint64_t state = 1;
  state = state * U64x(5851f42d, 4c957f2d) + U64x(14057b7e, f767814f);
  return (uint32_t)(state >> 33) % n;
}

/* A place above another one, near or far. */
static uintptr_t place_above(uint32_t i)
{
  uint32_t to = i + 2 + random_below(random_below(8) ? 16 : 160);
  return (uintptr_t)&stack[to < WORDS ? to : WORDS - 1];
}

static void make_rules(void)
{
  int i, k;
  for (i = 0; i < RULES; i++) {
    CfiRule *r = &rules[i];
    int by_bp = (i % 8 == 0);
    r->cfa_reg = by_bp ? WALKREG_BP : WALKREG_SP;
    r->cfa_ofs = (int32_t)(by_bp ? 2 : 8 + random_below(8)) * 8;
    r->stays = 1;
    r->depth = 1;
    for (k = 0; k < CFI_NSAVED; k++) {
      /* A frame pointer is nearly always saved, or it were soon of no use. */
      if (by_bp ? k != 1 : random_below(k == 1 ? 32 : 3) == 0) continue;
      r->saved[k] = (uint8_t)(by_bp ? 2 : k + 2);
      if (r->saved[k] > r->depth) r->depth = r->saved[k];
    }
  }
}

/* Walk from these registers, alone or with the memo. */
static void walk(List *l, WalkRegs regs, HostMemo *ht)
{
  CfiResult res = CFI_STEP;
  l->n = l->ok = 0;
  if (ht) lj_hostmemo_begin(ht, &pk, 1);
  while (res == CFI_STEP && l->n < STEPS) {
    FrameWord w = frame_word(SPF_FRAME_HOST, regs.r[WALKREG_PC]);
    const CfiRule *rule = &rules[(regs.r[WALKREG_PC] - (uintptr_t)stack) / 8 % RULES];
    uint32_t n = ht ? lj_hostmemo_reuse(ht, &regs, NULL, 0) : 0;
    if (n > 0) {
      while (n > 0) l->frame[l->n++] = ht->lists->saved.frame[--n];
      l->ok = 1;
      break;
    }
    if (ht && !lj_hostmemo_host(ht, rule, &regs, w)) lj_hostmemo_restart(ht);
    l->frame[l->n++] = w;
    res = lj_cficache_step(rule, &pk, &regs);
    l->ok = (res == CFI_ROOT);
  }
  if (ht && l->ok) lj_hostmemo_end(ht);
}

int main(void)
{
  static List with, alone;
  WalkRegs regs;
  uint32_t i, k, joined = 0, whole = 0, steps = 0;
  make_rules();
  for (i = 0; i < WORDS - ROOT; i++) stack[i] = place_above(i);
  memset(&regs, 0, sizeof(regs));
  regs.valid = WALKREG_PRESERVED;
  regs.is_return = 1;
  for (i = 0; i < WALKS; i++) {
    uint32_t at = random_below(8) * 4, end = WORDS - (random_below(50) == 0);
    for (k = random_below(4); k > 0; k--) {
      uint32_t j = random_below(WORDS - ROOT);
      stack[j] = place_above(j);
    }
    lj_safeload_reset(&pk);
    lj_safeload_stack(&pk, (uintptr_t)stack, (uintptr_t)(stack + end),
		      (uintptr_t)&stack[at]);
    regs.r[WALKREG_SP] = (uintptr_t)&stack[at];
    regs.r[WALKREG_PC] = stack[at];
    regs.r[WALKREG_BP] = (uintptr_t)&stack[at + 40 + random_below(4) * 4];
    regs.r[WALKREG_BX] = random_below(2);
    walk(&with, regs, &memo);
    walk(&alone, regs, NULL);
    CHECK_EQ(with.ok, alone.ok);
    CHECK_EQ(with.n, alone.n);
    CHECK(memcmp(with.frame, alone.frame, (size_t)with.n * sizeof(FrameWord)) == 0);
    if (check_failures > 10) break;
    whole += (uint32_t)with.ok;
    if (memo.reused) {
      joined++;
      steps += memo.reused;
    }
  }
  printf("%u walks came to the root, %u joined the last one, %u steps each\n", whole,
	 joined, joined ? steps / joined : 0);
  CHECK(whole > WALKS / 100 && joined > whole / 4);
  return check_status();
}
