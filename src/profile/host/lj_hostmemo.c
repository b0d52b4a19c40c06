/*
** Cache of the last host walk: reusing and recording of steps.
** Context: handler; see the header.
*/

#define lj_hostmemo_c
#define LUA_CORE

#include "lj_obj.h"
#include "lj_frame.h"
#include "profile/host/lj_hostmemo.h"

/* MemoStep.r */
static const uint8_t memo_reg[HOSTMEMO_REGS] = { WALKREG_PC,  WALKREG_BX,  WALKREG_BP,
						 WALKREG_R12, WALKREG_R13, WALKREG_R14,
						 WALKREG_R15 };

/* -- Reusing saved steps ------------------------------------------------------ */

/* Words of the first n saved steps. */
static uint32_t saved_words(const MemoSteps *ts, uint32_t n)
{
  return n < ts->nstep ? ts->step[n].sum.word : ts->nword;
}

/* Number of the first n words that have not changed. */
static uint32_t words_verify(const MemoSteps *ts, uintptr_t hi, uint32_t n)
{
  const uintptr_t *top = (const uintptr_t *)hi;
  const int32_t *at = ts->at;
  const uintptr_t *value = ts->value;
  uint32_t i;
  for (i = 0; i + 4 <= n; i += 4)
    if ((top[at[i]] ^ value[i]) | (top[at[i + 1]] ^ value[i + 1]) |
	(top[at[i + 2]] ^ value[i + 2]) | (top[at[i + 3]] ^ value[i + 3]))
      break;
  while (i < n && top[at[i]] == value[i]) i++;
  return i;
}

void lj_hostmemo_begin(HostMemo *hm, const SafeLoad *pk, int whole)
{
  MemoSteps *ts;
  uint32_t n = 0, same;
  hm->verified = hm->reused = 0;
  hm->on = (whole && pk->stack_size != 0 && hm->lists);
  if (!hm->on) return;
  ts = &hm->lists->saved;
  lj_hostmemo_restart(hm);
  hm->lo = pk->stack;
  if (hm->hi == pk->stack + pk->stack_size) {
    n = ts->nstep;
    while (n > 0 && ts->step[n - 1].sp < hm->lo) n--; /* Below the used part. */
    same = words_verify(ts, hm->hi, saved_words(ts, n));
    while (n > 0 && saved_words(ts, n) > same) n--;
  } else {
    hm->hi = pk->stack + pk->stack_size;
    ts->nstep = ts->nword = ts->nvm = 0;
  }
  hm->verified = n;
}

uint32_t lj_hostmemo_reuse(HostMemo *hm, const WalkRegs *regs, const lua_State *L,
			   uintptr_t expect)
{
  const MemoSteps *ts = &hm->lists->saved;
  const MemoStep *step;
  uintptr_t sp = regs->r[WALKREG_SP], diff = 0;
  uint32_t n = hm->verified;
  int i;
  while (n > 0 && ts->step[n - 1].sp < sp) n--;
  hm->verified = n;
  if (n == 0) return 0;
  step = &ts->step[n - 1];
  if (step->sp != sp || step->valid != regs->valid) return 0;
  for (i = 0; i < HOSTMEMO_REGS; i++) diff |= step->r[i] ^ regs->r[memo_reg[i]];
  if (step->sum.extra > 0) {
    const VMFrame *next = &ts->vm[step->sum.extra - 1];
    diff |= ((uintptr_t)L ^ (uintptr_t)next->L) | (expect ^ next->cf);
  }
  return hm->reused = (diff == 0 ? n : 0);
}

/* -- Recording steps ---------------------------------------------------------- */

static void add_word(HostMemo *hm, uintptr_t addr)
{
  MemoSteps *ts = &hm->lists->recording;
  ts->at[ts->nword] = (int32_t)((intptr_t)(addr - hm->hi) / 8);
  ts->value[ts->nword++] = *(const uintptr_t *)addr;
}

/* Add a step that loads the words between lo and hi. Returns 0 if the list is full, or if
** they are outside of the stack.
*/
static int add_step(HostMemo *hm, const WalkRegs *regs, FrameWord frame, uint32_t words,
		    uintptr_t lo, uintptr_t hi)
{
  MemoSteps *ts = &hm->lists->recording;
  MemoStep *step = &ts->step[ts->nstep];
  uintptr_t sp = regs->r[WALKREG_SP];
  int i;
  if (!hm->on || ts->nstep == HOSTMEMO_STEPS || ts->nword + words > HOSTMEMO_WORDS ||
      sp < hm->lo || lo < sp || hi < lo || hi > hm->hi || (hi & 7) != 0)
    return 0;
  step->sp = sp;
  for (i = 0; i < HOSTMEMO_REGS; i++) step->r[i] = regs->r[memo_reg[i]];
  step->valid = regs->valid;
  step->sum.word = ts->nword;
  step->sum.extra = ts->nvm;
  ts->frame[ts->nstep++] = frame;
  return 1;
}

int lj_hostmemo_host(HostMemo *hm, const CfiRule *rule, const WalkRegs *regs,
		     FrameWord frame)
{
  uintptr_t sp = regs->r[WALKREG_SP];
  uintptr_t cfa = regs->r[rule->cfa_reg] + (uintptr_t)(intptr_t)rule->cfa_ofs;
  int i;
  if (!(regs->valid & (1u << rule->cfa_reg))) return 0;
  if (rule->is_root) return add_step(hm, regs, frame, 0, sp, hm->hi);
  if (!add_step(hm, regs, frame, 1 + CFI_NSAVED, cfa - (uintptr_t)rule->depth * 8, cfa))
    return 0;
  add_word(hm, cfa - 8);
  for (i = 0; i < CFI_NSAVED; i++)
    if (rule->saved[i]) add_word(hm, cfa - (uintptr_t)rule->saved[i] * 8);
  return 1;
}

/* Words that a walk loads to leave a VM frame. */
static const int16_t vm_words[] = { CFRAME_OFS_PREV, VMFRAME_R14, VMFRAME_R15,
				    VMFRAME_BX,      VMFRAME_BP,  VMFRAME_PC };
#define VM_WORDS (sizeof(vm_words) / sizeof(vm_words[0]))

int lj_hostmemo_vm(HostMemo *hm, const VMFrame *vf, const WalkRegs *regs, FrameWord frame)
{
  MemoSteps *ts = &hm->lists->recording;
  size_t i;
  if (ts->nvm == HOSTMEMO_VMS ||
      !add_step(hm, regs, frame, VM_WORDS, vf->cf, vf->cf + CFRAME_SIZE))
    return 0;
  for (i = 0; i < VM_WORDS; i++) add_word(hm, vf->cf + (uintptr_t)vm_words[i]);
  ts->vm[ts->nvm++] = *vf;
  return 1;
}

static const StepRoom room = { HOSTMEMO_STEPS, { HOSTMEMO_WORDS, HOSTMEMO_VMS } };

void lj_hostmemo_end(HostMemo *hm)
{
  MemoSteps *to;
  const MemoSteps *from;
  const MemoStep *step;
  StepSums all, saved;
  uint32_t n = hm->reused, words, vms, i;
  if (!hm->on || hm->lists->recording.nstep == 0) return;
  to = &hm->lists->saved;
  from = &hm->lists->recording;
  step = from->step;
  all.word = from->nword;
  all.extra = from->nvm;
  saved.word = saved_words(to, n);
  saved.extra = n ? to->step[n - 1].sum.extra : 0;
  i = steplist_fitting(&step->sum, sizeof(*step), from->nstep, all, n, saved, room);
  if (i == from->nstep) return; /* No room for more. */
  words = saved.word + all.word;
  vms = saved.extra + all.extra;
  to->nstep = n + from->nstep - i;
  to->nword = words - step[i].sum.word;
  to->nvm = vms - step[i].sum.extra;
  steplist_reverse(to->vm, vms, from->vm, step[i].sum.extra, all.extra);
  steplist_reverse(to->at, words, from->at, step[i].sum.word, all.word);
  steplist_reverse(to->value, words, from->value, step[i].sum.word, all.word);
  steplist_reverse(to->step, n + from->nstep, step, i, from->nstep);
  steplist_reverse(to->frame, n + from->nstep, from->frame, i, from->nstep);
  for (; i < from->nstep; i++) {
    StepSums *sum = &to->step[n + from->nstep - 1 - i].sum;
    sum->word = words - (i + 1 < from->nstep ? step[i + 1].sum.word : all.word);
    sum->extra = vms - step[i].sum.extra;
  }
}
