/*
** The actions of the clocks' signals; see the header.
*/

#define lj_clockaction_c
#define LUA_CORE

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "profile/clock/lj_clockaction.h"
#include "profile/clock/lj_clocksig.h"
#include "profile/base/lj_relaxed.h"
#include "profile/clock/lj_sigpending.h"

static struct {
  struct sigaction oldsa; /* The program's. */
  int users;              /* Clocks. */
  int closed_elsewhere;   /* One was closed by another thread than its. */
} actions[CLOCKSIG_MAX + 1];
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
  int is_free = (signo >= 1 && signo <= CLOCKSIG_MAX);
  for (i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
    if (signo == taken[i]) is_free = 0;
  if (!is_free)
    snprintf(why, CLOCK_WHY_MAX,
	     "signal %d cannot be a clock's; use SIGPROF (%d), or "
	     "another one that the program has no use for",
	     signo, SIGPROF);
  return is_free;
}

static int is_ours(const struct sigaction *sa)
{
  return (sa->sa_flags & SA_SIGINFO) && sa->sa_sigaction == lj_clocksig_handler;
}

/* Ours may be there still: then the program's is known already. */
static int handler_install(int signo)
{
  struct sigaction sa;
  if (sigaction(signo, NULL, &sa) != 0) return -1;
  actions[signo].closed_elsewhere = 0;
  if (is_ours(&sa)) return 0;
  actions[signo].oldsa = sa;
  lj_clocksig_passto(signo, &sa);
  memset(&sa, 0, sizeof(sa));
  sa.sa_sigaction = lj_clocksig_handler;
  sa.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigemptyset(&sa.sa_mask);
  sigaddset(&sa.sa_mask, SIGPROF); /* Clocks of a session may have both. */
  sigaddset(&sa.sa_mask, SIGURG);
  return sigaction(signo, &sa, NULL);
}

/* Put the program's handler back, unless it has set another one meanwhile. */
static void handler_restore(int signo)
{
  struct sigaction now;
  if (sigaction(signo, NULL, &now) == 0 && is_ours(&now))
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
  for (i = 1; i <= CLOCKSIG_MAX; i++) {
    if (actions[i].users > 0) handler_restore(i);
    relaxed_set(&actions[i].users, 0);
  }
  relaxed_set(&inuse, 0);
}

int lj_clockaction_isreplaced(int signo)
{
  struct sigaction now;
  return relaxed_get(&actions[signo].users) > 0 && sigaction(signo, NULL, &now) == 0 &&
	 !is_ours(&now);
}

uint64_t lj_clockaction_inuse(void)
{
  return relaxed_get(&inuse);
}
