/*
** Tail of the host stack: the frames that it shares with the last sample.
** Runs in the signal handler; see the header.
*/

#define lj_hostmemo_c
#define LUA_CORE

#include "lj_obj.h"
#include "lj_frame.h"
#include "profile/host/lj_hostmemo.h"

/* MemoStep.r */
static const uint8_t tail_reg[HOSTMEMO_REGS] = { CFI_REG_PC,  CFI_REG_BX,  CFI_REG_BP,
						 CFI_REG_R12, CFI_REG_R13, CFI_REG_R14,
						 CFI_REG_R15 };

/* -- Joining kept steps ------------------------------------------------------- */

/* Words of the first n kept steps. */
static uint32_t kept_words(const MemoSteps *ts, uint32_t n)
{
  return n < ts->nstep ? ts->step[n].word : ts->nword;
}

/* Words, of the first n, that are as they were. */
static uint32_t words_same(const MemoSteps *ts, uintptr_t hi, uint32_t n)
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

void lj_hostmemo_begin(HostMemo *ht, const SafeLoad *pk, int whole)
{
  const MemoSteps *ts = &ht->kept;
  uint32_t n = 0, same;
  lj_hostmemo_restart(ht);
  ht->same = ht->joined = 0;
  ht->on = (whole && pk->stack_size != 0);
  if (!ht->on) return;
  ht->lo = pk->stack;
  if (ht->hi == pk->stack + pk->stack_size) {
    n = ts->nstep;
    while (n > 0 && ts->step[n - 1].sp < ht->lo) n--; /* Not in use any more. */
    same = words_same(ts, ht->hi, kept_words(ts, n));
    while (n > 0 && kept_words(ts, n) > same) n--;
  } else {
    ht->hi = pk->stack + pk->stack_size;
    ht->kept.nstep = ht->kept.nword = ht->kept.nvm = 0;
  }
  ht->same = n;
}

uint32_t lj_hostmemo_join(HostMemo *ht, const CfiRegs *regs, const lua_State *L,
			  uintptr_t expect)
{
  const MemoSteps *ts = &ht->kept;
  const MemoStep *step;
  uintptr_t sp = regs->r[CFI_REG_SP], diff = 0;
  uint32_t n = ht->same;
  int i;
  while (n > 0 && ts->step[n - 1].sp < sp) n--;
  ht->same = n;
  if (n == 0) return 0;
  step = &ts->step[n - 1];
  if (step->sp != sp || step->valid != regs->valid) return 0;
  for (i = 0; i < HOSTMEMO_REGS; i++) diff |= step->r[i] ^ regs->r[tail_reg[i]];
  if (step->vm > 0) {
    const VMFrame *next = &ts->vm[step->vm - 1];
    diff |= ((uintptr_t)L ^ (uintptr_t)next->L) | (expect ^ next->cf);
  }
  return ht->joined = (diff == 0 ? n : 0);
}

/* -- Keeping steps ------------------------------------------------------------ */

static void add_word(HostMemo *ht, uintptr_t addr)
{
  MemoSteps *ts = &ht->fresh;
  ts->at[ts->nword] = (int32_t)((intptr_t)(addr - ht->hi) / 8);
  ts->value[ts->nword++] = *(const uintptr_t *)addr;
}

/* Add a step that loads up to some words between lo and hi. Returns 0 if it cannot
** be kept.
*/
static int add_step(HostMemo *ht, const CfiRegs *regs, FrameWord frame, uint32_t words,
		    uintptr_t lo, uintptr_t hi)
{
  MemoSteps *ts = &ht->fresh;
  MemoStep *step = &ts->step[ts->nstep];
  uintptr_t sp = regs->r[CFI_REG_SP];
  int i;
  if (!ht->on || ts->nstep == HOSTMEMO_STEPS || ts->nword + words > HOSTMEMO_WORDS ||
      sp < ht->lo || lo < sp || hi < lo || hi > ht->hi || (hi & 7) != 0)
    return 0;
  step->sp = sp;
  for (i = 0; i < HOSTMEMO_REGS; i++) step->r[i] = regs->r[tail_reg[i]];
  step->valid = regs->valid;
  step->word = ts->nword;
  step->vm = ts->nvm;
  ts->frame[ts->nstep++] = frame;
  return 1;
}

int lj_hostmemo_host(HostMemo *ht, const CfiRule *rule, const CfiRegs *regs,
		     FrameWord frame)
{
  uintptr_t sp = regs->r[CFI_REG_SP];
  uintptr_t cfa = regs->r[rule->cfa_reg] + (uintptr_t)(intptr_t)rule->cfa_ofs;
  int i;
  if (!(regs->valid & (1u << rule->cfa_reg))) return 0;
  if (rule->is_root) return add_step(ht, regs, frame, 0, sp, ht->hi);
  if (!add_step(ht, regs, frame, 1 + CFI_NSAVED, cfa - (uintptr_t)rule->depth * 8, cfa))
    return 0;
  add_word(ht, cfa - 8);
  for (i = 0; i < CFI_NSAVED; i++)
    if (rule->saved[i]) add_word(ht, cfa - (uintptr_t)rule->saved[i] * 8);
  return 1;
}

/* What is loaded to leave a VM frame. */
static const int16_t vm_words[] = { CFRAME_OFS_PREV, VMFRAME_R14, VMFRAME_R15,
				    VMFRAME_BX,      VMFRAME_BP,  VMFRAME_PC };
#define VM_WORDS (sizeof(vm_words) / sizeof(vm_words[0]))

int lj_hostmemo_vm(HostMemo *ht, const VMFrame *vf, const CfiRegs *regs, FrameWord frame)
{
  MemoSteps *ts = &ht->fresh;
  size_t i;
  if (ts->nvm == HOSTMEMO_VMS ||
      !add_step(ht, regs, frame, VM_WORDS, vf->cf, vf->cf + CFRAME_SIZE))
    return 0;
  for (i = 0; i < VM_WORDS; i++) add_word(ht, vf->cf + (uintptr_t)vm_words[i]);
  ts->vm[ts->nvm++] = *vf;
  return 1;
}

/* First fresh step from which on all fit behind n kept ones. */
static uint32_t fresh_fitting(const MemoSteps *from, uint32_t n, uint32_t words,
			      uint32_t vms)
{
  uint32_t i;
  for (i = 0; i < from->nstep; i++)
    if (n + from->nstep - i <= HOSTMEMO_STEPS &&
	words + from->nword - from->step[i].word <= HOSTMEMO_WORDS &&
	vms + from->nvm - from->step[i].vm <= HOSTMEMO_VMS)
      break;
  return i;
}

void lj_hostmemo_end(HostMemo *ht)
{
  MemoSteps *to = &ht->kept;
  const MemoSteps *from = &ht->fresh;
  uint32_t n = ht->joined;
  uint32_t words = kept_words(to, n), vms = n ? to->step[n - 1].vm : 0, i, j;
  if (from->nstep == 0) return;
  i = fresh_fitting(from, n, words, vms);
  if (i == from->nstep) return; /* As many are kept as can be. */
  to->nstep = n + from->nstep - i;
  to->nword = words + from->nword - from->step[i].word;
  to->nvm = vms + from->nvm - from->step[i].vm;
  for (j = from->step[i].vm; j < from->nvm; j++)
    to->vm[vms + from->nvm - 1 - j] = from->vm[j];
  for (j = from->step[i].word; j < from->nword; j++) {
    to->at[words + from->nword - 1 - j] = from->at[j];
    to->value[words + from->nword - 1 - j] = from->value[j];
  }
  for (; i < from->nstep; i++) {
    MemoStep *step = &to->step[n + from->nstep - 1 - i];
    *step = from->step[i];
    to->frame[n + from->nstep - 1 - i] = from->frame[i];
    step->word = words + from->nword -
		 (i + 1 < from->nstep ? from->step[i + 1].word : from->nword);
    step->vm = vms + from->nvm - from->step[i].vm;
  }
}
