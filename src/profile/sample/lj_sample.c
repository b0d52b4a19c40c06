/*
** Samples: walks both stacks, captures the sample, counts it.
** Context: handler, or any code of the sampled thread.
*/

#define lj_sample_c
#define LUA_CORE

#include "lj_obj.h"
#include "lj_frame.h"
#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_relaxed.h"
#include "profile/lua/lj_luastate.h"
#include "profile/base/lj_bgthread.h"
#include "profile/sample/lj_givenstack.h"
#include "profile/sample/lj_handover.h"
#include "profile/vm/lj_safepoint.h"
#include "profile/sample/lj_sample.h"
#include "profile/sample/lj_totals.h"

/* Real time that nearly all samples stay below. */
#define SAMPLE_LONG_NS  20000
#define SAMPLE_LONG_RUN 10 /* Long samples in a row that count. */

/* Age at which a tick encodes the batch. */
#define ENCODE_US STREAM_THREAD_US

/* For what few samples do: its code lies elsewhere. */
#define SAMPLE_RARE __attribute__((noinline, cold))

/* -- Custom backtracer ------------------------------------------------------- */

/* The sampler whose backtracer runs on this thread. */
static __thread Sampler *backtraced __attribute__((tls_model("initial-exec")));

/* Take one frame from the backtracer. The handler's own frames end at the interrupted
** address, so that address empties the list. A backtracer may also start elsewhere.
*/
static SAMPLE_RARE void *backtrace_frame(int frame_no, void *addr)
{
  Sampler *s = backtraced;
  uintptr_t pc = (uintptr_t)addr;
  FrameList *fr = &s->host_frames;
  if (frame_no < 1 || !addr) return NULL;
  if (pc == s->leaf_pc && s->leaf_pc != 0) {
    lj_framelist_reset(fr);
    s->leaf_pc = 0; /* The address may come again in a recursion. */
  } else if (fr->n > 0) {
    pc--; /* A return address. */
  }
  if (lj_hostwalk_isvm(pc)) lj_framelist_push(fr, frame_word(SPF_FRAME_VM, 0));
  else lj_framelist_push(fr, frame_word(SPF_FRAME_HOST, pc));
  return addr;
}

static SAMPLE_RARE void backtrace(Sampler *s, const WalkRegs *regs)
{
  Sampler *outer = backtraced;
  s->leaf_pc = regs->r[WALKREG_PC];
  lj_framelist_reset(&s->host_frames);
  backtraced = s;
  s->opt->cb.backtracer(backtrace_frame);
  backtraced = outer;
}

/* -- Which thread runs the VM ------------------------------------------------ */

/* Return the innermost C frame of the coroutine that ran last, 0 without such a frame. */
static uintptr_t vm_head(Sampler *s, lua_State **L)
{
  uintptr_t cur_L = (uintptr_t)relaxed_get(&s->gate->g->cur_L.gcptr64);
  *L = NULL;
  if (!lj_cframe_isthread(&s->peek, s->gate->g, cur_L)) return 0;
  *L = (lua_State *)cur_L;
  return (uintptr_t)cframe_raw((*L)->cframe);
}

/* Does the interrupted thread run the VM? Needs the walked host stack.
**
** The thread runs the VM if it is in the VM's own code, or if the VM's innermost C frame is
** on its stack. Hosts that switch C stacks, or coroutines without a resume, leave another C
** frame as the innermost one. So if the VM has run on one thread only, any C frame of the
** VM on that thread's stack is enough. Another thread with frames of the VM waits for the
** VM in C code. Host code on the VM thread may call the API without any frame of the VM.
*/
static int vm_runs(Sampler *s)
{
  VmGate *gate = s->gate;
  const HostWalk *hs = &s->host;
  lua_State *L;
  uintptr_t head = vm_head(s, &L);
  if (hs->nvm > 0 && (hs->leaf == LEAF_VM || hs->vm[0].place != VMF_INTERP ||
		      (head == hs->vm[0].cf && L == hs->vm[0].L))) {
    vmgate_seton(gate, s->reader.tid);
    return 1;
  }
  if (!vmgate_runson(gate, s->reader.tid)) return 0;
  if (vmgate_isshared(gate)) return hs->nvm == 0 && head == 0;
  if (hs->nvm > 0) return 1;
  if (hs->broken >= 0) return head == 0 || !lj_hostwalk_iselsewhere(hs, head);
  return head == 0 && mainthread(gate->g)->cframe == NULL;
}

/* -- Stacks ------------------------------------------------------------------ */

/* State of a VM that runs on this thread, by its state and its top function. */
static int vm_state(const Sampler *s)
{
  int32_t st = s->gate->g->vmstate;
  if (st >= 0) return SPF_VMST_TRACE;
  switch (~st) {
  case LJ_VMST_GC: return SPF_VMST_GC;
  case LJ_VMST_EXIT: return SPF_VMST_EXIT;
  case LJ_VMST_RECORD: return SPF_VMST_RECORD;
  case LJ_VMST_OPT: return SPF_VMST_OPT;
  case LJ_VMST_ASM: return SPF_VMST_ASM;
  default: break;
  }
  switch (s->lua.top) { /* Interpreter or C code: by the top function. */
  case TOP_LUA: return SPF_VMST_LFUNC;
  case TOP_FAST: return SPF_VMST_FFUNC;
  case TOP_C:
  case TOP_NONE: return SPF_VMST_CFUNC;
  default: return SPF_VMST_INTERP;
  }
}

/* Mark the Lua stack as broken. reason: SPF_BROKEN_*. refused: SPF_REFUSED_*. */
static SAMPLE_RARE void lua_broken(Sampler *s, int reason, int refused)
{
  s->lua.broken = reason;
  s->lua.refused = refused;
  lj_framelist_reset(&s->lua_frames);
  lj_framelist_push(&s->lua_frames, frame_word(SPF_FRAME_BROKEN, reason));
}

/* The sides know a different number of boundaries between C and Lua: the one with fewer is
** broken.
*/
static SAMPLE_RARE void sides_differ(Sampler *s)
{
  FrameWord broken = frame_word(SPF_FRAME_BROKEN, SPF_BROKEN_JOIN);
  if (s->host.nvm > s->lua.nbounds) {
    s->lua.broken = SPF_BROKEN_JOIN;
    s->lua.refused = SPF_REFUSED_LUA_FEWER;
    lj_framelist_push(&s->lua_frames, broken);
  } else {
    s->host.broken = SPF_BROKEN_JOIN;
    s->host.refused = SPF_REFUSED_HOST_FEWER;
    lj_framelist_push(&s->host_frames, broken);
  }
}

/* Walk the Lua stack of a thread that runs the VM. */
static void walk_lua(Sampler *s, const WalkRegs *regs)
{
  lua_State *moving = s->gate->moving;
  LuaWalk *ls = &s->vm->lua;
  ls->in.pk = &s->peek;
  ls->in.hs = &s->host;
  ls->in.moving = moving;
  ls->in.moving_from = s->gate->moving_from;
  ls->in.unmaps = s->gate->unmaps;
  ls->frames = &s->lua_frames;
  lj_luawalk_walk(ls, regs);
  s->lua.top = ls->top;
  s->lua.broken = ls->broken;
  s->lua.refused = ls->refused;
  s->lua.nbounds = ls->nbounds;
  if (LJ_UNLIKELY(ls->label != 0)) lj_labelread_copy(ls->in.g, ls->label, &s->labels);
  s->state = vm_state(s);
  if (LJ_UNLIKELY(s->host.nvm != s->lua.nbounds) && s->host.broken < 0 &&
      s->lua.broken < 0 && s->opt->mode == LUAM_SYSPROF_CALLGRAPH && !s->opt->cb.backtracer)
    sides_differ(s);
  if (LJ_UNLIKELY(s->lua.broken >= 0) && moving)
    lua_broken(s, SPF_BROKEN_STACK_MOVE,
	       s->lua.broken != SPF_BROKEN_CHAIN ? SPF_REFUSED_MOVE_OTHER
	       : ls->in.moving_to                ? SPF_REFUSED_MOVE_INVALID
						 : SPF_REFUSED_MOVE_NO_COPY);
}

/* Record an empty Lua stack for a thread that does not run the VM. VM frames on its host
** stack belong to calls that wait for the VM. Nobody can read their Lua frames, so the
** sample counts as broken. With THREADS_OWN every such sample counts as broken.
*/
static SAMPLE_RARE void walk_nolua(Sampler *s)
{
  s->lua.top = TOP_NONE;
  s->lua.broken = -1;
  s->lua.nbounds = 0;
  s->state = SPF_VMST_CFUNC;
  if (s->host.nvm > 0 || relaxed_get(&s->opt->threads) == LUAM_SYSPROF_THREADS_OWN)
    lua_broken(s, SPF_BROKEN_NOT_VM,
	       s->host.no_vm_access ? SPF_REFUSED_VM_CHANGES
	       : s->host.nvm == 0   ? SPF_REFUSED_VM_OUTSIDE
				    : SPF_REFUSED_VM_WAITED);
}

/* End the use of the VM and of its tables. */
static void vm_leave(Sampler *s)
{
  vmtables_release(s->vm);
  vmgate_read_end(&s->reader);
}

/* Find the state alone, if that needs no walk: the VM runs on one thread, this one, and not
** on a C stack that the program has made. Returns 0 if it needs a walk.
*/
static int state_find(Sampler *s, const WalkRegs *regs)
{
  VmGate *gate = s->gate;
  const HostWalk *hs = &s->host;
  lua_State *L;
  int has_state = gate->g->vmstate >= 0 || ~gate->g->vmstate > LJ_VMST_C;
  if (vmgate_isshared(gate) || !vmgate_runson(gate, s->reader.tid) || gate->moving ||
      lj_hostwalk_iselsewhere(hs, regs->r[WALKREG_SP]) ||
      lj_hostwalk_iselsewhere(hs, vm_head(s, &L)))
    return 0;
  s->lua.top = has_state ? TOP_NONE : lj_luastate_top(&s->peek, gate->g, regs);
  s->lua.broken = s->host.broken = -1;
  s->state = vm_state(s);
  return s->lua.top != TOP_UNKNOWN;
}

/* The handler may ask the VM thread for a safe point only while that thread runs the VM. */
static void ask_safepoint(Sampler *s, int runs_vm)
{
  if (runs_vm && s->host.nvm > 0) lj_safepoint_request(s->gate->g, SAFEPOINT_FLUSH);
}

/* The walk has met an object that may be new: let another thread, or the safe point of a profile without
** one, look at the loaded objects.
*/
static SAMPLE_RARE void ask_objects(Sampler *s, int runs_vm)
{
  s->host.rows.missing = 0;
  lj_bgthread_wake();
  if (s->opt->flush == LUAM_SYSPROF_FLUSH_VM) ask_safepoint(s, runs_vm);
}

/* Walk both stacks, and leave out innermost frames as the head says. Returns 1 if the sampler still
** reads the VM and has claimed its tables: then the caller calls vm_leave.
*/
static int walk_both(Sampler *s, const WalkRegs *regs, const SampleHead *head)
{
  VmGate *gate = s->gate;
  int reads, runs;
  lj_safeload_reset(&s->peek);
  lj_framelist_reset(&s->host_frames);
  lj_framelist_reset(&s->lua_frames);
  reads = vmgate_read_begin(gate, &s->reader);
  if (reads && s->opt->mode == LUAM_SYSPROF_DEFAULT && state_find(s, regs)) {
    vmgate_read_end(&s->reader);
    return 0;
  }
  s->host.no_vm_access = !reads;
  s->host.cross_thread = vmgate_isshared(gate) || !vmgate_runson(gate, s->reader.tid);
  lj_hostwalk_walk(&s->host, regs);
  runs = reads && vm_runs(s);
  if (LJ_UNLIKELY(s->host.rows.missing)) ask_objects(s, runs);
  if (reads && !(runs && vmtables_claim(s->vm, s->reader.tid))) {
    vmgate_read_end(&s->reader);
    reads = 0;
  }
  if (reads) walk_lua(s, regs);
  else walk_nolua(s);
  if (s->opt->mode != LUAM_SYSPROF_DEFAULT && s->opt->cb.backtracer) backtrace(s, regs);
  lj_framelist_finish(&s->host_frames);
  lj_framelist_finish(&s->lua_frames);
  if (LJ_UNLIKELY(head->inner != 0)) lj_framelist_dropleaf(&s->host_frames, head->inner);
  if (LJ_UNLIKELY(head->of_lua)) lj_framelist_dropwork(&s->lua_frames, &s->host_frames);
  if (s->opt->mode == LUAM_SYSPROF_LEAF) {
    lj_framelist_keephost(&s->host_frames);
    lj_framelist_keeplua(&s->lua_frames);
  }
  return reads;
}

/* Take the Lua stack that a source names. Returns as walk_both does. */
static SAMPLE_RARE int take_given(Sampler *s, const SampleHead *head)
{
  int reads = vmgate_read_begin(s->gate, &s->reader);
  lj_safeload_reset(&s->peek);
  lj_framelist_reset(&s->host_frames);
  lj_framelist_reset(&s->lua_frames);
  if (reads && !vmtables_claim(s->vm, s->reader.tid)) {
    vmgate_read_end(&s->reader);
    reads = 0;
  }
  if (head->work)
    lj_framelist_push(&s->lua_frames,
		      frame_word2(SPF_FRAME_WORK, (uint32_t)head->work, head->work_arg));
  s->lua.top = TOP_NONE;
  s->lua.broken = s->host.broken = -1;
  s->lua.nbounds = s->host.nvm = 0;
  s->state = SPF_VMST_CFUNC;
  if (reads) {
    LuaWalk *ls = &s->vm->lua;
    ls->in.pk = &s->peek;
    ls->frames = &s->lua_frames;
    lj_givenstack_push(ls, head->stack);
    if (head->stack->L)
      lj_labelread_copy(ls->in.g, head->stack->L->sysprof_label, &s->labels);
  } else {
    lua_broken(s, SPF_BROKEN_NOT_VM, SPF_REFUSED_VM_CHANGES);
  }
  lj_framelist_finish(&s->host_frames);
  lj_framelist_finish(&s->lua_frames);
  if (s->opt->mode == LUAM_SYSPROF_LEAF) lj_framelist_keeplua(&s->lua_frames);
  return reads;
}

/* -- Samples ----------------------------------------------------------------- */

/* Ask for a write of the chunks that wait. */
static SAMPLE_RARE void ask_flush(Sampler *s, int runs_vm)
{
  if (s->opt->flush == LUAM_SYSPROF_FLUSH_THREAD) lj_bgthread_wake();
  else ask_safepoint(s, runs_vm);
}

/* End the record of a loaded object. Encodes a full batch and returns 0: then the caller
** tries once more.
*/
static SAMPLE_RARE int module_commit(void *sampler)
{
  Sampler *s = (Sampler *)sampler;
  int done = lj_batch_def_end(&s->batch, 0, 0);
  if (!done) lj_handover_encode(s);
  lj_batch_def_begin(&s->batch);
  return done;
}

/* Time in the stream. */
static uint64_t time_us(const Sampler *s, uint64_t ns)
{
  return (ns - s->origin_ns) / 1000;
}

/* Copy what the sample's words refer to. Returns 0 if the batch has no room. */
static int funcs_capture(Sampler *s)
{
  const FrameList *lua = &s->lua_frames;
  uint32_t i;
  for (i = 0; i < lua->len; i++)
    if (frame_kind(lua->list[i]) == SPF_FRAME_LFUNC &&
	!symtab_capture(&s->vm->funcs, &s->batch, frame_payload_lo(lua->list[i])))
      return 0;
  return 1;
}

/* Copy the definitions of its labels and texts. Returns 0 if the batch has no room. */
static SAMPLE_RARE int defs_capture(Sampler *s, const SampleHead *head)
{
  int i;
  for (i = 0; i < head->ndef; i++) {
    const SampleDef *def = &head->def[i];
    if (!lj_batch_ref(&s->batch, def->tag, def->id, def->payload, def->len)) return 0;
  }
  return 1;
}

/* The same of the labels of its coroutine. */
static SAMPLE_RARE int labels_capture(Sampler *s)
{
  const LabelCopy *l = &s->labels;
  return lj_batch_ref(&s->batch, SPF_LABELS, l->id, l->payload, l->len);
}

/* Append the walked sample to the batch. A sample that is too large for an empty batch is
** lost. kept: see lj_sample_append.
*/
static void capture(Sampler *s, SampleEvent *ev, const SampleHead *head, uint64_t now_us,
		    const KeptStack *kept)
{
  DefSink to = { &s->batch.def, module_commit, s };
  const EventSpec *spec = &ev->e.spec;
  uint64_t weight = head->weight;
  int tries;
  if (!spec->has_weights) {
    uint64_t total = sampleevent_total(ev);
    weight = total - ev->taken;
    relaxed_set(&ev->taken, total);
  }
  lj_batch_def_begin(&s->batch);
  lj_loadmap_sample(&s->symtab.loadmap, &s->lua_frames, &s->host_frames, &to);
  for (tries = 0; tries < 2; tries++) {
    RawSample *raw = NULL;
    if ((LJ_LIKELY(!kept) ? funcs_capture(s) : lj_keptstack_capture(kept, &s->batch)) &&
	(LJ_LIKELY(head->ndef == 0) || defs_capture(s, head)) &&
	(LJ_LIKELY(s->labels.id == 0) || labels_capture(s)))
      raw = lj_batch_sample(&s->batch, now_us, head->field, spec->nfield, &s->lua_frames,
			    &s->host_frames);
    if (LJ_LIKELY(raw != NULL)) {
      raw->head.event = (uint8_t)ev->e.index;
      raw->head.state = (uint8_t)s->state;
      raw->weight = weight;
      raw->labels = head->labels ? head->labels : s->labels.id;
      return;
    }
    lj_handover_encode(s);
  }
  relaxed_add(&s->counters[SPF_COUNTER_LOST_BUFFER], 1);
  lj_encoder_lose(&s->stream, ev->e.index, weight, head->field);
}

static void count(Sampler *s, SampleEvent *ev)
{
  relaxed_add(&ev->e.counters[SPF_EVENT_SAMPLES], 1);
  relaxed_add(&s->counters[s->state], 1);
}

static SAMPLE_RARE void count_broken(Sampler *s, uint64_t *of_event, int counter,
				     int refused)
{
  relaxed_add(of_event, 1);
  relaxed_add(&s->counters[counter], 1);
  relaxed_add(&s->counters[SPF_COUNTER_REFUSED + refused], 1);
}

/* Count a sample, and append it. reads: the VM is being read. */
static LJ_AINLINE void put(Sampler *s, SampleEvent *ev, const SampleHead *head,
			   const KeptStack *kept, int reads)
{
  uint64_t now_us = time_us(s, head->time_ns), *counters = ev->e.counters;
  count(s, ev);
  if (LJ_UNLIKELY(s->lua.broken >= 0))
    count_broken(s, &counters[SPF_EVENT_LUA_BROKEN], SPF_COUNTER_LUA_BROKEN + s->lua.broken,
		 s->lua.refused);
  if (s->opt->mode == LUAM_SYSPROF_DEFAULT) return;
  if (LJ_UNLIKELY(s->host.broken >= 0))
    count_broken(s, &counters[SPF_EVENT_HOST_BROKEN],
		 SPF_COUNTER_HOST_BROKEN + s->host.broken, s->host.refused);
  capture(s, ev, head, now_us, kept);
  if (now_us - s->batch.first_us >= ENCODE_US || lj_stream_isdue(&s->stream, now_us))
    lj_handover_encode(s);
  if (sampler_isqueued(s) && lj_chunkqueue_ispending(&s->queue)) ask_flush(s, reads);
}

void lj_sample_append(Sampler *s, SampleEvent *ev, const SampleHead *head,
		      const KeptStack *kept)
{
  put(s, ev, head, kept, 0);
}

/* Take a sample, and end its reading of the VM. */
static void take(Sampler *s, SampleEvent *ev, const SampleHead *head, const WalkRegs *regs)
{
  int reads;
  s->labels.id = 0;
  reads = LJ_LIKELY(!head->stack) ? walk_both(s, regs, head) : take_given(s, head);
  if (LJ_UNLIKELY(head->state != 0)) s->state = head->state;
  if (LJ_UNLIKELY(s->peek.uncopied))
    relaxed_set(&s->counters[SPF_COUNTER_UNCOPIED], s->peek.uncopied);
  put(s, ev, head, NULL, reads);
  if (reads) vm_leave(s);
}

/* -- Samples that interrupt others ------------------------------------------- */

/* Total of the source of a sample that finds its sampler held. The source still runs, so it can tell. */
static SAMPLE_RARE uint64_t total_now(const SampleEvent *ev, const SampleHead *head)
{
  return head->total ? head->total : ev->e.spec.ops->total(&ev->e);
}

SAMPLE_RARE void lj_sample_lose(Sampler *s, SampleEvent *ev, const SampleHead *head)
{
  const EventSpec *spec = &ev->e.spec;
  __atomic_add_fetch(&s->counters[SPF_COUNTER_LOST_NESTED], 1, __ATOMIC_RELAXED);
  if (spec->has_weights) {
    int i;
    for (i = 0; i < spec->nfield; i++)
      if (spec->field[i].kind == SPF_FIELD_COUNT)
	__atomic_add_fetch(&ev->lost_field[i], head->field[i], __ATOMIC_RELAXED);
    __atomic_add_fetch(&ev->lost_weight, head->weight, __ATOMIC_RELAXED);
  } else {
    uint64_t total = total_now(ev, head);
    if (total > ev->base) relaxed_set(&ev->lost_total, ev->before + total - ev->base);
  }
  __atomic_store_n(&s->has_nested, 1, __ATOMIC_RELEASE);
}

/* Note a sample that has interrupted another one, or the profiler on its own thread. One
** with a weight of its own is lost.
*/
static SAMPLE_RARE void note_nested(Sampler *s, SampleEvent *ev, const SampleHead *head,
				    int user)
{
  uint64_t total;
  if (user != SAMPLER_THREAD || ev->e.spec.has_weights) {
    lj_sample_lose(s, ev, head);
    return;
  }
  total = total_now(ev, head);
  if (total > relaxed_get(&ev->nested_total)) relaxed_set(&ev->nested_total, total);
  __atomic_add_fetch(&ev->nested, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&s->has_nested, 1, __ATOMIC_RELEASE);
}

/* Take the weights of lost samples. */
static SAMPLE_RARE void take_lost(Sampler *s, SampleEvent *ev)
{
  uint64_t total = __atomic_exchange_n(&ev->lost_total, 0, __ATOMIC_RELAXED);
  uint64_t weight = __atomic_exchange_n(&ev->lost_weight, 0, __ATOMIC_RELAXED);
  uint64_t field[SPF_FIELDS_MAX];
  int i;
  for (i = 0; i < ev->e.spec.nfield; i++)
    field[i] = __atomic_exchange_n(&ev->lost_field[i], 0, __ATOMIC_RELAXED);
  if (total > ev->taken) {
    weight += total - ev->taken;
    relaxed_set(&ev->taken, total);
    if (total > sampleevent_total(ev)) relaxed_set(&ev->e.counters[SPF_EVENT_TOTAL], total);
  }
  lj_encoder_lose(&s->stream, ev->e.index, weight, field);
}

/* Append a sample without stacks. work: SPF_WORK_*. */
static SAMPLE_RARE void put_work(Sampler *s, SampleEvent *ev, int work, int arg,
				 uint64_t now_ns)
{
  SampleHead head = { 0 };
  s->labels.id = 0;
  lj_framelist_reset(&s->host_frames);
  lj_framelist_reset(&s->lua_frames);
  lj_framelist_push(&s->lua_frames, frame_word2(SPF_FRAME_WORK, work, arg));
  lj_framelist_finish(&s->host_frames);
  lj_framelist_finish(&s->lua_frames);
  count(s, ev);
  if (s->opt->mode != LUAM_SYSPROF_DEFAULT) capture(s, ev, &head, time_us(s, now_ns), NULL);
}

/* Append one sample for all that an event has noted. */
static SAMPLE_RARE void take_noted(Sampler *s, SampleEvent *ev, uint64_t now_ns)
{
  uint32_t n = __atomic_exchange_n(&ev->nested, 0, __ATOMIC_ACQUIRE);
  if (n == 0) return;
  totals_raise(ev, __atomic_exchange_n(&ev->nested_total, 0, __ATOMIC_RELAXED));
  put_work(s, ev, SPF_WORK_PROFILER, 0, now_ns);
  relaxed_add(&ev->e.counters[SPF_EVENT_OVERRUNS], n - 1);
}

SAMPLE_RARE void lj_sample_nested(Sampler *s)
{
  int i;
  if (LJ_LIKELY(!__atomic_exchange_n(&s->has_nested, 0, __ATOMIC_ACQUIRE))) return;
  for (i = 0; i < s->nevent; i++) {
    take_lost(s, &s->event[i]);
    take_noted(s, &s->event[i], mono_ns());
  }
}

/* Is the CPU time since the last tick a sample of this thread? One that has ticked never may have
** run for a moment only: there may be thousands of such threads.
*/
static int has_rest(const SampleEvent *ev, uint64_t rest)
{
  const EventSpec *spec = &ev->e.spec;
  return spec->measures == EVENT_CPU_TIME && spec->unit == SPF_UNIT_US &&
	 (ev->e.counters[SPF_EVENT_SAMPLES] != 0 || rest >= spec->period / 1000);
}

SAMPLE_RARE void lj_sample_rest(Sampler *s, int all)
{
  uint64_t end_ns = s->start_ns + relaxed_get(&s->counters[SPF_COUNTER_WALL_US]) * 1000;
  int i;
  if (s->opt->mode == LUAM_SYSPROF_DEFAULT) return;
  for (i = 0; i < s->nevent; i++) {
    SampleEvent *ev = &s->event[i];
    uint64_t total = sampleevent_total(ev);
    if (ev->e.spec.has_weights || total <= ev->taken ||
	!(ev->e.spec.sum || (all && has_rest(ev, total - ev->taken))))
      continue;
    s->state = SPF_VMST_CFUNC;
    put_work(s, ev, SPF_WORK_UNSEEN, SPF_UNSEEN_NO_TICK, end_ns);
    relaxed_add(&ev->rests, 1);
  }
}

/* -- Taking samples ---------------------------------------------------------- */

/* Time that the thread ran for a sample which took unusually long: another thread may have run in between.
** That is rare. So where the CPU time was not read, a sample counts for SAMPLE_LONG_NS, twice that if the last
** one was long, too, and so on.
*/
static SAMPLE_RARE uint64_t long_ns(Sampler *s, const SampleHead *head, uint64_t real_ns)
{
  uint64_t cpu_ns;
  if (head->cpu_ns != 0) cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - head->cpu_ns;
  else cpu_ns = (uint64_t)SAMPLE_LONG_NS << s->nlong;
  if (s->nlong < SAMPLE_LONG_RUN) s->nlong++;
  return cpu_ns < real_ns ? cpu_ns : real_ns;
}

/* Does the VM work for the profiler on this thread? A source of the VM does, or the collector. Finalizers
** are the program's. Samples of the VM's sources go on.
*/
static LJ_AINLINE int is_at_work(const Sampler *s, const Event *e, const WalkRegs *regs)
{
  const EventDoor *door = &s->gate->door;
  uintptr_t frame = relaxed_get(&door->at_work), collects = relaxed_get(&door->collects);
  if (LJ_LIKELY((frame | collects) == 0)) return 0;
  if (e->spec.ops->is_of_vm || !vmgate_runson(s->gate, s->reader.tid)) return 0;
  return regs->r[WALKREG_SP] <= frame ||
	 (regs->r[WALKREG_SP] <= collects && s->gate->g->vmstate == ~LJ_VMST_GC);
}

int lj_sample_take(Event *e, SampleHead *head, const WalkRegs *regs)
{
  SampleEvent *ev = (SampleEvent *)e;
  Sampler *s = ev->sampler;
  int user = 0;
  if (LJ_UNLIKELY(!regs && !head->stack)) {
    lj_sample_lose(s, ev, head);
    return 0;
  }
  if (LJ_UNLIKELY(!__atomic_compare_exchange_n(&s->user, &user, SAMPLER_THREAD, 0,
					       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))) {
    if (!head->stack || !head->is_retried) note_nested(s, ev, head, user);
    return 0;
  }
  if (LJ_UNLIKELY(relaxed_get(&s->has_nested))) lj_sample_nested(s);
  totals_sample(ev, head);
  totals_list(s);
  if (LJ_UNLIKELY(is_at_work(s, e, regs)))
    put_work(s, ev, SPF_WORK_PROFILER, 0, head->time_ns);
  else take(s, ev, head, regs);
  if (LJ_UNLIKELY(relaxed_get(&s->has_nested))) lj_sample_nested(s);
  head->end_ns = mono_ns();
  head->spent_ns = head->end_ns - head->time_ns;
  if (LJ_UNLIKELY(head->spent_ns >= SAMPLE_LONG_NS))
    head->spent_ns = long_ns(s, head, head->spent_ns);
  else s->nlong = 0;
  relaxed_set(&s->spent_ns, head->spent_ns);
  head->session = s->number;
  lj_sampler_release(s);
  return 1;
}
