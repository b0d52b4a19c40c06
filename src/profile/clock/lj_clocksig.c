/*
** The signal handler of the clocks; see the header.
*/

#define lj_clocksig_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>

#include "profile/clock/lj_clockops.h"
#include "profile/clock/lj_clocksig.h"
#include "profile/clock/lj_clockslot.h"
#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_ossignal.h"
#include "profile/base/lj_osthread.h"

/* Where the program's handler takes three arguments; no address has this bit. */
#define PASS_SIGINFO ((uintptr_t)1 << 63)

#define SIBLINGS_MAX 32 /* Clocks of a thread that a signal sees to. */
#define LOOKS_MAX    8  /* Threads that a signal of the process looks at. */

/* The program's handlers, for ours, which may run while they are set. */
static uintptr_t pass_to[OSSIGNAL_MAX + 1];

static unsigned int look_from; /* Where itimer_signal begins. */

/* -- Signals that are not ours ----------------------------------------------- */

void lj_clocksig_passto(int signo, const struct sigaction *sa)
{
  relaxed_set(&pass_to[signo], sa->sa_flags & SA_SIGINFO
				 ? (uintptr_t)sa->sa_sigaction | PASS_SIGINFO
				 : (uintptr_t)sa->sa_handler);
}

/* The signal that is passed on now on this thread, and the frame that does. */
static __thread struct {
  const siginfo_t *info;
  uintptr_t frame;
} passing __attribute__((tls_model("initial-exec")));

/* A signal that is not ours goes where it would have gone without us; only a
** default action, which would end the program, is left out. The program's handler
** may pass it on in turn, to ours, if it was set while ours was there: it has been
** there, then. A handler may also be left by a jump; what comes after that is on
** top of the same stack again, not below.
*/
static void pass_on(int signo, siginfo_t *info, void *uc)
{
  uintptr_t pass = relaxed_get(&pass_to[signo]);
  uintptr_t handler = pass & ~PASS_SIGINFO;
  uintptr_t frame = (uintptr_t)__builtin_frame_address(0), outer = passing.frame;
  const siginfo_t *before = passing.info;
  if (handler == (uintptr_t)SIG_DFL || handler == (uintptr_t)SIG_IGN ||
      (before == info && frame < outer))
    return;
  passing.info = info;
  passing.frame = frame;
  if (pass & PASS_SIGINFO) ((void (*)(int, siginfo_t *, void *))handler)(signo, info, uc);
  else ((void (*)(int))handler)(signo);
  passing.info = before;
  passing.frame = outer;
}

/* -- Ticks ------------------------------------------------------------------- */

uintptr_t lj_clocksig_value(const siginfo_t *info)
{
  uintptr_t value = (uintptr_t)info->si_value.sival_ptr;
  switch (info->si_code) {
  case SI_TIMER:
  case SI_QUEUE: /* From forward(). */ return clockslot_isvalue(value) ? value : 0;
  case POLL_IN:
  case SI_SIGIO: return lj_clock_perf_value(info->si_fd);
  default: return 0;
  }
}

/* A tick of a clock whose slot is in use, which the handler began with at begin_ns. */
static void clock_tick(Clock *c, const siginfo_t *info, ucontext_t *uc, uint64_t begin_ns)
{
  ClockSlot *slot = clockslot_of(c->value);
  relaxed_add(&slot->ticks, 1);
  c->begin_ns = begin_ns;
  lj_clock_tick(c, info, uc);
  relaxed_add(&slot->ticks, -1);
}

static const ClockSlot *slot_next(const ClockSlot *slot)
{
  return &lj_clockslots[relaxed_get(&slot->next)];
}

/* The kernel drops a perf event's signal while another one with the number is
** pending, so that two events that always come together would show one of them
** only: see to the others of the thread.
*/
static void siblings_tick(uintptr_t value, int tid, int signo, const siginfo_t *info,
			  ucontext_t *uc)
{
  const ClockSlot *first = clockslot_of(value), *slot;
  int n;
  for (slot = slot_next(first), n = 0; slot != first && n < SIBLINGS_MAX;
       slot = slot_next(slot), n++) {
    uintptr_t v = relaxed_get(&slot->value);
    Clock *c;
    if (relaxed_get(&slot->tid) != tid || relaxed_get(&slot->signo) != signo)
      return; /* It changes. */
    if (relaxed_get(&slot->kind) != CLOCK_PERF || !clockslot_isvalue(v)) continue;
    c = clockslot_use(v);
    if (!c) continue;
    /* Before it is armed, another thread may be about to open it. */
    if (__atomic_load_n(&c->armed, __ATOMIC_SEQ_CST) && lj_clock_perf_isdue(c))
      clock_tick(c, info, uc, mono_ns());
    clockslot_done(v);
  }
}

static void value_tick(uintptr_t value, int signo, const siginfo_t *info, ucontext_t *uc,
		       uint64_t begin_ns)
{
  Clock *c = clockslot_use(value);
  int tid, is_own;
  if (!c) { /* Its clock is closed. */
    if (info->si_code == POLL_IN || info->si_code == SI_SIGIO)
      lj_clock_perf_unlist(info->si_fd, value);
    return;
  }
  tid = c->tid;
  /* A late signal of another thread's clock with this descriptor? */
  is_own = (c->spec.kind != CLOCK_PERF || tid == lj_osthread_self());
  if (is_own) clock_tick(c, info, uc, begin_ns);
  clockslot_done(value);
  if (is_own && slot_next(clockslot_of(value)) != clockslot_of(value))
    siblings_tick(value, tid, signo, info, uc);
}

/* Have another thread tick. */
static void forward(uintptr_t value, const Clock *c)
{
  lj_ossignal_send(c->pid, c->tid, c->signo, value);
}

/* The timer of the process ticks for this thread, and is told to others that it
** passes over.
*/
static void itimer_signal(const siginfo_t *info, ucontext_t *uc)
{
  int tid = lj_osthread_self(), top = relaxed_get(&lj_clockslots_top), looks = 0, i;
  unsigned int from = relaxed_get(&look_from);
  for (i = 0; i < top; i++) {
    unsigned int at = (from + (unsigned int)i) % (unsigned int)top;
    const ClockSlot *slot = &lj_clockslots[at];
    uintptr_t value = relaxed_get(&slot->value);
    Clock *c;
    if (relaxed_get(&slot->kind) != CLOCK_ITIMER || !clockslot_isvalue(value) ||
	(relaxed_get(&slot->tid) != tid && looks >= LOOKS_MAX))
      continue;
    c = clockslot_use(value);
    if (!c) continue;
    if (c->tid == tid) {
      clock_tick(c, info, uc, mono_ns());
    } else if (__atomic_load_n(&c->armed, __ATOMIC_SEQ_CST)) {
      if (++looks == LOOKS_MAX) relaxed_set(&look_from, at + 1);
      if (lj_clock_itimer_isstarved(c)) forward(value, c);
    }
    clockslot_done(value);
  }
}

void lj_clocksig_handler(int signo, siginfo_t *info, void *uc)
{
  uint64_t begin_ns = mono_ns(); /* Before anything that takes time. */
  int saved_errno = errno;
  uintptr_t value = lj_clocksig_value(info);
  if (value) value_tick(value, signo, info, (ucontext_t *)uc, begin_ns);
  else if (lj_clock_itimer_issignal(signo, info->si_code))
    itimer_signal(info, (ucontext_t *)uc);
  else pass_on(signo, info, uc);
  errno = saved_errno;
}
