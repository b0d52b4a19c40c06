/*
** Control by time: timer of the VM thread's CPU time.
** Context: background thread, under the lock of the slots | end: any thread, the same.
*/

#define lj_ctltime_c
#define LUA_CORE

#include <time.h>

#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_ossignal.h"
#include "profile/base/lj_relaxed.h"
#include "profile/control/lj_ctlsig.h"
#include "profile/control/lj_ctltime.h"

#define WAKE_CPU_NS   1000000 /* CPU time from one wake-up to the next. */
#define REFUSED_POLLS 200     /* Polls from one wake-up to the next without a timer. */

void lj_ctltime_end(Control *c)
{
  if (c->poll.timer_tid != 0) timer_delete(c->poll.timer);
  c->poll.timer_tid = 0;
}

/* Let a timer wake the thread whenever it has run for a while. Returns 0 if the system refuses. */
static int timer_begin(Control *c, int tid)
{
  static const struct timespec ts = { 0, WAKE_CPU_NS };
  const struct itimerspec its = { ts, ts };
  if (lj_ossignal_timer(thread_clock(tid), tid, relaxed_get(&c->sig.signo),
			lj_ctlsig_value(c), &c->poll.timer) != 0)
    return 0;
  c->poll.timer_tid = tid;
  return timer_settime(c->poll.timer, 0, &its, NULL) == 0;
}

/* Wake the thread when it runs. Without a timer, a few times a minute. A thread that blocks the
** signal is asked again at the next poll.
*/
static void wake(Control *c)
{
  int tid = relaxed_get(&c->sig.tid);
  if (lj_ctlsig_isblocked(c)) {
    lj_ctltime_end(c);
    return;
  }
  if (c->poll.timer_tid == tid) return;
  lj_ctltime_end(c);
  if (c->poll.refused_polls == 0 && timer_begin(c, tid)) return;
  lj_ctltime_end(c);
  if (c->poll.refused_polls++ % REFUSED_POLLS == 0) lj_ctlsig_trywake(c);
}

void lj_ctltime_poll(Control *c)
{
  if (c->poll.start_ns && mono_ns() >= c->poll.start_ns)
    __atomic_fetch_or(&c->sig.pending, CONTROL_START, __ATOMIC_RELAXED);
  if (!relaxed_get(&c->sig.pending)) {
    lj_ctltime_end(c);
    c->poll.refused_polls = 0;
  } else {
    wake(c);
  }
}
