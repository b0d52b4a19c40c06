/*
** Control signal: handler, installation, wake-up of the VM thread.
** Context: handler | installation: VM thread, under the lock of the slots.
**
** The handler makes no system call that waits.
*/

#define lj_ctlsig_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "lj_obj.h"
#include "lj_frame.h"
#include "profile/base/lj_ossigmask.h"
#include "profile/base/lj_ossignal.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_relaxed.h"

#include "profile/clock/lj_clock.h"
#include "profile/control/lj_ctlsig.h"
#include "profile/control/lj_ctlstack.h"
#include "profile/vm/lj_safepoint.h"

/* Value of a signal to a VM thread: a tag and the number of the slot. */
#define VALUE_TAG      ((uintptr_t)0x5343 << 48)
#define VALUE_TAG_MASK ((uintptr_t)0xffff << 48)

LJ_DATADEF Control lj_ctlsig_slots[CONTROLS_MAX];

/* Written by a VM thread that fills or frees a slot, under the lock of the slots. */
static struct {
  int installed;
  struct sigaction oldsa; /* Action of the program. */
} signals[OSSIGNAL_MAX + 1];

/* -- Handler ----------------------------------------------------------------- */

/* May this thread, interrupted at sp, ask for the VM's safe point? Yes if it runs the VM or
** no thread does: then the VM's innermost C frame is on this stack above sp, or does not
** exist. Another thread may run the VM by now, so all loads are fault-safe.
*/
static int vm_ishere(Control *c, const global_State *g, uintptr_t sp)
{
  uintptr_t L, cf;
  lj_safeload_reset(c->sig.peek);
  if (!lj_safeload_word(c->sig.peek, (uintptr_t)&g->cur_L, &L)) return 0;
  if (!L) return 1;
  if (!lj_safeload_word(c->sig.peek, L + offsetof(lua_State, cframe), &cf)) return 0;
  cf = (uintptr_t)cframe_raw((void *)cf);
  return !cf || cf - sp < c->sig.stack_hi - sp;
}

/* Ask for the safe point on the VM thread, and take its stack if the background thread wants it. */
static void slot_ask(Control *c, const ucontext_t *uc)
{
  CtlStack *cs;
  global_State *g;
  __atomic_add_fetch(&c->sig.users, 1, __ATOMIC_SEQ_CST);
  g = __atomic_load_n(&c->sig.g, __ATOMIC_SEQ_CST);
  if (g && relaxed_get(&c->sig.pending) &&
      vm_ishere(c, g, (uintptr_t)uc->uc_mcontext.gregs[REG_RSP])) {
    relaxed_set(&c->sig.asked, 1);
    lj_safepoint_request(g, SAFEPOINT_CONTROL);
    cs = __atomic_exchange_n(&c->sig.offer, NULL, __ATOMIC_ACQUIRE);
    if (cs) lj_ctlstack_take(cs, g, uc);
  }
  __atomic_sub_fetch(&c->sig.users, 1, __ATOMIC_SEQ_CST);
}

uintptr_t lj_ctlsig_value(const Control *c)
{
  return VALUE_TAG | (uintptr_t)(c - lj_ctlsig_slots);
}

/* Make the VM thread look at its pending requests. */
static void vm_wake(const Control *c)
{
  lj_ossignal_send(getpid(), relaxed_get(&c->sig.tid), relaxed_get(&c->sig.signo),
		   lj_ctlsig_value(c));
}

static void control_signal(int signo, siginfo_t *info, void *uc)
{
  int saved_errno = errno, tid = lj_osthread_self(), i;
  uintptr_t value = (uintptr_t)info->si_value.sival_ptr;
  int is_told = (info->si_code == SI_TIMER ||
		 (info->si_code == SI_QUEUE && info->si_pid == getpid())) &&
		(value & VALUE_TAG_MASK) == VALUE_TAG;
  for (i = 0; i < CONTROLS_MAX; i++) {
    Control *c = &lj_ctlsig_slots[i];
    int dumps = relaxed_get(&c->sig.dump_signo) == signo;
    if (!__atomic_load_n(&c->sig.g, __ATOMIC_ACQUIRE) || relaxed_get(&c->sig.is_over) ||
	(relaxed_get(&c->sig.signo) != signo && !dumps))
      continue;
    if (is_told) {
      if ((value & ~VALUE_TAG_MASK) != (uintptr_t)i) continue;
    } else if (dumps) {
      __atomic_fetch_or(&c->sig.pending, CONTROL_COROUTINES, __ATOMIC_RELAXED);
    } else if (!relaxed_get(&c->sig.is_toggled)) {
      continue; /* A signal from another sender. */
    } else {
      __atomic_fetch_xor(&c->sig.pending, CONTROL_TOGGLE, __ATOMIC_RELAXED);
    }
    if (relaxed_get(&c->sig.tid) == tid) slot_ask(c, (ucontext_t *)uc);
    else if (!is_told) vm_wake(c);
  }
  errno = saved_errno;
}

/* The program may have installed a handler of its own since. */
int lj_ctlsig_isblocked(const Control *c)
{
  int signo = relaxed_get(&c->sig.signo);
  struct sigaction now;
  if (relaxed_get(&c->sig.is_small)) return 1;
  if (lj_ossignal_ishandler(signo, control_signal, &now) == 0 && !lj_ossignal_isours(&now))
    return 1;
  return lj_ossigmask_blocked(relaxed_get(&c->sig.tid), signo) != SIGBLOCKED_NOT;
}

void lj_ctlsig_trywake(const Control *c)
{
  if (!lj_ctlsig_isblocked(c)) vm_wake(c);
}

/* -- Installation ------------------------------------------------------------ */

const char *lj_ctlsig_install(int signo)
{
  struct sigaction sa;
  int is_ours;
  if (signals[signo].installed) return NULL;
  is_ours = lj_ossignal_ishandler(signo, control_signal, &sa);
  if (is_ours < 0) return strerror(errno);
  if (is_ours) return NULL;
  switch (lj_clock_sharesignal(signo, control_signal, &sa)) {
  case 1: break;
  case 0:
    return "the program has a handler for this signal; choose another signal such as "
	   "SIGRTMIN+3, or a file";
  default: return strerror(errno);
  }
  signals[signo].oldsa = sa;
  signals[signo].installed = 1;
  return NULL;
}

void lj_ctlsig_restore(int signo)
{
  struct sigaction now;
  int i, is_ours;
  if (!signals[signo].installed) return;
  for (i = 0; i < CONTROLS_MAX; i++) {
    const Control *c = &lj_ctlsig_slots[i];
    if (c->sig.g && (c->sig.signo == signo || c->sig.dump_signo == signo)) return;
  }
  is_ours = lj_ossignal_ishandler(signo, control_signal, &now);
  if (is_ours < 0) return;
  if (is_ours) sigaction(signo, &signals[signo].oldsa, NULL);
  else if (!lj_clock_unsharesignal(signo, control_signal, &signals[signo].oldsa) &&
	   (now.sa_flags & SA_SIGINFO))
    return; /* A handler of the program may call ours. */
  signals[signo].installed = 0;
}
