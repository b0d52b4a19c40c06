/*
** Signal handler of the clocks, and the table of open clocks that it reads.
** Context: handler; claim, kind, retire, free, forget and passto not in the handler.
**
** A signal names the slot and the generation of its clock. So the handler detects a late
** signal of a closed clock. It takes no lock: it counts itself in the slot, and a close
** waits for the count.
*/

#ifndef _LJ_CLOCKSIG_H
#define _LJ_CLOCKSIG_H

#include <signal.h>

#include "profile/clock/lj_clockops.h"

/* Handle a signal of a clock: take its sample. Pass on a signal of another sender. */
LJ_FUNC void lj_clocksig_handler(int signo, siginfo_t *info, void *uc);

/* Set the program's action, which gets the signals of other senders. */
LJ_FUNC void lj_clocksig_passto(int signo, const struct sigaction *sa);

/* Did an action with SA_RESETHAND get its one signal? Its handler is SIG_DFL since. */
LJ_FUNC int lj_clocksig_isreset(int signo);

/* Did a closed clock send this signal? */
LJ_FUNC int lj_clocksig_isstale(const siginfo_t *info);

/* Total of a clock so far, in the unit of its spec: CPU time of its thread or
** occurrences; 0 if the thread has ended. Constant within a tick.
*/
LJ_FUNC uint64_t lj_clocksig_total(const Clock *c);

/* CPU time of its thread at this tick, in nanoseconds. Within a tick only. */
LJ_FUNC uint64_t lj_clocksig_cpu_ns(const Clock *c);

/* -- Not in the handler ------------------------------------------------------ */

/* Give a clock a slot and a value. Returns 0 if all slots are taken. Under the lock of
** lj_clock, like kind and free.
*/
LJ_FUNC int lj_clocksig_claim(Clock *c);

/* Enter the clock's kind, once it is known. */
LJ_FUNC void lj_clocksig_kind(const Clock *c);

/* End the ticks of a clock: waits for one that runs; no other follows. Not under the lock,
** because that tick may take long.
*/
LJ_FUNC void lj_clocksig_retire(Clock *c);

/* Free the slot of a retired clock that sends no more signals. own: the caller is the
** clock's thread.
*/
LJ_FUNC void lj_clocksig_free(const Clock *c, int own);

/* In a child of fork(): free all slots. */
LJ_FUNC void lj_clocksig_forget(void);

#endif
