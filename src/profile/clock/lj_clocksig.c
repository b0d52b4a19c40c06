/*
** Signal handler of the clocks: finds the clock of a signal, and takes its sample.
** Context: handler; see the header.
*/

#define lj_clocksig_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <unistd.h>

#include "profile/clock/lj_clockforeign.h"
#include "profile/clock/lj_clockkinds.h"
#include "profile/clock/lj_clocksig.h"
#include "profile/clock/lj_clockslot.h"
#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_ossignal.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_relaxed.h"

__thread SignalMask lj_clocksig_forking __attribute__((tls_model("initial-exec")));

/* -- Signals of clocks ------------------------------------------------------- */

#define SIBLINGS_MAX 32 /* Further clocks of the thread that a signal checks. */
#define SCAN_MAX     8  /* Other threads that a signal of the process checks. */

static unsigned int scan_from; /* Slot at which process_deliver begins. */

/* Value of the clock that sent a signal. 0: another sender, or a timer of the process. */
static LJ_AINLINE uintptr_t value_of(const siginfo_t *info)
{
  uintptr_t value = (uintptr_t)info->si_value.sival_ptr;
  if (info->si_code != SI_TIMER && info->si_code != SI_QUEUE) /* From process_deliver. */
    return lj_clockkinds_value(info);
  return lj_clockslot_istagged(value) ? value : 0;
}

int lj_clocksig_isstale(const siginfo_t *info)
{
  uintptr_t value = value_of(info);
  return value && !lj_clockslot_islive(value);
}

/* Tick and take the sample. The slot is in use; the handler began at begin_ns. */
static LJ_AINLINE void clock_deliver(Clock *c, const siginfo_t *info, ucontext_t *uc,
				     uint64_t begin_ns)
{
  lj_clockslot_enter(c->value);
  relaxed_set(&c->begin_ns, begin_ns);
  /* Not armed: a late signal of a clock that had the same number before. */
  if (__atomic_load_n(&c->armed, __ATOMIC_SEQ_CST)) {
    int overrun = c->ops->tick(c, info);
    if (overrun >= 0) c->sample(c->owner, overrun, uc);
    if (c->ops->resume && lj_clockslot_islive(c->value)) c->ops->resume(c);
  }
  lj_clockslot_leave(c->value);
}

/* Deliver to a clock of this thread whose signal the kernel may have dropped, if a period has
** passed.
*/
static void due_deliver(const ClockSlot *slot, const siginfo_t *info, ucontext_t *uc)
{
  const ClockOps *ops = lj_clockkinds[relaxed_get(&slot->kind)];
  uintptr_t value = relaxed_get(&slot->value);
  Clock *c;
  if (!ops->isdue || !lj_clockslot_istagged(value)) return;
  c = lj_clockslot_use(value);
  if (!c) return;
  /* Another thread may be opening a clock that is not armed. */
  if (__atomic_load_n(&c->armed, __ATOMIC_SEQ_CST) && ops->isdue(c))
    clock_deliver(c, info, uc, mono_ns());
  lj_clockslot_done(value);
}

/* Deliver to the other clocks of the thread. The kernel drops the signal of an event
** while one with the same number is pending. Without this, only one of two events that
** always occur together would get samples.
*/
static LJ_NOINLINE void siblings_deliver(uintptr_t value, int tid, int signo,
					 const siginfo_t *info, ucontext_t *uc)
{
  const ClockSlot *first = lj_clockslot_of(value), *slot;
  int n;
  for (slot = lj_clockslot_next(first), n = 0; slot != first && n < SIBLINGS_MAX;
       slot = lj_clockslot_next(slot), n++) {
    if (!lj_clockslot_isof(slot, tid, signo)) return; /* Another thread changes the ring. */
    due_deliver(slot, info, uc);
  }
}

/* A signal of another sender was pending, so the kernel may have dropped ours. */
static LJ_NOINLINE void foreign_deliver(int signo, const siginfo_t *info, ucontext_t *uc)
{
  int tid = lj_osthread_self(), top = relaxed_get(&lj_clockslot_top), i;
  for (i = 0; i < top; i++)
    if (lj_clockslot_isof(&lj_clockslot_table[i], tid, signo))
      due_deliver(&lj_clockslot_table[i], info, uc);
}

/* The last signal of a closed clock has arrived. */
static LJ_NOINLINE void late_forget(const siginfo_t *info, uintptr_t value)
{
  int kind;
  for (kind = 0; kind < CLOCK__MAX; kind++)
    if (lj_clockkinds[kind]->late) lj_clockkinds[kind]->late(info, value);
}

/* Deliver to the clock of a value. */
static void value_deliver(uintptr_t value, int signo, const siginfo_t *info, ucontext_t *uc,
			  uint64_t begin_ns)
{
  Clock *c = lj_clockslot_use(value);
  int tid, is_own;
  if (!c) {
    late_forget(info, value);
    return;
  }
  /* Who armed it has set its other fields before. Not armed: a late signal. */
  if (!__atomic_load_n(&c->armed, __ATOMIC_SEQ_CST)) {
    lj_clockslot_done(value);
    return;
  }
  tid = c->tid;
  /* A late signal may carry the number of another thread's clock. */
  is_own = (!c->ops->value || tid == lj_osthread_self());
  if (is_own) clock_deliver(c, info, uc, begin_ns);
  lj_clockslot_done(value);
  if (is_own && lj_clockslot_next(lj_clockslot_of(value)) != lj_clockslot_of(value))
    siblings_deliver(value, tid, signo, info, uc);
}

/* Kind of the timer of the process that sent a signal. CLOCK__MAX: another sender. */
static int process_kind(int signo, int si_code)
{
  int kind;
  for (kind = 0; kind < CLOCK__MAX; kind++) {
    const ClockOps *ops = lj_clockkinds[kind];
    if (ops->issignal && ops->isused() && ops->issignal(signo, si_code)) break;
  }
  return kind;
}

/* Deliver the timer of the process to this thread's clock. Send the signal on to threads that
** the kernel has passed over.
*/
static LJ_NOINLINE void process_deliver(int kind, const siginfo_t *info, ucontext_t *uc)
{
  int tid = lj_osthread_self(), top = relaxed_get(&lj_clockslot_top), scanned = 0, i;
  unsigned int from = relaxed_get(&scan_from);
  for (i = 0; i < top; i++) {
    unsigned int at = (from + (unsigned int)i) % (unsigned int)top;
    const ClockSlot *slot = &lj_clockslot_table[at];
    uintptr_t value = relaxed_get(&slot->value);
    Clock *c;
    if (relaxed_get(&slot->kind) != kind || !lj_clockslot_istagged(value) ||
	(relaxed_get(&slot->tid) != tid && scanned >= SCAN_MAX))
      continue;
    c = lj_clockslot_use(value);
    if (!c) continue;
    if (c->tid == tid) {
      clock_deliver(c, info, uc, mono_ns());
    } else if (__atomic_load_n(&c->armed, __ATOMIC_SEQ_CST)) {
      if (++scanned == SCAN_MAX) relaxed_set(&scan_from, at + 1);
      if (c->ops->isstarved(c)) lj_ossignal_send(getpid(), c->tid, c->signo, value);
    }
    lj_clockslot_done(value);
  }
}

static LJ_NOINLINE void nameless_handle(int signo, siginfo_t *info, void *uc,
					SignalMask before)
{
  int kind = process_kind(signo, info->si_code);
  if (kind < CLOCK__MAX) {
    process_deliver(kind, info, (ucontext_t *)uc);
  } else {
    foreign_deliver(signo, info, (ucontext_t *)uc);
    lj_clockforeign_forward(signo, info, uc, before);
  }
}

/* before: the mask in force before our own. */
static LJ_AINLINE void signal_handle(int signo, siginfo_t *info, void *uc,
				     uint64_t begin_ns, SignalMask before)
{
  uintptr_t value = value_of(info);
  if (value) value_deliver(value, signo, info, (ucontext_t *)uc, begin_ns);
  else nameless_handle(signo, info, uc, before);
}

/* A handler of the program has been installed over ours and calls it. */
static LJ_NOINLINE void signal_handle_called(int signo, siginfo_t *info, void *uc,
					     uint64_t begin_ns)
{
  SignalMask before = lj_ossignal_setmask(OSSIGNAL_BLOCKED);
  signal_handle(signo, info, uc, begin_ns, before);
  lj_ossignal_setmask(before);
}

/* Has the signal stack room for a sample? Returns the bytes that are left, or 0 if they suffice.
** The program may have set the stack after the start.
*/
#define OWN_STACK 512 /* Taken of OSSIGNAL_STACK until here. */

static LJ_AINLINE size_t stack_left(const ucontext_t *uc)
{
  size_t left = (uintptr_t)__builtin_frame_address(0) - (uintptr_t)uc->uc_stack.ss_sp;
  if (left >= uc->uc_stack.ss_size || left >= OSSIGNAL_STACK - OWN_STACK) return 0;
  return left ? left : 1;
}

/* Bytes that the count of a lost tick needs of it: 856 at most, measured with each clock. */
#ifdef __OPTIMIZE__
#define LOSS_STACK 1024
#else
#define LOSS_STACK 2048
#endif

/* Note what a signal stack had left, in the clocks of this thread. is_uncounted: this tick does not
** count. Calls nothing that needs more stack than this handler itself.
*/
static LJ_AINLINE void cramped_note(int signo, size_t left, int is_uncounted)
{
  int tid = lj_osthread_self(), top = relaxed_get(&lj_clockslot_top), i;
  for (i = 0; i < top; i++) {
    const ClockSlot *slot = &lj_clockslot_table[i];
    uintptr_t value = relaxed_get(&slot->value);
    Clock *c = lj_clockslot_isof(slot, tid, signo) ? lj_clockslot_use(value) : NULL;
    if (!c) continue;
    relaxed_set(&c->stack_left, left);
    if (is_uncounted) __atomic_add_fetch(&c->uncounted, 1, __ATOMIC_RELAXED);
    lj_clockslot_done(value);
  }
}

/* Deliver a tick whose stack has no room for a sample, so that its weight counts as lost. With still
** less room the next tick counts it, or the end.
*/
static LJ_NOINLINE void cramped_handle(int signo, const siginfo_t *info, uint64_t begin_ns,
				       size_t left)
{
  uintptr_t value = value_of(info);
  SignalMask before;
  int kind;
  cramped_note(signo, left, left < LOSS_STACK);
  if (left < LOSS_STACK) return;
  before = lj_ossignal_setmask(OSSIGNAL_BLOCKED);
  if (value) value_deliver(value, signo, info, NULL, begin_ns);
  else if ((kind = process_kind(signo, info->si_code)) < CLOCK__MAX)
    process_deliver(kind, info, NULL);
  lj_ossignal_setmask(before);
}

void lj_clocksig_handler(int signo, siginfo_t *info, void *uc)
{
  uint64_t begin_ns = mono_ns(); /* Before anything that takes time. */
  int saved_errno = errno;
  size_t left = stack_left((ucontext_t *)uc);
  if (LJ_UNLIKELY(left != 0)) cramped_handle(signo, info, begin_ns, left);
  else if (LJ_LIKELY(lj_ossignal_isentry(__builtin_return_address(0))))
    signal_handle(signo, info, uc, begin_ns,
		  lj_ossignal_maskof(&((ucontext_t *)uc)->uc_sigmask));
  else signal_handle_called(signo, info, uc, begin_ns);
  errno = saved_errno;
}

/* -- Totals ------------------------------------------------------------------ */

uint64_t lj_clocksig_total(const Clock *c)
{
  int in_tick = c->ops->has_last && lj_clockslot_islive(c->value) &&
		lj_clockslot_isentered(c->value);
  uint64_t total = in_tick ? relaxed_get(&c->last) : c->ops->count(c);
  return c->spec.unit == SPF_UNIT_US ? total / 1000 : total;
}

uint64_t lj_clocksig_cpu_ns(const Clock *c)
{
  int is_known = c->ops->has_last && c->spec.unit == SPF_UNIT_US;
  return is_known ? c->last : clock_ns(CLOCK_THREAD_CPUTIME_ID);
}
