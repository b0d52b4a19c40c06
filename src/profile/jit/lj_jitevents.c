/*
** Events of the compiler: calls from LuaJIT's recorder, and the samples that they take.
** Context: as in the header.
*/

#define lj_jitevents_c
#define LUA_CORE

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_dispatch.h"
#include "lj_frame.h"
#include "lj_gc.h"
#include "lj_jit.h"
#include "lj_trace.h"
#include "profile/base/lj_hash.h"
#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_random.h"
#include "profile/base/lj_relaxed.h"
#include "profile/jit/lj_jitevents.h"
#include "profile/jit/lj_jitreason.h"

#if LJ_HASJIT

#define SECOND_NS 1000000000
#define PROBES    32 /* Rows of the table of sums that are tried. */

/* Events without a stack of their own: their line and reason. */
typedef struct JitSum {
  const GCproto *pt; /* Function, */
  const void *pc;    /* and PC behind the instruction. */
  uint32_t reason;
  uint8_t kind;
  uint8_t state;  /* SPF_VMST_* */
  uint64_t n;     /* Weight. 0: the row is free. */
  uint64_t mcode; /* Sum of the field. */
} JitSum;

LJ_STATIC_ASSERT(JIT_SUMS == 1 << JIT_BITS);

/* One kind of event. */
typedef struct JitBudget {
  const SourceOps *ops;        /* Its source. */
  uint64_t grown_ns;           /* Time of the last growth of room. */
  uint64_t flush_ns;           /* Time of the next flush of its sums. */
  uint32_t room;               /* Samples with a stack that may be taken now. */
  uint64_t many;               /* Events without a stack of their own, */
  uint64_t unplaced;           /* and those of them without a line. */
  JitSum other[JITREASON_MAX]; /* Those whose line has no room, by reason. */
} JitBudget;

struct JitEvents {
  global_State *g;
  int on;          /* Bit set of the kinds that run. Any thread. */
  EventDoor *door; /* Way to the running profile. */
  JitBudget kind[JIT__MAX];
  JitSum sum[JIT_SUMS];
  uint16_t first[JIT_SUMS]; /* Of a merge: row + 1 by its place; 0: none. */
  uint64_t period;          /* Of exits: their mean distance. */
  uint64_t drawn;           /* Exits from the last sample to the next one, */
  uint64_t left;            /* and those that are left. */
  uint64_t told;            /* Exits since the last sample that the total has. */
  uint64_t random;          /* State of the generator. */
  uint32_t abort;           /* Reason of the last abort. */
  JitReasons reasons;
  JitEvents *next; /* All of them. Under the lock. */
};

static JitEvents *states;

static JitEvents *state_of(const jit_State *J)
{
  return J2GG((jit_State *)J)->jitevents;
}

static int is_on(const JitEvents *je, JitKind kind)
{
  return (relaxed_get(&je->on) >> kind) & 1;
}

/* -- Places ------------------------------------------------------------------ */

/* Find the innermost Lua function of a thread that a C function has called. */
static SampleStack caller_place(const lua_State *L)
{
  SampleStack st = { NULL, NULL, NULL };
  cTValue *frame = L->base - 1, *next = NULL;
  for (; frame > tvref(L->stack) + LJ_FR2; next = frame, frame = frame_prev(frame)) {
    GCfunc *fn = frame_func(frame);
    if (!next || !isluafunc(fn)) continue;
    if (frame_islua(next)) st.pc = frame_pc(next);
    else if (frame_iscont(next)) st.pc = frame_contpc(next);
    if (st.pc) st.pt = funcproto(fn);
    break;
  }
  return st;
}

/* The same of the function that the compiler records. */
static SampleStack recorded_place(const jit_State *J)
{
  SampleStack st = { NULL, J->pt, J->pc + 1 };
  return J->pt ? st : caller_place(J->L);
}

/* -- Sums -------------------------------------------------------------------- */

static JitSum *sum_find(JitEvents *je, JitKind kind, uint32_t reason, int state,
			const SampleStack *st)
{
  uint32_t slot = hash_slot(
    (uintptr_t)st->pc ^ (uint64_t)reason << 48 ^ (uint64_t)kind << 56, JIT_BITS);
  JitSum *room = NULL;
  int i;
  for (i = 0; st->pt && i < PROBES; i++, slot = (slot + 1) & (JIT_SUMS - 1)) {
    JitSum *row = &je->sum[slot];
    if (row->n == 0) {
      if (!room) room = row;
    } else if (row->pc == st->pc && row->pt == st->pt && row->reason == reason &&
	       row->kind == kind && row->state == state) {
      return row;
    }
  }
  if (room) {
    room->pt = st->pt;
    room->pc = st->pc;
  } else {
    room = &je->kind[kind].other[reason];
    relaxed_set(&je->kind[kind].unplaced, je->kind[kind].unplaced + 1);
  }
  room->reason = reason;
  room->kind = (uint8_t)kind;
  room->state = (uint8_t)state;
  return room;
}

static void sum_add(JitSum *row, uint64_t n, uint64_t mcode)
{
  relaxed_set(&row->mcode, row->mcode + mcode);
  relaxed_set(&row->n, row->n + n);
}

/* Set what a sample of a sum says. The definition outlives the head. */
static void sum_head(const JitEvents *je, const JitSum *row, SampleHead *head,
		     SampleDef *def)
{
  const JitReason *text = &je->reasons.text[row->reason];
  head->time_ns = mono_ns();
  head->weight = row->n;
  head->state = row->state;
  if (!row->pt) head->work = SPF_WORK_UNKEPT;
  if (row->kind == JIT_EXIT) return;
  def->tag = SPF_TEXT;
  def->id = JIT_TEXT_FIRST + row->reason;
  def->payload = &text->len;
  def->len = 1u + text->len;
  head->def = def;
  head->ndef = 1;
  head->field[JITFIELD_REASON] = def->id;
  if (row->kind == JIT_FLUSH || row->kind == JIT_STOP)
    head->field[JITFIELD_MCODE] = row->mcode;
}

static void sum_clear(JitSum *row)
{
  row->pt = NULL;
  relaxed_set(&row->mcode, 0);
  relaxed_set(&row->n, 0);
}

/* Make a sample of a sum, and clear it. Returns 0 if the session is in use. */
static int sum_take(JitEvents *je, Event *ev, JitSum *row)
{
  SampleStack stack = { NULL, row->pt, row->pc };
  SampleHead head = { .stack = &stack, .is_retried = 1 };
  SampleDef def;
  if (row->n == 0) return 1;
  sum_head(je, row, &head, &def);
  if (!ev->take(ev, &head, NULL)) return 0;
  sum_clear(row);
  return 1;
}

void lj_jitevents_flush(JitEvents *je, JitKind kind, Event *ev)
{
  uint32_t i;
  for (i = 0; i < JITREASON_MAX; i++)
    if (!sum_take(je, ev, &je->kind[kind].other[i])) return;
  for (i = 0; i < JIT_SUMS; i++)
    if (je->sum[i].kind == kind && !sum_take(je, ev, &je->sum[i])) return;
}

/* Another thread may run the VM, so no function is read. */
static void sum_rest(JitEvents *je, Event *ev, JitSum *row)
{
  JitSum its = { .reason = row->reason, .kind = row->kind, .state = row->state };
  SampleHead head = { 0 };
  SampleDef def;
  its.n = __atomic_exchange_n(&row->n, 0, __ATOMIC_RELAXED);
  its.mcode = __atomic_exchange_n(&row->mcode, 0, __ATOMIC_RELAXED);
  if (its.n == 0) return;
  sum_head(je, &its, &head, &def);
  ev->append(ev, &head);
}

void lj_jitevents_rest(JitEvents *je, JitKind kind, Event *ev)
{
  uint32_t i;
  for (i = 0; i < JITREASON_MAX; i++) sum_rest(je, ev, &je->kind[kind].other[i]);
  for (i = 0; i < JIT_SUMS; i++)
    if (je->sum[i].kind == kind) sum_rest(je, ev, &je->sum[i]);
}

/* Do two sums belong to one place? Code that is loaded again has other functions there. */
static int is_same_place(const JitSum *a, const JitSum *b)
{
  return a->reason == b->reason && a->kind == b->kind && a->state == b->state &&
	 proto_chunkname(a->pt) == proto_chunkname(b->pt) &&
	 a->pt->firstline == b->pt->firstline && a->pt->sizebc == b->pt->sizebc &&
	 proto_bcpos(a->pt, (const BCIns *)a->pc) ==
	   proto_bcpos(b->pt, (const BCIns *)b->pc);
}

static uint32_t place_slot(const JitSum *row)
{
  uint64_t pos = proto_bcpos(row->pt, (const BCIns *)row->pc);
  return hash_slot((uintptr_t)proto_chunkname(row->pt) ^ (uint64_t)row->reason << 48 ^
		     pos << 24 ^ (uint64_t)row->pt->firstline << 8 ^ row->kind,
		   JIT_BITS);
}

/* Add the sum of a row to the first one of its place. */
static void sum_merge(JitEvents *je, uint32_t i)
{
  JitSum *row = &je->sum[i];
  uint32_t k, slot = place_slot(row);
  for (k = 0; k < PROBES; k++, slot = (slot + 1) & (JIT_SUMS - 1)) {
    if (je->first[slot] == 0) {
      je->first[slot] = (uint16_t)(i + 1);
      return;
    }
    if (is_same_place(&je->sum[je->first[slot] - 1], row)) {
      sum_add(&je->sum[je->first[slot] - 1], row->n, row->mcode);
      sum_clear(row);
      return;
    }
  }
}

static int is_dying(const JitEvents *je, const JitSum *row)
{
  return row->n != 0 && row->pt && isdead(je->g, obj2gco(row->pt));
}

/* Take the sum of a function that is about to be freed. */
static void sum_ends(JitEvents *je, JitSum *row)
{
  Event *ev = je->door->enter(je->door, je->kind[row->kind].ops);
  if (!ev || !sum_take(je, ev, row)) {
    JitSum *other = &je->kind[row->kind].other[row->reason];
    other->reason = row->reason;
    other->kind = row->kind;
    other->state = row->state;
    sum_add(other, row->n, row->mcode);
    sum_clear(row);
  }
  if (ev) je->door->leave(je->door);
}

/* The collector frees strings before functions: so a function that it frees has no name then. */
void lj_jitevents_marked(JitEvents *je)
{
  uint32_t i, dying = 0;
  if (!relaxed_get(&je->on)) return;
  memset(je->first, 0, sizeof(je->first));
  for (i = 0; i < JIT_SUMS; i++)
    if (is_dying(je, &je->sum[i])) dying++;
    else if (je->sum[i].n != 0 && je->sum[i].pt) sum_merge(je, i);
  for (i = 0; i < JIT_SUMS && dying; i++)
    if (is_dying(je, &je->sum[i])) sum_merge(je, i);
  for (i = 0; i < JIT_SUMS && dying; i++)
    if (is_dying(je, &je->sum[i])) sum_ends(je, &je->sum[i]);
}

/* -- Samples ----------------------------------------------------------------- */

/* May a sample with a stack be taken now? */
static int has_room(JitBudget *b, uint64_t now_ns)
{
  uint64_t grown = (now_ns - b->grown_ns) / (SECOND_NS / JIT_SAMPLES_MAX);
  if (grown > 0) {
    b->room = grown < JIT_BURST - b->room ? b->room + (uint32_t)grown : JIT_BURST;
    b->grown_ns = now_ns;
  }
  if (b->room == 0) return 0;
  b->room--;
  return 1;
}

/* Take a sample, or add to a sum. reason: of an event that has one. place: of the sum. regs: of the
** caller; NULL: the sample has only the place.
*/
static void take(JitEvents *je, JitKind kind, uint32_t reason, SampleHead *head,
		 const SampleStack *place, const WalkRegs *regs)
{
  const JitReason *text = &je->reasons.text[reason];
  JitBudget *b = &je->kind[kind];
  SampleDef def = { SPF_TEXT, JIT_TEXT_FIRST + reason, &text->len, 1u + text->len };
  Event *ev = je->door->enter(je->door, b->ops);
  int err = errno;
  if (!ev) return;
  eventdoor_work(je->door);
  head->time_ns = mono_ns();
  if (head->weight == 0) head->weight = 1;
  if (kind != JIT_EXIT) {
    head->def = &def;
    head->ndef = 1;
    head->field[JITFIELD_REASON] = def.id;
  }
  head->of_lua = 1;
  if (!regs) head->stack = place;
  __atomic_add_fetch(&ev->counters[SPF_EVENT_TOTAL],
		     head->weight - (kind == JIT_EXIT ? je->told : 0), __ATOMIC_RELAXED);
  if (has_room(b, head->time_ns)) {
    ev->take(ev, head, regs);
  } else {
    int has_mcode = kind == JIT_FLUSH || kind == JIT_STOP;
    relaxed_set(&b->many, b->many + 1);
    sum_add(sum_find(je, kind, reason, head->state, place), head->weight,
	    has_mcode ? head->field[JITFIELD_MCODE] : 0);
    if (head->time_ns >= b->flush_ns) {
      lj_jitevents_flush(je, kind, ev);
      b->flush_ns = head->time_ns + SECOND_NS;
    }
  }
  eventdoor_rest(je->door);
  je->door->leave(je->door);
  errno = err;
}

/* Set the fields of the trace that the compiler works on. */
static void set_trace(SampleHead *head, const jit_State *J)
{
  head->field[JITFIELD_TRACE] = J->cur.traceno;
  head->field[JITFIELD_PARENT] = J->parent;
  head->field[JITFIELD_EXIT] = J->exitno;
  head->state = J->curfinal ? SPF_VMST_ASM : SPF_VMST_RECORD;
}

/* -- Calls from LuaJIT -------------------------------------------------------- */

static int is_error(cTValue *o, TraceError e)
{
  return tvisnumber(o) && numberVint(o) == (int32_t)e;
}

/* A recording that begins again with more machine code is not given up. Without a trace, there is
** nothing to give up: the program has freed all traces meanwhile.
*/
LJ_NOINLINE void lj_jitevents_aborts(jit_State *J)
{
  JitEvents *je = state_of(J);
  SampleHead head = { .stack = NULL };
  SampleStack place;
  WalkRegs regs;
  if (is_error(J->L->top - 1, LJ_TRERR_MCODELM)) return;
  if (!is_on(je, JIT_ABORT) && !is_on(je, JIT_BLACKLIST) && !is_on(je, JIT_FLUSH)) return;
  je->abort = lj_jitreason_abort(&je->reasons, J);
  if (!is_on(je, JIT_ABORT) || J->cur.traceno == 0) return;
  walkregs_here(&regs);
  set_trace(&head, J);
  place = recorded_place(J);
  take(je, JIT_ABORT, je->abort, &head, &place, &regs);
}

void lj_jitevents_blacklists(jit_State *J, const GCproto *pt, const BCIns *pc)
{
  JitEvents *je = state_of(J);
  SampleStack place = { NULL, pt, pc + 1 };
  SampleHead head = { .stack = NULL };
  if (!is_on(je, JIT_BLACKLIST)) return;
  set_trace(&head, J);
  take(je, JIT_BLACKLIST, je->abort, &head, &place, NULL);
}

void lj_jitevents_saves(jit_State *J)
{
  JitEvents *je = state_of(J);
  SampleStack place = { NULL, &gcref(J->cur.startpt)->pt, mref(J->cur.startpc, BCIns) + 1 };
  SampleHead head = { .stack = NULL };
  if (!is_on(je, JIT_STOP)) return;
  if (lj_jitreason_isstitch(J)) {
    SampleStack call = caller_place(J->L);
    if (call.pt) place = call;
  }
  set_trace(&head, J);
  head.state = SPF_VMST_ASM;
  head.field[JITFIELD_MCODE] = J->cur.szmcode;
  take(je, JIT_STOP, lj_jitreason_link(&je->reasons, J), &head, &place, NULL);
}

/* Why are all traces freed? The compiler does so where an abort lacked memory, or a new trace has
** no number.
*/
static uint32_t flush_reason(JitEvents *je, const jit_State *J)
{
  if (!(J2G((jit_State *)J)->hookmask & HOOK_VMEVENT)) {
    if (J->state == LJ_TRACE_ERR) return je->abort;
    if (J->state == LJ_TRACE_RECORD)
      return lj_jitreason_text(&je->reasons, "too many traces");
  }
  return lj_jitreason_text(&je->reasons, "by the program");
}

LJ_NOINLINE void lj_jitevents_flushes(jit_State *J)
{
  JitEvents *je = state_of(J);
  SampleHead head = { .stack = NULL };
  SampleStack place;
  WalkRegs regs;
  if (!is_on(je, JIT_FLUSH)) return;
  walkregs_here(&regs);
  set_trace(&head, J);
  if (J->state == LJ_TRACE_IDLE) {
    head.state = 0;
    place = caller_place(gco2th(gcref(je->g->cur_L)));
  } else {
    place = recorded_place(J);
  }
  head.field[JITFIELD_MCODE] = J->szallmcarea;
  take(je, JIT_FLUSH, flush_reason(je, J), &head, &place, &regs);
}

/* Draw the distance to the next sample: 1 to twice the period, so that a program whose exits take
** turns has no rhythm with it.
*/
static void draw(JitEvents *je)
{
  relaxed_set(&je->drawn, 1 + random_next(&je->random) % (2 * je->period - 1));
  relaxed_set(&je->left, je->drawn);
  relaxed_set(&je->told, 0);
}

static LJ_NOINLINE void take_exit(JitEvents *je, jit_State *J, const BCIns *pc)
{
  SampleHead head = { .stack = NULL };
  SampleStack place = { NULL, NULL, pc };
  const GCfunc *fn = curr_func(J->L);
  WalkRegs regs;
  walkregs_here(&regs);
  if (isluafunc(fn)) place.pt = funcproto(fn);
  setcframe_pc(cframe_raw(J->L->cframe), pc);
  head.weight = je->drawn;
  head.field[JITFIELD_TRACE] = J->parent;
  head.field[JITFIELD_EXIT] = J->exitno;
  head.state = SPF_VMST_EXIT;
  take(je, JIT_EXIT, 0, &head, &place, &regs);
  draw(je);
}

void lj_jitevents_exits(jit_State *J, const BCIns *pc)
{
  JitEvents *je = state_of(J);
  if (!is_on(je, JIT_EXIT)) return;
  relaxed_set(&je->left, je->left - 1);
  if (LJ_UNLIKELY(je->left == 0)) take_exit(je, J, pc);
}

/* -- Begin and end ----------------------------------------------------------- */

JitEvents *lj_jitevents_of(global_State *g)
{
  JitEvents *je = G2GG(g)->jitevents;
  if (je) return je;
  je = (JitEvents *)calloc(1, sizeof(*je));
  if (!je) return NULL;
  je->g = g;
  je->next = states;
  states = je;
  G2GG(g)->jitevents = je;
  return je;
}

void lj_jitevents_start(JitEvents *je, JitKind kind, const Event *ev)
{
  JitBudget *b = &je->kind[kind];
  uint32_t i;
  je->door = ev->door;
  b->ops = ev->spec.ops;
  b->many = b->unplaced = 0;
  b->grown_ns = mono_ns();
  b->flush_ns = b->grown_ns + SECOND_NS;
  b->room = JIT_BURST;
  for (i = 0; i < JITREASON_MAX; i++) sum_clear(&b->other[i]);
  for (i = 0; i < JIT_SUMS; i++)
    if (je->sum[i].kind == kind) sum_clear(&je->sum[i]);
  if (kind == JIT_EXIT) {
    je->random = mono_ns() ^ (uintptr_t)je;
    if (je->random == 0) je->random = 1;
    je->period = ev->spec.period;
    draw(je);
  }
  __atomic_or_fetch(&je->on, 1 << kind, __ATOMIC_RELEASE);
}

void lj_jitevents_stop(JitEvents *je, JitKind kind)
{
  __atomic_and_fetch(&je->on, ~(1 << kind), __ATOMIC_RELEASE);
}

uint64_t lj_jitevents_untold(JitEvents *je)
{
  uint64_t all = relaxed_get(&je->drawn) - relaxed_get(&je->left);
  uint64_t told = __atomic_exchange_n(&je->told, all, __ATOMIC_RELAXED);
  return all > told ? all - told : 0;
}

void lj_jitevents_many(const JitEvents *je, JitKind kind, uint64_t *many,
		       uint64_t *unplaced)
{
  *many = relaxed_get(&je->kind[kind].many);
  *unplaced = relaxed_get(&je->kind[kind].unplaced);
}

void lj_jitevents_close(global_State *g)
{
  JitEvents **at = &states;
  for (; *at; at = &(*at)->next)
    if ((*at)->g == g) {
      JitEvents *je = *at;
      *at = je->next;
      G2GG(g)->jitevents = NULL;
      free(je);
      return;
    }
}

void lj_jitevents_forget(void)
{
  JitEvents *je;
  for (je = states; je; je = je->next) relaxed_set(&je->on, 0);
}

#endif
