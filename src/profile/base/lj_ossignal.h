/*
** Signals of the process: handlers, and signals to one thread.
** Context: any thread; send and queue are async-signal-safe.
*/

#ifndef _LJ_OSSIGNAL_H
#define _LJ_OSSIGNAL_H

#include <signal.h>
#include <sys/types.h>

#include "lj_def.h"

#define OSSIGNAL_MAX 64 /* Signals of Linux, 1 to 64. */

typedef void (*SignalHandler)(int signo, siginfo_t *info, void *uc);

/* Send a thread a signal that carries a value, with si_code SI_QUEUE. */
LJ_FUNC void lj_ossignal_send(pid_t pid, int tid, int signo, uintptr_t value);

/* Send a thread a signal with this siginfo. */
LJ_FUNC void lj_ossignal_queue(pid_t pid, int tid, int signo, siginfo_t *info);

/* Is handler installed for a signal? 1 or 0, or -1 and errno. *now gets the action. */
LJ_FUNC int lj_ossignal_ishandler(int signo, SignalHandler handler, struct sigaction *now);

/* Install a handler that blocks these signals while it runs. Returns 0, or -1 and errno. */
LJ_FUNC int lj_ossignal_install(int signo, SignalHandler handler, const sigset_t *blocked);

#endif
