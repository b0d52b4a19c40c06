/*
** Stacks of sleeping threads, read from another thread, and their samples.
** Context: keep: the background thread | append: any thread, not in the handler. Under the lock.
*/

#define lj_sleeper_c
#define LUA_CORE

#include "lj_obj.h"
#include "lj_frame.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_relaxed.h"
#include "profile/sample/lj_sample.h"
#include "profile/sample/lj_sleeper.h"

#define HOLD_NS 1000000 /* A sample of the thread takes no longer. */

/* -- Walk -------------------------------------------------------------------- */

/* Does the sleeping thread run the VM? As vm_runs in lj_sample.c, which says why. */
static int runs_vm(const Sampler *s, const HostWalk *hs)
{
  VmGate *gate = s->gate;
  uintptr_t cur_L = (uintptr_t)relaxed_get(&gate->g->cur_L.gcptr64), head;
  if (hs->nvm == 0) return 0;
  if (hs->vm[0].place != VMF_INTERP || !vmgate_isshared(gate)) return 1;
  return (uintptr_t)hs->vm[0].L == cur_L &&
	 lj_safeload_word(hs->pk, cur_L + offsetof(lua_State, cframe), &head) &&
	 (head & (uintptr_t)CFRAME_RAWMASK) == hs->vm[0].cf;
}

/* Set the result for an empty Lua stack, as walk_nolua in lj_sample.c does. */
static void walk_nolua(const Sampler *s, SleepTables *st)
{
  const HostWalk *hs = &st->host;
  LuaResult *res = &st->lua.res;
  res->top = TOP_NONE;
  res->broken = -1;
  res->nbounds = 0;
  st->lua.nfunc = st->lua.ncfunc = st->lua.label = 0;
  if (hs->nvm == 0 && (s->opt->threads == LUAM_SYSPROF_THREADS_ALL ||
		       vmgate_runson(s->gate, s->reader.tid)))
    return;
  res->broken = SPF_BROKEN_NOT_VM;
  res->refused = hs->nvm ? SPF_REFUSED_VM_WAITED : SPF_REFUSED_VM_OUTSIDE;
}

/* Remove all Lua frames, and push a leaf that append sets later. */
static void lua_reset(SleepTables *st)
{
  lj_framelist_reset(&st->lua_frames);
  lj_framelist_push(&st->lua_frames, frame_word2(SPF_FRAME_WORK, 0, 0));
}

static void walk(const Sampler *s, SleepTables *st, const WalkRegs *regs)
{
  HostWalk *hs = &st->host;
  st->peek.more = &st->copies;
  lj_safeload_reset(&st->peek);
  lj_framelist_reset(&st->host_frames);
  lua_reset(st);
  hs->pk = &st->peek;
  hs->g = s->gate->g;
  hs->frames = &st->host_frames;
  hs->has_rows = s->host.has_rows;
  hs->cross_thread = hs->is_remote = 1;
  lj_hostwalk_walk(hs, regs);
  if (runs_vm(s, hs)) {
    st->lua.pk = &st->peek;
    st->lua.g = s->gate->g;
    st->lua.hs = hs;
    st->lua.frames = &st->lua_frames;
    lj_luasleep_walk(&st->lua);
  } else {
    walk_nolua(s, st);
  }
  if (st->lua.res.broken >= 0) {
    lua_reset(st);
    lj_framelist_push(&st->lua_frames, frame_word(SPF_FRAME_BROKEN, st->lua.res.broken));
  }
  lj_framelist_finish(&st->host_frames);
  lj_framelist_finish(&st->lua_frames);
  if (s->opt->mode != LUAM_SYSPROF_LEAF) return;
  lj_framelist_keephost(&st->host_frames);
  lj_framelist_keeplua(&st->lua_frames);
}

/* State of the VM while the thread sleeps: in the code of a trace, or in C. */
static int state_of(const SleepTables *st)
{
  if (st->host.nvm && st->host.vm[0].place == VMF_TRACE) return SPF_VMST_TRACE;
  return st->lua.res.top == TOP_FAST ? SPF_VMST_FFUNC : SPF_VMST_CFUNC;
}

/* -- Functions --------------------------------------------------------------- */

/* Numbers in the table, by the index in the walk. */
typedef struct SleepIds {
  uint32_t fid[LUASLEEP_FUNCS];
  uint32_t cfunc[LUASLEEP_CFUNCS];
} SleepIds;

/* Give the C functions of the stack their numbers. Returns 0 if LuaJIT may have freed one. */
static int closures_find(SleepTables *st, CFuncTab *ct, SleepIds *ids)
{
  const SleepCFunc *c = st->lua.cfunc;
  uint32_t i, n = st->lua.ncfunc;
  int keep;
  for (i = 0; i < n; i++) ids->cfunc[i] = lj_cfunctab_note(ct, c[i].fn, c[i].f);
  keep = n == 0 || __atomic_load_n(&ct->marks, __ATOMIC_SEQ_CST) == st->marks;
  for (i = 0; i < n; i++)
    if (ids->cfunc[i] && !lj_cfunctab_settle(ct, c[i].fn, c[i].f, keep)) keep = 0;
  return keep;
}

/* Give the functions of the stack their ids, and keep their definitions. Returns 0 if there is no
** room, or if a handler uses the table: then the thread has moved.
*/
static int ids_find(Sampler *s, SleepTables *st, SleepIds *ids)
{
  VmTables *vt = s->vm;
  FuncTab *ft = &vt->funcs;
  uint32_t i, before, freed;
  int user = 0, alive;
  if (!__atomic_compare_exchange_n(&vt->user, &user, lj_osthread_self(), 0,
				   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
    return 0;
  before = ft->nfid;
  s->kept->ndef = 0;
  for (i = 0; i < st->lua.nfunc; i++) {
    const SleepFunc *fn = &st->lua.func[i];
    FuncEntry *fe = lj_functab_get(ft, fn->pt, fn->key);
    if (!fe || !lj_keptstack_define(s->kept, fn, ft, fe)) break;
    ids->fid[i] = fe->fid;
  }
  /* If LuaJIT frees a prototype meanwhile, it may not have seen the new entry. */
  freed = __atomic_load_n(&ft->freed, __ATOMIC_SEQ_CST);
  if (freed != st->freed)
    while (before != ft->nfid) lj_functab_drop(ft, ++before);
  alive = closures_find(st, &ft->cfuncs, ids);
  vmtables_release(vt);
  return i == st->lua.nfunc && freed == st->freed && alive;
}

/* Put the ids in place of the indices. */
static void ids_set(FrameList *fr, const SleepIds *ids)
{
  uint32_t i;
  for (i = 0; i < fr->len; i++) {
    FrameWord w = fr->list[i];
    if (frame_kind(w) == SPF_FRAME_LFUNC)
      fr->list[i] = frame_word2(SPF_FRAME_LFUNC, ids->fid[frame_payload_lo(w)],
				frame_aux(w));
    else if (frame_kind(w) == SPF_FRAME_CLOSURE)
      fr->list[i] = frame_cfunc(frame_addr(w), ids->cfunc[frame_closure_number(w) - 1]);
  }
}

EventKept lj_sleeper_keep(Event *ev, const WalkRegs *regs,
			  int (*has_moved)(const Event *ev))
{
  Sampler *s = ((SampleEvent *)ev)->sampler;
  SleepTables *st = &s->vm->sleep;
  SleepIds ids;
  KeptStack *ks = s->kept;
  if (!ks) return KEPT_MOVED; /* Nobody needs stacks: the profile only counts. */
  if (!lj_safeload_cancopy()) return KEPT_NOT;
  st->freed = __atomic_load_n(&s->vm->funcs.freed, __ATOMIC_SEQ_CST);
  st->marks = __atomic_load_n(&s->vm->funcs.cfuncs.marks, __ATOMIC_SEQ_CST);
  walk(s, st, regs);
  if (has_moved(ev) || !ids_find(s, st, &ids)) return KEPT_MOVED;
  ids_set(&st->lua_frames, &ids);
  lj_keptstack_set(ks, &st->lua_frames, &st->host_frames);
  ks->state = state_of(st);
  ks->lua = st->lua.res;
  ks->host_broken = st->host.broken;
  ks->host_refused = st->host.refused;
  ks->labels.id = 0;
  if (st->lua.label && st->lua.res.broken < 0)
    lj_labelread_copy(s->gate->g, st->lua.label, &ks->labels);
  return has_moved(ev) ? KEPT_MOVED : KEPT_STACK;
}

/* -- Samples ----------------------------------------------------------------- */

int lj_sleeper_append(Event *ev, SampleHead *head)
{
  SampleEvent *se = (SampleEvent *)ev;
  Sampler *s = se->sampler;
  FrameWord leaf = frame_word2(SPF_FRAME_WORK, (uint32_t)head->work, head->work_arg);
  if (!lj_sampler_holdsoon(s, HOLD_NS)) {
    lj_sample_lose(s, se, head);
    return 0;
  }
  lj_framelist_reset(&s->host_frames);
  lj_framelist_reset(&s->lua_frames);
  s->labels.id = 0;
  if (head->is_kept) {
    lj_keptstack_get(s->kept, leaf, &s->lua_frames, &s->host_frames);
    s->state = s->kept->state;
    s->lua = s->kept->lua;
    s->host.broken = s->kept->host_broken;
    s->host.refused = s->kept->host_refused;
    labelcopy_set(&s->labels, &s->kept->labels);
  } else {
    lj_framelist_push(&s->lua_frames, leaf);
    lj_framelist_finish(&s->lua_frames);
    s->state = SPF_VMST_CFUNC;
    s->lua.broken = s->host.broken = -1;
  }
  lj_sample_append(s, se, head, head->is_kept ? s->kept : NULL);
  lj_sample_nested(s);
  lj_sampler_release(s);
  return 1;
}
