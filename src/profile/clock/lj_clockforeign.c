/*
** Signals of other senders, forwarded to the program's own handler.
** Context: see the header.
*/

#define lj_clockforeign_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "profile/clock/lj_clockforeign.h"
#include "profile/base/lj_relaxed.h"

/* -- The program's actions --------------------------------------------------- */

/* Our handler may run while setaction sets one: handler is set last. */
static struct {
  uintptr_t handler; /* SIG_DFL, SIG_IGN, or a function. */
  int flags;         /* SA_*. */
  int is_reset;      /* A signal has been forwarded to a handler with SA_RESETHAND. */
  SignalMask mask;
} actions[OSSIGNAL_MAX + 1];

void lj_clockforeign_setaction(int signo, const struct sigaction *sa)
{
  __atomic_store_n(&actions[signo].handler, (uintptr_t)SIG_DFL, __ATOMIC_SEQ_CST);
  relaxed_set(&actions[signo].flags, sa->sa_flags);
  relaxed_set(&actions[signo].is_reset, 0);
  relaxed_set(&actions[signo].mask, lj_ossignal_maskof(&sa->sa_mask));
  __atomic_store_n(&actions[signo].handler, (uintptr_t)sa->sa_handler, __ATOMIC_RELEASE);
}

int lj_clockforeign_isreset(int signo)
{
  return relaxed_get(&actions[signo].is_reset);
}

/* The program's handler of a signal. One with SA_RESETHAND gets one signal only. */
static uintptr_t handler_take(int signo)
{
  uintptr_t handler = __atomic_load_n(&actions[signo].handler, __ATOMIC_ACQUIRE);
  if (!(relaxed_get(&actions[signo].flags) & (int)SA_RESETHAND) ||
      handler == (uintptr_t)SIG_IGN)
    return handler;
  handler = __atomic_exchange_n(&actions[signo].handler, (uintptr_t)SIG_DFL,
				__ATOMIC_SEQ_CST);
  if (handler != (uintptr_t)SIG_DFL) relaxed_set(&actions[signo].is_reset, 1);
  return handler;
}

/* -- Forwarding -------------------------------------------------------------- */

/* The signal that this thread forwards now, and the stack frame that does so. */
static __thread struct {
  const siginfo_t *info;
  uintptr_t frame;
} forwarding __attribute__((tls_model("initial-exec")));

/* Call the program's handler under the mask that the kernel would set: the one before the
** signal, the action's own, and without SA_NODEFER the signal itself. The mask of our own
** handler follows. A default action is left out, because it would end the program.
**
** A program's handler that was installed over ours may call ours in turn. The second call
** for a signal, deeper on the stack, ends the loop. The program's handler may also leave
** by a jump; a later signal then begins at the same height of the stack or above.
*/
void lj_clockforeign_forward(int signo, siginfo_t *info, void *uc, SignalMask before)
{
  uintptr_t frame = (uintptr_t)__builtin_frame_address(0), outer = forwarding.frame;
  const siginfo_t *outer_info = forwarding.info;
  SignalMask mask = before | relaxed_get(&actions[signo].mask);
  int flags = relaxed_get(&actions[signo].flags);
  uintptr_t handler;
  if (outer_info == info && frame < outer) return;
  handler = handler_take(signo);
  if (handler == (uintptr_t)SIG_DFL || handler == (uintptr_t)SIG_IGN) return;
  if (!(flags & SA_NODEFER)) mask |= ossignal_bit(signo);
  forwarding.info = info;
  forwarding.frame = frame;
  lj_ossignal_setmask(mask);
  if (flags & SA_SIGINFO) ((void (*)(int, siginfo_t *, void *))handler)(signo, info, uc);
  else ((void (*)(int))handler)(signo);
  lj_ossignal_setmask(OSSIGNAL_BLOCKED);
  forwarding.info = outer_info;
  forwarding.frame = outer;
}
