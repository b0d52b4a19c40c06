/*
** Cache of the outer Lua frames that consecutive samples share.
** Context: handler.
*/

#define lj_luamemo_c
#define LUA_CORE

#include "lj_obj.h"
#include "profile/lua/lj_luamemo.h"

/* -- Reusing saved steps ------------------------------------------------------- */

static void key_set(LuaMemoKey *key, const LuaArea *a, const FuncTab *ft)
{
  key->L = a->L;
  key->bot = a->bot;
  key->end = a->end;
  key->kept_pages = a->pk->kept_pages;
  key->unmaps = a->pk->unmaps;
  key->freed = ft->freed;
  key->nfid = ft->nfid;
}

static int key_is(const LuaMemoKey *x, const LuaMemoKey *y)
{
  return x->L == y->L && x->bot == y->bot && x->end == y->end &&
	 x->kept_pages == y->kept_pages && x->unmaps == y->unmaps && x->freed == y->freed &&
	 x->nfid == y->nfid;
}

/* Return how many of the first n loads have unchanged words. */
static uint32_t loads_verified(const LuaMemoSteps *ts, SafeLoad *pk, uint32_t n)
{
  uint32_t i;
  for (i = 0; i < n; i++) {
    const LuaMemoLoad *load = &ts->load[i];
    uintptr_t half = load->addr & 1, w;
    if (!lj_safeload_word(pk, load->addr - half, &w)) break;
    w ^= load->value;
    if (half ? (uint32_t)w != 0 : w != 0) break;
  }
  return i;
}

static LJ_AINLINE uint64_t slots_differ(const LuaMemoSteps *ts, uintptr_t bot, uint32_t i)
{
  uintptr_t f = bot + (uintptr_t)ts->at[i] * sizeof(TValue);
  return (lj_luaframe_link(f) ^ ts->link[i]) | (lj_luaframe_slot(f) ^ ts->slot[i]);
}

/* The slot has not changed, so it points to a function or to its freed memory. */
static LJ_AINLINE uint64_t func_differs(const LuaMemoSteps *ts, uint32_t i)
{
  const GCfunc *fn = (const GCfunc *)(uintptr_t)(ts->slot[i] & LJ_GCVMASK);
  return ((uintptr_t)mref(fn->c.pc, char) ^ ts->code[i]) |
	 ((luamemo_head(fn) ^ ts->head[i]) & LUAMEMO_HEAD);
}

/* Count the saved steps, from the bottom, whose words have not changed. The saved addresses
** are still readable.
*/
static uint32_t steps_verified(const LuaMemoSteps *ts, const LuaArea *a, uintptr_t top,
			       int with_funcs)
{
  const uintptr_t bot = a->bot;
  uint32_t i = 1, n = ts->nstep, at = (uint32_t)((top - bot) >> 3), loads;
  while (n > 0 && ts->at[n - 1] > at) n--; /* Above the top frame. */
  if (n == 0) return 0;
  for (; i + 2 <= n; i += 2)
    if ((slots_differ(ts, bot, i) | slots_differ(ts, bot, i + 1)) ||
	(with_funcs && (func_differs(ts, i) | func_differs(ts, i + 1))))
      break;
  while (i < n && !slots_differ(ts, bot, i) && !(with_funcs && func_differs(ts, i))) i++;
  loads = loads_verified(ts, a->pk, ts->state[i - 1].sum.extra);
  while (i > 0 && ts->state[i - 1].sum.extra > loads) i--;
  return i;
}

void lj_luamemo_sample(LuaMemo *t)
{
  if (t->credit < LUAMEMO_CREDIT) t->credit += LUAMEMO_EARNED;
}

void lj_luamemo_begin(LuaMemo *t, const LuaArea *a, const FuncTab *ft, uintptr_t top,
		      int with_funcs)
{
  const SafeLoad *pk = a->pk;
  lj_luamemo_restart(t);
  t->verified = t->reused = 0;
  t->on = (pk->kept != pk->generation && !pk->keeping && t->depth >= t->least);
  t->records = t->on && t->credit > 0;
  if (!t->on) return;
  key_set(&t->walked, a, ft);
  if (key_is(&t->key, &t->walked))
    t->verified = steps_verified(&t->saved, a, top, with_funcs);
}

uint32_t lj_luamemo_reuse(LuaMemo *t, uintptr_t f, uintptr_t pc, const LuaChain *ch,
			  int skip)
{
  const LuaMemoSteps *ts = &t->saved;
  const LuaMemoState *s;
  uint32_t at = (uint32_t)((f - t->walked.bot) >> 3), n = t->verified;
  while (n > 0 && ts->at[n - 1] > at) n--;
  t->verified = n;
  if (n == 0 || ts->at[n - 1] != at) return 0;
  s = &ts->state[n - 1];
  if (s->pc != pc || s->cf != ch->cf || s->resume != ch->resume ||
      s->may_lack_lua != ch->may_lack_lua || s->skip != skip)
    return 0;
  return t->reused = n;
}

/* -- Saving steps ------------------------------------------------------------ */

static const StepRoom room = { LUAMEMO_STEPS, { LUAMEMO_WORDS, LUAMEMO_LOADS } };

void lj_luamemo_end(LuaMemo *t, const FuncTab *ft)
{
  LuaMemoSteps *to = &t->saved;
  const LuaMemoSteps *from = &t->recording;
  const LuaMemoState *state = from->state;
  StepSums all = { from->nword, from->nload }, saved = { 0, 0 };
  uint32_t n = t->reused, bounds = t->walked_nbound, end, i, k;
  if (n > t->reach && t->credit < LUAMEMO_CREDIT) t->credit += (int32_t)(n - t->reach);
  if (!t->records || from->nstep == 0 || ft->nfid != t->walked.nfid) return;
  if (n) saved = to->state[n - 1].sum;
  if (n) bounds += to->state[n - 1].nbound;
  i = steplist_fitting(&state->sum, sizeof(*state), from->nstep, all, n, saved, room);
  if (i == from->nstep) return; /* No room is left. */
  t->credit -= (int32_t)from->nstep;
  t->reach = n;
  t->key = t->walked;
  t->last = t->walked_last;
  end = n + from->nstep;
  to->nstep = end - i;
  saved.word += all.word;
  saved.extra += all.extra;
  steplist_reverse(to->at, end, from->at, i, from->nstep);
  steplist_reverse(to->link, end, from->link, i, from->nstep);
  steplist_reverse(to->slot, end, from->slot, i, from->nstep);
  steplist_reverse(to->head, end, from->head, i, from->nstep);
  steplist_reverse(to->code, end, from->code, i, from->nstep);
  steplist_reverse(to->state, end, state, i, from->nstep);
  for (k = n; k < to->nstep; k++) {
    LuaMemoState *s = &to->state[k];
    s->sum.word = saved.word - s->sum.word;
    s->sum.extra = saved.extra - s->sum.extra;
    s->nbound = bounds - s->nbound;
  }
  to->nword = to->state[k - 1].sum.word;
  to->nload = to->state[k - 1].sum.extra;
  steplist_reverse(to->word, saved.word, from->word, state[i].sum.word, all.word);
  steplist_reverse(to->load, saved.extra, from->load, state[i].sum.extra, all.extra);
}
