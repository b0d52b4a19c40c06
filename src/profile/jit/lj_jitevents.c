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
#include "lj_jit.h"
#include "lj_trace.h"
#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_relaxed.h"
#include "profile/jit/lj_jitevents.h"
#include "profile/jit/lj_jitreason.h"

#if LJ_HASJIT

#define SECOND_NS 1000000000

struct JitEvents {
  global_State *g;
  int on;                         /* Bit set of the kinds that run. Any thread. */
  EventDoor *door;                /* Way to the running profile, */
  const SourceOps *ops[JIT__MAX]; /* and the sources of its events. */
  uint64_t grown_ns;              /* Time of the last growth of room. */
  uint32_t room;                  /* Samples with a stack that may be taken now. */
  uint64_t many[JIT__MAX];        /* Samples that were too many. */
  uint64_t period;                /* Of exits: their mean distance. */
  uint64_t drawn;                 /* Exits from the last sample to the next one, */
  uint64_t left;                  /* and those that are left. */
  uint64_t random;                /* State of the generator. */
  uint32_t abort;                 /* Reason of the last abort. */
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

/* -- Samples ----------------------------------------------------------------- */

/* May a sample with a stack be taken now? */
static int has_room(JitEvents *je, JitKind kind, uint64_t now_ns)
{
  uint64_t grown = (now_ns - je->grown_ns) / (SECOND_NS / JIT_SAMPLES_MAX);
  if (grown > 0) {
    je->room = grown < JIT_BURST - je->room ? je->room + (uint32_t)grown : JIT_BURST;
    je->grown_ns = now_ns;
  }
  if (je->room > 0) {
    je->room--;
    return 1;
  }
  relaxed_set(&je->many[kind], je->many[kind] + 1);
  return 0;
}

/* Take a sample. reason: of an event that has one. regs: of the caller; NULL: the head names a
** stack.
*/
static void take(JitEvents *je, JitKind kind, uint32_t reason, SampleHead *head,
		 const WalkRegs *regs)
{
  const JitReason *text = &je->reasons.text[reason];
  SampleDef def = { SPF_TEXT, JIT_TEXT_FIRST + reason, &text->len, 1u + text->len };
  Event *ev = je->door->enter(je->door, je->ops[kind]);
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
  __atomic_add_fetch(&ev->counters[SPF_EVENT_TOTAL], head->weight, __ATOMIC_RELAXED);
  if (!has_room(je, kind, head->time_ns)) {
    head->stack = NULL;
    regs = NULL;
  }
  ev->take(ev, head, regs);
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
  WalkRegs regs;
  if (is_error(J->L->top - 1, LJ_TRERR_MCODELM)) return;
  if (!is_on(je, JIT_ABORT) && !is_on(je, JIT_BLACKLIST) && !is_on(je, JIT_FLUSH)) return;
  je->abort = lj_jitreason_abort(&je->reasons, J);
  if (!is_on(je, JIT_ABORT) || J->cur.traceno == 0) return;
  walkregs_here(&regs);
  set_trace(&head, J);
  take(je, JIT_ABORT, je->abort, &head, &regs);
}

void lj_jitevents_blacklists(jit_State *J, const GCproto *pt, const BCIns *pc)
{
  JitEvents *je = state_of(J);
  SampleStack stack = { NULL, pt, pc + 1 };
  SampleHead head = { .stack = &stack };
  if (!is_on(je, JIT_BLACKLIST)) return;
  set_trace(&head, J);
  take(je, JIT_BLACKLIST, je->abort, &head, NULL);
}

void lj_jitevents_saves(jit_State *J)
{
  JitEvents *je = state_of(J);
  SampleStack stack = { NULL, &gcref(J->cur.startpt)->pt, mref(J->cur.startpc, BCIns) + 1 };
  SampleHead head = { .stack = &stack };
  if (!is_on(je, JIT_STOP)) return;
  set_trace(&head, J);
  head.state = SPF_VMST_ASM;
  head.field[JITFIELD_MCODE] = J->cur.szmcode;
  take(je, JIT_STOP, lj_jitreason_link(&je->reasons, J), &head, NULL);
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
  WalkRegs regs;
  if (!is_on(je, JIT_FLUSH)) return;
  walkregs_here(&regs);
  set_trace(&head, J);
  if (J->state == LJ_TRACE_IDLE) head.state = 0;
  head.field[JITFIELD_MCODE] = J->szallmcarea;
  take(je, JIT_FLUSH, flush_reason(je, J), &head, &regs);
}

/* Draw the distance to the next sample: 1 to twice the period, so that a program whose exits take
** turns has no rhythm with it. The generator is xorshift64* of Vigna, as in lj_allocdraw.c.
*/
static void draw(JitEvents *je)
{
  uint64_t x = je->random;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  je->random = x;
  relaxed_set(&je->drawn,
	      1 + ((x * U64x(2545f491, 4f6cdd1d)) >> 11) % (2 * je->period - 1));
  relaxed_set(&je->left, je->drawn);
}

static LJ_NOINLINE void take_exit(JitEvents *je, jit_State *J, const BCIns *pc)
{
  SampleHead head = { .stack = NULL };
  WalkRegs regs;
  walkregs_here(&regs);
  setcframe_pc(cframe_raw(J->L->cframe), pc);
  head.weight = je->drawn;
  head.field[JITFIELD_TRACE] = J->parent;
  head.field[JITFIELD_EXIT] = J->exitno;
  head.state = SPF_VMST_EXIT;
  take(je, JIT_EXIT, 0, &head, &regs);
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
  je->door = ev->door;
  je->ops[kind] = ev->spec.ops;
  je->many[kind] = 0;
  je->grown_ns = mono_ns();
  je->room = JIT_BURST;
  if (kind == JIT_EXIT) {
    je->random = mono_ns() ^ (uintptr_t)je;
    if (je->random == 0) je->random = 1;
    je->period = ev->spec.period;
    draw(je);
  }
  __atomic_or_fetch(&je->on, 1 << kind, __ATOMIC_RELEASE);
}

uint64_t lj_jitevents_stop(JitEvents *je, JitKind kind)
{
  __atomic_and_fetch(&je->on, ~(1 << kind), __ATOMIC_RELEASE);
  return kind == JIT_EXIT ? relaxed_get(&je->drawn) - relaxed_get(&je->left) : 0;
}

uint64_t lj_jitevents_many(const JitEvents *je, JitKind kind)
{
  return relaxed_get(&je->many[kind]);
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
