/*
** Signal handler of the clocks: finds the clock of a signal, and takes its sample.
** Context: handler or any thread. Async-signal-safe.
*/

#ifndef _LJ_CLOCKSIG_H
#define _LJ_CLOCKSIG_H

#include <signal.h>

#include "profile/base/lj_ossignal.h"
#include "profile/clock/lj_clockops.h"

/* Signals of clocks that this thread blocks while it forks. */
LJ_DATA __thread SignalMask lj_clocksig_forking __attribute__((tls_model("initial-exec")));

/* Handle a signal of a clock: take its sample. Forward a signal of another sender. */
LJ_FUNC void lj_clocksig_handler(int signo, siginfo_t *info, void *uc);

/* Did a closed clock send this signal? */
LJ_FUNC int lj_clocksig_isstale(const siginfo_t *info);

/* Total of a clock so far, in the unit of its spec: CPU time of its thread or
** occurrences; 0 if the thread has ended. Constant within a tick.
*/
LJ_FUNC uint64_t lj_clocksig_total(const Clock *c);

/* CPU time of its thread at this tick, in nanoseconds. Within a tick only. */
LJ_FUNC uint64_t lj_clocksig_cpu_ns(const Clock *c);

#endif
