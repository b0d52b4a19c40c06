/*
** Signal handler of the clocks, and the table of open clocks that it reads.
** Context: handler; see the header.
*/

#define lj_clocksig_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "profile/clock/lj_clock_itimer.h"
#include "profile/clock/lj_clock_perf.h"
#include "profile/clock/lj_clocksig.h"
#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_ossignal.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_relaxed.h"

/* -- Table of open clocks ---------------------------------------------------- */

/* Value of a slot: a tag, a generation that changes with every claim, and the index. The
** signals of a clock carry its value. A value without the tag belongs to another sender.
*/
#define VALUE_TAG        ((uintptr_t)0x5350 << 48)
#define VALUE_TAG_MASK   ((uintptr_t)0xffff << 48)
#define VALUE_INDEX_MASK ((uintptr_t)(CLOCKS_MAX - 1))
#define VALUE_GENERATION ((uintptr_t)CLOCKS_MAX)
#define VALUE_FREE       ((uintptr_t)0)
#define VALUE_RETIRED    ((uintptr_t)1) /* Not to be claimed yet. */

typedef struct ClockSlot {
  uintptr_t value; /* Set last by the claim. */
  int users;       /* Handlers that use the slot. */
  int delivering;  /* Users that take a sample, on the clock's thread. */
  Clock *clock;    /* Valid while the value is, or the slot has users. */
  /* Copies, for reads without a use. */
  int tid, signo, kind;
  int next; /* Ring of slots with the same thread and signal. */
} ClockSlot;

static ClockSlot slots[CLOCKS_MAX];
static int slots_top; /* Beyond the highest slot that was ever claimed. */

static int value_istagged(uintptr_t value)
{
  return (value & VALUE_TAG_MASK) == VALUE_TAG;
}

static ClockSlot *slot_of(uintptr_t value)
{
  return &slots[value & VALUE_INDEX_MASK];
}

/* Does a value belong to a clock that is not retired? */
static int value_islive(uintptr_t value)
{
  return relaxed_get(&slot_of(value)->value) == value;
}

/* Use the slot of a value until slot_done. Returns NULL, without a use, if its clock is
** closed.
*/
static Clock *slot_use(uintptr_t value)
{
  ClockSlot *slot = slot_of(value);
  __atomic_add_fetch(&slot->users, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&slot->value, __ATOMIC_SEQ_CST) == value) return slot->clock;
  __atomic_sub_fetch(&slot->users, 1, __ATOMIC_SEQ_CST);
  return NULL;
}

static void slot_done(uintptr_t value)
{
  __atomic_sub_fetch(&slot_of(value)->users, 1, __ATOMIC_SEQ_CST);
}

static const ClockSlot *slot_next(const ClockSlot *slot)
{
  return &slots[relaxed_get(&slot->next)];
}

/* -- Signals of other senders ------------------------------------------------ */

/* The program's actions. Our handler may run while passto sets one: handler is set last. */
static struct {
  uintptr_t handler; /* SIG_DFL, SIG_IGN, or a function. */
  int flags;         /* SA_*. */
  int is_reset;      /* A signal has been passed on to a handler with SA_RESETHAND. */
  SignalMask mask;
} pass_to[OSSIGNAL_MAX + 1];

void lj_clocksig_passto(int signo, const struct sigaction *sa)
{
  __atomic_store_n(&pass_to[signo].handler, (uintptr_t)SIG_DFL, __ATOMIC_SEQ_CST);
  relaxed_set(&pass_to[signo].flags, sa->sa_flags);
  relaxed_set(&pass_to[signo].is_reset, 0);
  relaxed_set(&pass_to[signo].mask, lj_ossignal_maskof(&sa->sa_mask));
  __atomic_store_n(&pass_to[signo].handler, (uintptr_t)sa->sa_handler, __ATOMIC_RELEASE);
}

int lj_clocksig_isreset(int signo)
{
  return relaxed_get(&pass_to[signo].is_reset);
}

/* The program's handler of a signal. One with SA_RESETHAND gets one signal only. */
static uintptr_t handler_take(int signo)
{
  uintptr_t handler = __atomic_load_n(&pass_to[signo].handler, __ATOMIC_ACQUIRE);
  if (!(relaxed_get(&pass_to[signo].flags) & (int)SA_RESETHAND) ||
      handler == (uintptr_t)SIG_IGN)
    return handler;
  handler = __atomic_exchange_n(&pass_to[signo].handler, (uintptr_t)SIG_DFL,
				__ATOMIC_SEQ_CST);
  if (handler != (uintptr_t)SIG_DFL) relaxed_set(&pass_to[signo].is_reset, 1);
  return handler;
}

/* The signal that this thread passes on now, and the stack frame that does so. */
static __thread struct {
  const siginfo_t *info;
  uintptr_t frame;
} passing __attribute__((tls_model("initial-exec")));

/* Call the program's handler under the mask that the kernel would set: the one before the
** signal, the action's own, and without SA_NODEFER the signal itself. The mask of our own
** handler follows. A default action is left out, because it would end the program.
**
** A program's handler that was installed over ours may call ours in turn. The second call
** for a signal, deeper on the stack, ends the loop. The program's handler may also leave
** by a jump; a later signal then begins at the same height of the stack or above.
*/
static LJ_NOINLINE void pass_on(int signo, siginfo_t *info, void *uc, SignalMask before)
{
  uintptr_t frame = (uintptr_t)__builtin_frame_address(0), outer = passing.frame, handler;
  const siginfo_t *outer_info = passing.info;
  SignalMask mask = before | relaxed_get(&pass_to[signo].mask);
  int flags = relaxed_get(&pass_to[signo].flags);
  if (outer_info == info && frame < outer) return;
  handler = handler_take(signo);
  if (handler == (uintptr_t)SIG_DFL || handler == (uintptr_t)SIG_IGN) return;
  if (!(flags & SA_NODEFER)) mask |= ossignal_bit(signo);
  passing.info = info;
  passing.frame = frame;
  lj_ossignal_setmask(mask);
  if (flags & SA_SIGINFO) ((void (*)(int, siginfo_t *, void *))handler)(signo, info, uc);
  else ((void (*)(int))handler)(signo);
  lj_ossignal_setmask(OSSIGNAL_BLOCKED);
  passing.info = outer_info;
  passing.frame = outer;
}

/* -- Signals of clocks ------------------------------------------------------- */

#define SIBLINGS_MAX 32 /* Further clocks of the thread that a signal checks. */
#define SCAN_MAX     8  /* Other threads that a signal of the process checks. */

static unsigned int scan_from; /* Slot at which itimer_deliver begins. */

/* Value of the clock that sent a signal. 0: another sender, or the timer of the process. */
static uintptr_t value_of(const siginfo_t *info)
{
  uintptr_t value = (uintptr_t)info->si_value.sival_ptr;
  switch (info->si_code) {
  case SI_TIMER:
  case SI_QUEUE: /* From itimer_deliver. */ return value_istagged(value) ? value : 0;
  case POLL_IN:
  case POLL_HUP: /* The event has stopped itself. */
  case SI_SIGIO: return lj_clock_perf_value(info->si_fd);
  default: return 0;
  }
}

int lj_clocksig_isstale(const siginfo_t *info)
{
  uintptr_t value = value_of(info);
  return value && !value_islive(value);
}

/* Tick and take the sample. The slot is in use; the handler began at begin_ns. */
static LJ_AINLINE void clock_deliver(Clock *c, const siginfo_t *info, ucontext_t *uc,
				     uint64_t begin_ns)
{
  ClockSlot *slot = slot_of(c->value);
  relaxed_add(&slot->delivering, 1);
  relaxed_set(&c->begin_ns, begin_ns);
  /* Not armed: a late signal of a clock that had this descriptor before. */
  if (__atomic_load_n(&c->armed, __ATOMIC_SEQ_CST)) {
    int overrun = c->ops->tick(c, info);
    if (overrun >= 0) c->sample(c->owner, overrun, uc);
  }
  relaxed_add(&slot->delivering, -1);
}

/* Deliver to a perf clock of this thread, if a period has passed. */
static void due_deliver(const ClockSlot *slot, const siginfo_t *info, ucontext_t *uc)
{
  uintptr_t value = relaxed_get(&slot->value);
  Clock *c;
  if (relaxed_get(&slot->kind) != CLOCK_PERF || !value_istagged(value)) return;
  c = slot_use(value);
  if (!c) return;
  /* Another thread may be opening a clock that is not armed. */
  if (__atomic_load_n(&c->armed, __ATOMIC_SEQ_CST) && lj_clock_perf_isdue(c))
    clock_deliver(c, info, uc, mono_ns());
  slot_done(value);
}

/* Deliver to the other perf clocks of the thread. The kernel drops the signal of an event
** while one with the same number is pending. Without this, only one of two events that
** always occur together would get samples.
*/
static LJ_NOINLINE void siblings_deliver(uintptr_t value, int tid, int signo,
					 const siginfo_t *info, ucontext_t *uc)
{
  const ClockSlot *first = slot_of(value), *slot;
  int n;
  for (slot = slot_next(first), n = 0; slot != first && n < SIBLINGS_MAX;
       slot = slot_next(slot), n++) {
    if (relaxed_get(&slot->tid) != tid || relaxed_get(&slot->signo) != signo)
      return; /* Another thread changes the ring. */
    due_deliver(slot, info, uc);
  }
}

/* A signal of another sender was pending, so the kernel dropped those of our perf clocks. */
static LJ_NOINLINE void foreign_deliver(int signo, const siginfo_t *info, ucontext_t *uc)
{
  int tid = lj_osthread_self(), top = relaxed_get(&slots_top), i;
  for (i = 0; i < top; i++)
    if (relaxed_get(&slots[i].tid) == tid && relaxed_get(&slots[i].signo) == signo)
      due_deliver(&slots[i], info, uc);
}

/* Deliver to the clock of a value. */
static void value_deliver(uintptr_t value, int signo, const siginfo_t *info, ucontext_t *uc,
			  uint64_t begin_ns)
{
  Clock *c = slot_use(value);
  int tid, is_own;
  if (!c) { /* Its clock is closed. */
    if (info->si_code == POLL_IN || info->si_code == POLL_HUP || info->si_code == SI_SIGIO)
      lj_clock_perf_unlist(info->si_fd, value);
    return;
  }
  tid = c->tid;
  /* A late signal may name the descriptor of another thread's clock. */
  is_own = (c->spec.kind != CLOCK_PERF || tid == lj_osthread_self());
  if (is_own) clock_deliver(c, info, uc, begin_ns);
  slot_done(value);
  if (is_own && slot_next(slot_of(value)) != slot_of(value))
    siblings_deliver(value, tid, signo, info, uc);
}

/* Deliver the timer of the process to this thread's clock. Forward the signal to threads
** that the kernel has passed over.
*/
static LJ_NOINLINE void itimer_deliver(const siginfo_t *info, ucontext_t *uc)
{
  int tid = lj_osthread_self(), top = relaxed_get(&slots_top), scanned = 0, i;
  unsigned int from = relaxed_get(&scan_from);
  for (i = 0; i < top; i++) {
    unsigned int at = (from + (unsigned int)i) % (unsigned int)top;
    const ClockSlot *slot = &slots[at];
    uintptr_t value = relaxed_get(&slot->value);
    Clock *c;
    if (relaxed_get(&slot->kind) != CLOCK_ITIMER || !value_istagged(value) ||
	(relaxed_get(&slot->tid) != tid && scanned >= SCAN_MAX))
      continue;
    c = slot_use(value);
    if (!c) continue;
    if (c->tid == tid) {
      clock_deliver(c, info, uc, mono_ns());
    } else if (__atomic_load_n(&c->armed, __ATOMIC_SEQ_CST)) {
      if (++scanned == SCAN_MAX) relaxed_set(&scan_from, at + 1);
      if (lj_clock_itimer_isstarved(c)) lj_ossignal_send(getpid(), c->tid, c->signo, value);
    }
    slot_done(value);
  }
}

/* before: the mask in force before our own. */
static LJ_AINLINE void signal_handle(int signo, siginfo_t *info, void *uc,
				     uint64_t begin_ns, SignalMask before)
{
  uintptr_t value = value_of(info);
  if (value) value_deliver(value, signo, info, (ucontext_t *)uc, begin_ns);
  else if (lj_clock_itimer_issignal(signo, info->si_code))
    itimer_deliver(info, (ucontext_t *)uc);
  else {
    foreign_deliver(signo, info, (ucontext_t *)uc);
    pass_on(signo, info, uc, before);
  }
}

/* A handler of the program has been installed over ours and calls it. */
static LJ_NOINLINE void signal_handle_called(int signo, siginfo_t *info, void *uc,
					     uint64_t begin_ns)
{
  SignalMask before = lj_ossignal_setmask(OSSIGNAL_BLOCKED);
  signal_handle(signo, info, uc, begin_ns, before);
  lj_ossignal_setmask(before);
}

void lj_clocksig_handler(int signo, siginfo_t *info, void *uc)
{
  uint64_t begin_ns = mono_ns(); /* Before anything that takes time. */
  int saved_errno = errno;
  if (LJ_LIKELY(lj_ossignal_isentry(__builtin_return_address(0))))
    signal_handle(signo, info, uc, begin_ns,
		  lj_ossignal_maskof(&((ucontext_t *)uc)->uc_sigmask));
  else signal_handle_called(signo, info, uc, begin_ns);
  errno = saved_errno;
}

/* -- Totals ------------------------------------------------------------------ */

uint64_t lj_clocksig_total(const Clock *c)
{
  int in_tick = c->ops->has_last && value_islive(c->value) &&
		relaxed_get(&slot_of(c->value)->delivering) > 0;
  uint64_t total = in_tick ? relaxed_get(&c->last) : c->ops->count(c);
  return c->spec.unit == SPF_UNIT_US ? total / 1000 : total;
}

uint64_t lj_clocksig_cpu_ns(const Clock *c)
{
  int is_known = c->ops->has_last && c->spec.unit == SPF_UNIT_US;
  return is_known ? c->last : clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* -- Not in the handler: claim, retire, free --------------------------------- */

#define RETRY_NS 20000 /* Between two polls of another thread's tick. */

static uintptr_t generation; /* Of the last claim. */

static void ring_join(int slot)
{
  int i;
  relaxed_set(&slots[slot].next, slot);
  for (i = 0; i < slots_top; i++) {
    if (i != slot && value_istagged(relaxed_get(&slots[i].value)) &&
	slots[i].tid == slots[slot].tid && slots[i].signo == slots[slot].signo) {
      relaxed_set(&slots[slot].next, slots[i].next);
      relaxed_set(&slots[i].next, slot);
      break;
    }
  }
}

static void ring_leave(int slot)
{
  int i = slot;
  while (slots[i].next != slot) i = slots[i].next;
  relaxed_set(&slots[i].next, slots[slot].next);
}

int lj_clocksig_claim(Clock *c)
{
  ClockSlot *slot;
  int i = 0;
  while (i < CLOCKS_MAX && relaxed_get(&slots[i].value) != VALUE_FREE) i++;
  if (i == CLOCKS_MAX) return 0;
  generation += VALUE_GENERATION;
  c->value = VALUE_TAG | (generation & ~VALUE_TAG_MASK) | (uintptr_t)i;
  slot = &slots[i];
  slot->clock = c;
  relaxed_set(&slot->tid, c->tid);
  relaxed_set(&slot->signo, c->signo);
  relaxed_set(&slot->kind, (int)c->spec.kind);
  ring_join(i);
  if (i >= slots_top) relaxed_set(&slots_top, i + 1);
  __atomic_store_n(&slot->value, c->value, __ATOMIC_SEQ_CST);
  return 1;
}

void lj_clocksig_kind(const Clock *c)
{
  relaxed_set(&slot_of(c->value)->kind, (int)c->spec.kind);
}

/* A tick that runs on the clock's own thread has called here, so waiting would never end.
** Nor does a tick end if its thread was cancelled.
*/
void lj_clocksig_retire(Clock *c)
{
  static const struct timespec retry = { 0, RETRY_NS };
  ClockSlot *slot = slot_of(c->value);
  int own = (c->tid == lj_osthread_self());
  __atomic_store_n(&slot->value, VALUE_RETIRED, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&slot->users, __ATOMIC_SEQ_CST) > 0) {
    if ((own || !lj_osthread_exists(c->tid)) &&
	relaxed_get(&slot->users) <= relaxed_get(&slot->delivering))
      break;
    nanosleep(&retry, NULL);
  }
}

/* The slot remains retired if a tick will never end. Any other handler that still counts
** as a user only reads, and sees that the clock is closed.
*/
void lj_clocksig_free(const Clock *c, int own)
{
  ClockSlot *slot = slot_of(c->value);
  ring_leave((int)(slot - slots));
  if (own || relaxed_get(&slot->delivering) == 0) relaxed_set(&slot->value, VALUE_FREE);
}

void lj_clocksig_forget(void)
{
  int i;
  for (i = 0; i < CLOCKS_MAX; i++) {
    relaxed_set(&slots[i].value, VALUE_FREE);
    relaxed_set(&slots[i].users, 0);
    relaxed_set(&slots[i].delivering, 0);
  }
}
