/*
** The actions of the clocks' signals; see the header.
*/

#define lj_clockaction_c
#define LUA_CORE

#include <signal.h>
#include <stdio.h>

#include "profile/clock/lj_clockaction.h"
#include "profile/clock/lj_clocksig.h"
#include "profile/base/lj_ossignal.h"
#include "profile/base/lj_relaxed.h"
#include "profile/clock/lj_sigpending.h"

static struct {
  struct sigaction oldsa; /* The program's. */
  int users;              /* Clocks. */
  int closed_elsewhere;   /* One was closed by another thread than its. */
} actions[OSSIGNAL_MAX + 1];
static uint64_t inuse; /* Signals with clocks. */

static uint64_t signal_bit(int signo)
{
  return U64x(00000000, 00000001) << (signo - 1);
}

/* The C library has 32 and 33 for itself; SIGCHLD's number could be taken for a
** descriptor.
*/
int lj_clockaction_isfree(int signo, char *why)
{
  static const int taken[] = { SIGKILL, SIGSTOP, SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
			       SIGTRAP, SIGABRT, SIGSYS,  SIGCHLD, 32,     33 };
  size_t i;
  int is_free = (signo >= 1 && signo <= OSSIGNAL_MAX);
  for (i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
    if (signo == taken[i]) is_free = 0;
  if (!is_free)
    snprintf(why, CLOCK_WHY_MAX,
	     "signal %d cannot be a clock's; use SIGPROF (%d), or "
	     "another one that the program has no use for",
	     signo, SIGPROF);
  return is_free;
}

/* Ours may be there still: then the program's is known already. */
static int handler_install(int signo)
{
  struct sigaction now;
  sigset_t blocked;
  int is_ours = lj_ossignal_ishandler(signo, lj_clocksig_handler, &now);
  if (is_ours < 0) return -1;
  actions[signo].closed_elsewhere = 0;
  if (is_ours) return 0;
  actions[signo].oldsa = now;
  lj_clocksig_passto(signo, &now);
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGPROF); /* Clocks of a session may have both. */
  sigaddset(&blocked, SIGURG);
  return lj_ossignal_install(signo, lj_clocksig_handler, &blocked);
}

/* Put the program's handler back, unless it has set another one meanwhile. */
static void handler_restore(int signo)
{
  struct sigaction now;
  if (lj_ossignal_ishandler(signo, lj_clocksig_handler, &now) == 1)
    sigaction(signo, &actions[signo].oldsa, NULL);
}

int lj_clockaction_use(int signo)
{
  if (actions[signo].users == 0 && handler_install(signo) != 0) return -1;
  relaxed_add(&actions[signo].users, 1);
  relaxed_set(&inuse, inuse | signal_bit(signo));
  return 0;
}

void lj_clockaction_done(const Clock *c, int own)
{
  int signo = c->signo;
  if (!own) actions[signo].closed_elsewhere = 1;
  relaxed_add(&actions[signo].users, -1);
  if (actions[signo].users > 0) return;
  relaxed_set(&inuse, inuse & ~signal_bit(signo));
  if (c->spec.kind == CLOCK_ITIMER && lj_sigpending_process(c->pid, signo)) return;
  if (!actions[signo].closed_elsewhere || !lj_sigpending_threads(signo))
    handler_restore(signo);
}

void lj_clockaction_forget(void)
{
  int i;
  for (i = 1; i <= OSSIGNAL_MAX; i++) {
    if (actions[i].users > 0) handler_restore(i);
    relaxed_set(&actions[i].users, 0);
  }
  relaxed_set(&inuse, 0);
}

int lj_clockaction_isreplaced(int signo)
{
  struct sigaction now;
  return relaxed_get(&actions[signo].users) > 0 &&
	 lj_ossignal_ishandler(signo, lj_clocksig_handler, &now) == 0;
}

uint64_t lj_clockaction_inuse(void)
{
  return relaxed_get(&inuse);
}
