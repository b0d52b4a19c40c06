/*
** Looks at one thread: what it has waited for since the last look, and where it waits now.
** Context: under the lock, on any thread, outside of the handler.
*/

#define lj_waitlook_c
#define LUA_CORE

#include <errno.h>

#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_relaxed.h"
#include "profile/wait/lj_waitlook.h"

#define PART_NS     1000000000 /* A long wait goes into the stream in parts. */
#define LOOK_DUE_NS 50000      /* A look is not earlier than that. */
#define LOOK_MIN_NS 500000     /* The same, if no wait is due. */
#define LOOK_MAX_NS 50000000
#define LOOKS_BUSY  16        /* Looks without a switch; then the next ones come later. */
#define SCHED_NS    500000000 /* Between two readings of WaitSched, */
#define LONG_NS     10000000  /* or if a long wait ends. */
#define EXACT_PART  64        /* A long wait is as exact as this part of it. */
#define LATE_PART   20        /* A look may come later by this part of a usual wait. */
#define USUAL_MEAN  256       /* Waits by which WaitLook.usual_ns follows longer ones. */
#define LONG_MEAN   16        /* Waits that WaitLook.long_256 is the mean of. */
#define LONG_MOST   200     /* From here on, a wait is likely to be above the threshold. */
#define BALANCE_NS  1000000 /* A look is not more exact: the thread runs on meanwhile. */
#define READS_MAX   8 /* Of a ring in one look: a thread may switch faster than we read. */
#define SHARES_MAX  8 /* Attempts to divide time: the rest goes to the next waits. */
#define MISSING_MIN 2 /* The kernel counts a run before it writes the record. */
#define CLOCKS_NS   20000 /* Real time and CPU time read within that belong together. */
#define CLOCKS_MAX  3     /* Attempts: the machine may be busy. */
#define VAGUE_PART  100 /* An end that is less exact than this part of the life is vague. */

/* -- Clocks ------------------------------------------------------------------ */

/* Read CPU time and real time together. Returns 0 if the thread has ended. */
static uint64_t clocks_read(int tid, uint64_t *now_ns)
{
  uint64_t cpu_ns = 0, from_ns;
  int tries;
  for (tries = 0; tries < CLOCKS_MAX; tries++) {
    from_ns = mono_ns();
    cpu_ns = thread_ns(tid);
    *now_ns = mono_ns();
    if (*now_ns - from_ns < CLOCKS_NS) break;
  }
  return cpu_ns;
}

/* -- Into the stream --------------------------------------------------------- */

static void append(Event *ev, SampleHead *head, uint64_t ns, uint64_t n)
{
  head->weight = ns;
  head->field[0] = n;
  __atomic_add_fetch(&ev->counters[SPF_EVENT_TOTAL], ns, __ATOMIC_RELAXED);
  ev->append(ev, head);
}

static void append_sum(Event *ev, WaitSum *sum, int work, uint64_t now_ns)
{
  SampleHead head = { .time_ns = now_ns, .work = work };
  if (sum->ns == 0) return; /* Its waits go with the next time. */
  append(ev, &head, sum->ns, sum->n);
  sum->ns = sum->n = 0;
}

/* Time without a processor so far, in the stream or not. */
static uint64_t off_sofar(const WaitLook *wl, uint64_t now_ns)
{
  if (!wl->is_off) return wl->told_off_ns + wl->end_ns;
  return wl->told_off_ns + (now_ns > wl->told_ns ? now_ns - wl->told_ns : 0);
}

/* Take up to so much time from a sum. Returns the rest. */
static uint64_t sum_take(WaitLook *wl, WaitSum *sum, uint64_t ns)
{
  uint64_t part = sum->ns < ns ? sum->ns : ns;
  sum->ns -= part;
  wl->balanced_ns -= (int64_t)part;
  return ns - part;
}

/* CPU time and the time without a processor add up to real time. By the records, the sum can be
** longer: the kernel counts the microseconds of a switch in the thread's CPU time, too. It can be
** shorter: the hypervisor or an interrupt had the processor, and the thread could run. If the kernel
** may have dropped records, that time is lost, except what the kernel told as ready. All three times
** are of one moment: what a late clock takes from the short waits here would come back as ready time.
** read_ns: the ring was read then. What is in it since then must be short; else the next time.
*/
static void balance(Event *ev, uint64_t read_ns)
{
  WaitLook *wl = waitlook_of(ev);
  uint64_t now_ns, cpu_ns = clocks_read(ev->tid, &now_ns);
  int64_t more_ns;
  if (cpu_ns == 0) return; /* It has ended. */
  if (!wl->ring.map) {
    now_ns = wl->looked_ns;
    cpu_ns = wl->cpu_ns;
  } else if (now_ns - read_ns > BALANCE_NS / 2 && lj_waitring_hasmore(&wl->ring)) {
    return;
  }
  more_ns = (int64_t)(off_sofar(wl, now_ns) + cpu_ns - wl->since_cpu_ns) + wl->balanced_ns -
	    (int64_t)(now_ns - wl->since_ns);
  if (more_ns > BALANCE_NS) {
    more_ns = (int64_t)sum_take(wl, &wl->too_short, (uint64_t)more_ns);
    sum_take(wl, &wl->ready, sum_take(wl, &wl->lost, (uint64_t)more_ns));
  } else if (more_ns < -BALANCE_NS) {
    uint64_t ns = (uint64_t)-more_ns,
	     ready_ns = wl->owed_ns > 0 ? (uint64_t)wl->owed_ns : 0;
    if (!wl->has_dropped || ready_ns > ns) ready_ns = ns;
    if (wl->has_dropped) wl->owed_ns -= (int64_t)ready_ns;
    wl->ready.ns += ready_ns;
    wl->lost.ns += ns - ready_ns;
    wl->balanced_ns += (int64_t)ns;
  }
  wl->has_dropped = 0;
}

static void append_sums(Event *ev, uint64_t now_ns)
{
  WaitLook *wl = waitlook_of(ev);
  balance(ev, now_ns);
  append_sum(ev, &wl->too_short, SPF_WORK_SHORT, now_ns);
  append_sum(ev, &wl->ready, SPF_WORK_READY, now_ns);
  append_sum(ev, &wl->lost, SPF_WORK_LOST, now_ns);
  wl->summed_ns = now_ns;
}

static void sum_add(WaitLook *wl, WaitSum *sum, uint64_t ns, uint64_t n)
{
  sum->ns += ns;
  sum->n += n;
  wl->told_off_ns += ns;
}

/* Append the current wait up to a time, less the time after its end in which it was ready. A
** part of a wait counts no wait, except the first.
*/
static void append_wait(Event *ev, uint64_t to_ns, uint64_t ready_ns)
{
  WaitLook *wl = waitlook_of(ev);
  SampleHead head = { .time_ns = to_ns, .work = SPF_WORK_UNSEEN };
  uint64_t ns = to_ns - wl->told_ns, n = (wl->told_ns == wl->begun_ns);
  ns -= ready_ns < ns ? ready_ns : ns;
  wl->told_ns = to_ns;
  wl->told_off_ns += ns;
  if (wl->stack == STACK_KEPT) {
    head.is_kept = 1;
    head.work = wl->place == WAITPLACE_FAULT ? SPF_WORK_FAULT : SPF_WORK_WAIT;
    head.work_arg = wl->place == WAITPLACE_FAULT ? 0 : wl->nr + 1;
  } else {
    head.work_arg = wl->stack == STACK_HIDDEN  ? SPF_UNSEEN_HIDDEN
		    : wl->stack == STACK_MOVED ? SPF_UNSEEN_MOVED
					       : SPF_UNSEEN_LATE;
  }
  append(ev, &head, ns, n);
}

/* -- Waits ------------------------------------------------------------------- */

static void wait_begin(WaitLook *wl, uint64_t ns, int preempted)
{
  wl->is_off = 1;
  wl->is_preempted = preempted;
  wl->begun_ns = wl->told_ns = ns;
  wl->stack = STACK_NONE;
}

/* Learn how many waits are long, and how long these last: at once if they get shorter, slowly if they
** get longer. After one that no look has seen, looks come twice as soon.
*/
static void learn(Event *ev, uint64_t ns)
{
  WaitLook *wl = waitlook_of(ev);
  uint64_t threshold = waitevent_threshold(&ev->spec);
  wl->long_256 = (wl->long_256 * (LONG_MEAN - 1) + (ns < threshold ? 0 : 256)) / LONG_MEAN;
  if (ns < threshold) return;
  if (wl->stack == STACK_NONE) ns = threshold + (ns - threshold) / 2;
  if (ns < wl->usual_ns) wl->usual_ns = ns;
  else wl->usual_ns += (ns - wl->usual_ns) / USUAL_MEAN;
}

/* The thread has a processor again. ready_ns: so long it was ready before. */
static void wait_end(Event *ev, uint64_t ns, uint64_t ready_ns)
{
  WaitLook *wl = waitlook_of(ev);
  uint64_t rest = ns > wl->told_ns ? ns - wl->told_ns : 0;
  wl->is_off = 0;
  if (rest == 0) wl->lost.n++; /* Its time is settled. */
  if (rest == 0) return;
  if (ready_ns >= rest) ready_ns = rest - 1; /* A wait without time would not count. */
  if (wl->is_preempted) {
    sum_add(wl, &wl->ready, rest, 1);
  } else {
    learn(ev, ns - wl->begun_ns);
    if (ns - wl->begun_ns < waitevent_threshold(&ev->spec))
      sum_add(wl, &wl->too_short, rest - ready_ns, 1);
    else append_wait(ev, ns, ready_ns);
    if (ready_ns) sum_add(wl, &wl->ready, ready_ns, 0); /* Of the same wait. */
    wl->owed_ns -= (int64_t)ready_ns;
  }
}

/* CPU time of the thread, and real time. The kernel's clock of a thread ends with it. */
static uint64_t cpu_sofar(const Event *ev, uint64_t *now_ns)
{
  const WaitLook *wl = waitlook_of(ev);
  uint64_t ns = clocks_read(ev->tid, now_ns);
  if (ns || !wl->ring.map) return ns;
  return wl->since_cpu_ns + lj_waitring_ran(&wl->ring) + wl->last_ns;
}

/* The next look begins here. */
static void mark_look(Event *ev, uint64_t now_ns, uint64_t cpu_ns)
{
  WaitLook *wl = waitlook_of(ev);
  wl->looked_ns = now_ns;
  wl->cpu_ns = cpu_ns;
  wl->off_ns = off_sofar(wl, now_ns);
}

/* Does a thread sleep at this place? The kernel may hide the place, but not the state. */
static int is_asleep(WaitPlaceKind place, int tid)
{
  char state;
  if (place != WAITPLACE_HIDDEN) return place != WAITPLACE_RUNNING;
  state = lj_osthread_state(tid);
  return state == 'S' || state == 'D';
}

/* Does the thread sleep now? */
static int sleeps_now(Event *ev)
{
  WaitLook *wl = waitlook_of(ev);
  WalkRegs regs;
  uint32_t nr;
  return is_asleep(lj_waitproc_place(&wl->file, ev->tid, &nr, &regs), ev->tid);
}

/* -- Looks by records -------------------------------------------------------- */

/* Time that the thread was ready since the last call, and its runs. Returns 0 if the kernel does not
** tell: the thread has ended.
*/
static int ready_since(Event *ev, uint64_t *ready_ns, uint64_t *runs)
{
  WaitLook *wl = waitlook_of(ev);
  WaitSched now;
  *ready_ns = *runs = 0;
  if (!wl->has_sched || !lj_waitproc_sched(ev->tid, &now)) return 0;
  *ready_ns = now.ready_ns - wl->sched.ready_ns;
  *runs = now.runs - wl->sched.runs;
  wl->sched = now;
  return 1;
}

/* Records that did not come: the kernel counts each run of the thread. At least so many, as those that
** are in the ring may all be of runs.
*/
static uint64_t runs_missing(const WaitLook *wl)
{
  uint64_t runs = wl->sched.runs - wl->first_runs;
  uint64_t seen = wl->ins + wl->missed + lj_waitring_pending(&wl->ring);
  return runs > seen ? runs - seen : 0;
}

static WakeReady all_known; /* Of all threads. Under the lock. */

/* Count the ready time after the wake-ups since the last reading. */
static void count_known(WaitLook *wl, uint64_t ready_ns)
{
  uint64_t n = (uint64_t)wl->wakes + runs_missing(wl);
  int64_t ns = (int64_t)ready_ns - wl->preempted_ns;
  if (ns < 0) ns = 0;
  wl->known.ns += (uint64_t)ns;
  wl->known.n += n;
  all_known.ns += (uint64_t)ns;
  all_known.n += n;
}

/* Read the kernel's sum of the time that the thread was ready. */
static void read_owed(Event *ev, uint64_t now_ns)
{
  WaitLook *wl = waitlook_of(ev);
  uint64_t ready_ns, runs;
  if (ready_since(ev, &ready_ns, &runs)) count_known(wl, ready_ns);
  else wl->unread += (uint64_t)wl->wakes;
  wl->owed_ns += (int64_t)ready_ns;
  wl->wakes = wl->preempted_ns = 0;
  wl->sched_ns = now_ns;
}

/* Take up to so much time from the short waits: the thread was ready. */
static void take_from_short(WaitLook *wl, int64_t ns)
{
  if (ns > (int64_t)wl->too_short.ns) ns = (int64_t)wl->too_short.ns;
  if (ns <= 0) return;
  wl->too_short.ns -= (uint64_t)ns;
  wl->ready.ns += (uint64_t)ns;
  wl->owed_ns -= ns;
}

/* Waits had more ready time than the kernel told. */
static void give_back(Event *ev)
{
  WaitLook *wl = waitlook_of(ev);
  uint64_t ns = wl->owed_ns < 0 ? (uint64_t)-wl->owed_ns : 0;
  if (!wl->has_sched || thread_ns(ev->tid) == 0) return; /* It may have told less. */
  if (ns > wl->ready.ns) ns = wl->ready.ns;
  wl->ready.ns -= ns;
  wl->too_short.ns += ns;
  wl->owed_ns += (int64_t)ns;
}

/* May the kernel's sum be read now? For all threads together, long waits bring a reading at most each
** LONG_NS. The more readings are ahead of that, the longer each thread does without one.
*/
static int sched_isdue(const WaitLook *wl, int is_long, uint64_t now_ns)
{
  static uint64_t due_ns; /* Under the lock. */
  uint64_t since_ns = now_ns - wl->sched_ns;
  if (wl->wakes == 0) return 0;
  if (since_ns >= SCHED_NS) return 1;
  if (due_ns < now_ns) due_ns = now_ns;
  if (!is_long || since_ns < due_ns - now_ns) return 0;
  due_ns += LONG_NS;
  return 1;
}

/* Time that the thread was ready after its wake-ups, as far as it is known. The kernel has only the sum
** of these and of preemptions, and opening its file takes up to 60 us. So it is read after a long wait, else
** at times. What belongs to waits before goes to the short ones, which are not in the stream yet, and the rest
** to the next ones. wakes, preempted_ns: of the records that are about to be taken. is_long: a wait among
** them is.
*/
static uint64_t ready_of_all(Event *ev, int64_t wakes, int64_t preempted_ns, int is_long,
			     uint64_t now_ns)
{
  WaitLook *wl = waitlook_of(ev);
  wl->wakes += wakes;
  wl->preempted_ns += preempted_ns;
  wl->owed_ns -= preempted_ns;
  if (sched_isdue(wl, is_long, now_ns)) {
    int64_t all = wl->wakes, owed_ns = wl->owed_ns + wl->preempted_ns, part_ns, missing;
    read_owed(ev, now_ns);
    missing = (int64_t)runs_missing(wl); /* They have their part, too. */
    part_ns = (wl->owed_ns - owed_ns) * wakes / (all + missing);
    wl->has_gap |= missing >= MISSING_MIN;
    if (missing >= MISSING_MIN) return part_ns > 0 ? (uint64_t)part_ns : 0;
    take_from_short(wl, wl->owed_ns - part_ns);
  }
  return wl->owed_ns > 0 ? (uint64_t)wl->owed_ns : 0;
}

/* Divide time among waits. Each takes the same part, but no more than its own length. Returns that part. */
static uint64_t share_of_each(const uint64_t *len, int n, uint64_t ns)
{
  uint64_t each = 0, taken = 0;
  int i, tries, nlonger = n;
  for (tries = 0; tries < SHARES_MAX && nlonger && taken < ns; tries++) {
    each += (ns - taken) / (uint64_t)nlonger;
    for (taken = 0, nlonger = 0, i = 0; i < n; i++) {
      taken += len[i] < each ? len[i] : each;
      nlonger += len[i] > each;
    }
    if (nlonger && ns - taken < (uint64_t)nlonger) break;
  }
  return each;
}

/* Time without a processor since the last look that no record tells of: real time less CPU time. The
** kernel tells how long the thread was ready meanwhile. n: records that are missing.
*/
static void settle(Event *ev, uint64_t n)
{
  WaitLook *wl = waitlook_of(ev);
  uint64_t now_ns, cpu_ns = cpu_sofar(ev, &now_ns), ready_ns;
  uint64_t ran_ns = cpu_ns > wl->cpu_ns ? cpu_ns - wl->cpu_ns : 0;
  uint64_t off_ns = wl->off_ns + (now_ns - wl->looked_ns);
  uint64_t known_ns = off_sofar(wl, now_ns) + ran_ns;
  wl->settled_ns = now_ns;
  wl->lost.n += n;
  if (off_ns <= known_ns) return;
  off_ns -= known_ns;
  ready_ns = wl->owed_ns > 0 ? (uint64_t)wl->owed_ns : 0;
  if (ready_ns > off_ns) ready_ns = off_ns;
  wl->owed_ns -= (int64_t)ready_ns;
  sum_add(wl, &wl->ready, ready_ns, 0);
  sum_add(wl, &wl->lost, off_ns - ready_ns, 0);
}

/* Note how vague the end of a thread is: after a look that saw it alive, before one that found it gone. */
static void note_end(WaitLook *wl, uint64_t alive_ns, uint64_t gone_ns)
{
  if (gone_ns - alive_ns > (gone_ns - wl->since_ns) / VAGUE_PART)
    relaxed_set(&wl->vague_ns, gone_ns - alive_ns);
}

/* Did the kernel drop the record of a sleep that goes on? It counts runs only, so none is missing. */
static int sleeps_unseen(Event *ev)
{
  WaitLook *wl = waitlook_of(ev);
  return !wl->is_off && sleeps_now(ev) && !lj_waitring_hasmore(&wl->ring);
}

/* Records may be missing. is_told: the kernel says so. Else the ring was full: then the kernel says so
** at the next record, which a thread that sleeps or ends does not write.
*/
static void find_loss(Event *ev, int is_told, uint64_t now_ns)
{
  WaitLook *wl = waitlook_of(ev);
  uint64_t missing;
  read_owed(ev, now_ns);
  missing = runs_missing(wl);
  if (!is_told && wl->has_sched && missing == 0 && thread_ns(ev->tid) != 0 &&
      !sleeps_unseen(ev))
    return;
  wl->missed += missing;
  wl->in_ns = wl->last_ns = 0;
  if (!is_told) {
    wl->is_off = 0;
    wl->is_settled = 1;
  }
  settle(ev, missing);
  if (thread_ns(ev->tid) == 0) note_end(wl, wl->looked_ns, wl->settled_ns);
  if (!wl->is_off && sleeps_now(ev)) wait_begin(wl, wl->settled_ns, 0);
}

/* Note how long the thread has run, for its end. */
static void note_run(WaitLook *wl, const WaitSwitch *sw)
{
  if (sw->is_in) wl->in_ns = sw->ns;
  wl->last_ns = !sw->is_in && wl->in_ns ? sw->ns - wl->in_ns : 0;
}

/* The time of a record, or that up to which all is settled. */
static uint64_t switch_ns(const WaitLook *wl, const WaitSwitch *sw)
{
  return sw->ns > wl->settled_ns ? sw->ns : wl->settled_ns;
}

static void take_switches(Event *ev, const WaitSwitch *list, int n, uint64_t now_ns)
{
  WaitLook *wl = waitlook_of(ev);
  static uint64_t len[WAITRING_RECORDS]; /* Of waits. */
  uint64_t from_ns = wl->is_preempted ? wl->begun_ns : wl->told_ns;
  uint64_t each_ns, threshold = waitevent_threshold(&ev->spec);
  int64_t preempted_ns = 0;
  int is_off = wl->is_off, preempted = wl->is_preempted, is_long, wakes = 0, i;
  is_long = is_off && n && list[0].is_in && switch_ns(wl, list) >= wl->begun_ns + threshold;
  for (i = 0; i < n; i++) {
    uint64_t ns = switch_ns(wl, &list[i]);
    if (list[i].is_in && is_off && preempted) {
      preempted_ns += (int64_t)(ns - from_ns);
    } else if (list[i].is_in && is_off && ns > from_ns) {
      is_long |= (ns - from_ns >= threshold);
      len[wakes++] = ns - from_ns;
    }
    wl->ins += list[i].is_in;
    is_off = !list[i].is_in;
    preempted = list[i].preempt;
    from_ns = ns;
    note_run(wl, &list[i]);
  }
  each_ns = share_of_each(len, wakes,
			  ready_of_all(ev, wakes, preempted_ns, is_long, now_ns));
  for (i = 0; i < n; i++) {
    uint64_t ns = switch_ns(wl, &list[i]);
    if (!list[i].is_in) wait_begin(wl, ns, list[i].preempt);
    else if (wl->is_off) wait_end(ev, ns, each_ns);
    else wl->lost.n++; /* The record of its begin is. */
  }
}

static void look_records(Event *ev, uint64_t now_ns)
{
  WaitLook *wl = waitlook_of(ev);
  uint64_t cpu_ns;
  static WaitSwitch list[WAITRING_RECORDS];
  int n, lost, is_told = 0, is_full = 0, is_new = 0, reads = 0;
  wl->has_gap = 0;
  do {
    n = lj_waitring_read(&wl->ring, list, &lost);
    is_full |= wl->ring.was_full;
    is_new |= n || lost;
    if (n) take_switches(ev, list, n, now_ns);
    if (lost && !wl->is_settled) { /* A wait may have ended meanwhile. */
      is_told = 1;
      wl->is_off = 0;
    }
    if (lost) wl->is_settled = 0;
  } while ((n == WAITRING_RECORDS || lost) && ++reads < READS_MAX);
  if (is_told || is_full || wl->has_gap) {
    wl->has_dropped = 1;
    find_loss(ev, is_told, now_ns);
  }
  if (!is_new) return;
  wl->idle = 0;
  cpu_ns = cpu_sofar(ev, &now_ns);
  if (!lj_waitring_hasmore(&wl->ring)) mark_look(ev, now_ns, cpu_ns);
}

/* -- Looks by figures -------------------------------------------------------- */

/* n waits that no look has seen. They are of the same length. 0: a part of one. */
static void add_unseen(Event *ev, uint64_t ns, uint64_t n, uint64_t now_ns)
{
  WaitLook *wl = waitlook_of(ev);
  SampleHead head = { .time_ns = now_ns,
		      .work = SPF_WORK_UNSEEN,
		      .work_arg = SPF_UNSEEN_LATE };
  if (ns < (n ? n : 1) * waitevent_threshold(&ev->spec)) {
    sum_add(wl, &wl->too_short, ns, n);
  } else {
    wl->told_off_ns += ns;
    append(ev, &head, ns, n);
  }
}

/* How many waits have ended since the last look that found a switch. The kernel's figures are of
** slightly different times, so a wait may count one look later.
*/
static uint64_t waits_ended(Event *ev, int at_least)
{
  WaitLook *wl = waitlook_of(ev);
  WaitLeft now = { wl->left.waits, 0 };
  int64_t n;
  lj_waitproc_left(ev->tid, &now);
  wl->ended_waits += (int64_t)(now.waits - wl->left.waits) + wl->left.is_asleep -
		     now.is_asleep;
  wl->left = now;
  n = wl->ended_waits > at_least ? wl->ended_waits : at_least;
  wl->ended_waits -= n;
  return (uint64_t)n;
}

/* The thread has run since the last look, and had no processor for off_ns. The kernel tells how often it
** has begun to wait. It tells how long the thread was ready when it has a processor again. The waits
** share the rest evenly, each with some time, so that it counts. Without a wait, an interrupt or the hypervisor
** had the rest.
*/
static void take_runs(Event *ev, uint64_t off_ns, uint64_t runs, uint64_t cpu_ns,
		      uint64_t now_ns)
{
  WaitLook *wl = waitlook_of(ev);
  int was_waiting = wl->is_off && !wl->is_preempted, is_off;
  uint64_t open_ns = wl->is_off ? wl->looked_ns - wl->told_ns : wl->end_ns;
  uint64_t waits = waits_ended(ev, was_waiting), unseen = waits - (uint64_t)was_waiting;
  uint64_t ready_ns = wl->owed_ns > 0 ? (uint64_t)wl->owed_ns : 0, late_ns, parts, share;
  is_off = wl->left.is_asleep || thread_ns(ev->tid) == cpu_ns;
  if (ready_ns > open_ns + off_ns) ready_ns = open_ns + off_ns;
  if (!was_waiting) off_ns += open_ns;
  parts = waits + (uint64_t)is_off;
  late_ns = off_ns > parts ? off_ns - parts : 0;
  if (late_ns > ready_ns) late_ns = ready_ns;
  off_ns -= late_ns;
  wl->owed_ns -= (int64_t)late_ns;
  share = parts ? off_ns / parts : 0;
  if (was_waiting) wait_end(ev, wl->looked_ns + share, ready_ns - late_ns);
  wl->is_off = 0;
  wl->end_ns = 0;
  sum_add(wl, &wl->ready, late_ns + (parts ? 0 : off_ns), runs > waits ? runs - waits : 0);
  if (unseen) add_unseen(ev, off_ns - share * (parts - unseen), unseen, now_ns);
  if (is_off) wait_begin(wl, now_ns - share, !wl->left.is_asleep);
  wl->woken_ns = waits ? now_ns : 0;
}

/* Note how far apart looks were, as a wait that ends at any time meets them: many threads share what looks
** may cost.
*/
static void note_apart(WaitLook *wl, uint64_t ns)
{
  wl->apart_sum += (double)ns;
  wl->apart_squares += (double)ns * (double)ns;
  if (wl->apart_sum > 0)
    relaxed_set(&wl->apart_ns, (uint64_t)(wl->apart_squares / wl->apart_sum));
}

/* The thread has left its processor since the last look that found a switch. If it does not sleep, it may have
** slept all the same, and been woken up.
*/
static void begin_byfigures(Event *ev, uint64_t now_ns)
{
  WaitLook *wl = waitlook_of(ev);
  WaitLeft now = { wl->left.waits, 0 };
  int sleeps = sleeps_now(ev);
  if (!sleeps) lj_waitproc_left(ev->tid, &now);
  wait_begin(wl, wl->looked_ns - wl->end_ns, !sleeps);
  wl->woken_ns = now.waits != wl->left.waits ? now_ns : 0;
}

/* Without records: what the thread's CPU time leaves of the real time since the last look. Unless
** it has got a processor, it had one all the time, or has left it at the end. Returns the time of the
** look.
*/
static uint64_t look_figures(Event *ev)
{
  WaitLook *wl = waitlook_of(ev);
  uint64_t now_ns, cpu_ns = clocks_read(ev->tid, &now_ns), real_ns, off_ns, ready_ns, runs;
  if (cpu_ns == 0) {
    if (wl->gone_ns == 0) wl->gone_ns = now_ns;
    return now_ns;
  }
  real_ns = now_ns - wl->looked_ns;
  note_apart(wl, real_ns);
  off_ns = cpu_ns - wl->cpu_ns < real_ns ? real_ns - (cpu_ns - wl->cpu_ns) : 0;
  if (cpu_ns == wl->cpu_ns) {
    if (!wl->is_off) begin_byfigures(ev, now_ns);
    wl->end_ns = 0;
  } else {
    ready_since(ev, &ready_ns, &runs);
    wl->owed_ns += (int64_t)ready_ns;
    if (runs || wl->is_off) {
      wl->idle = 0;
      take_runs(ev, off_ns, runs, cpu_ns, now_ns);
    } else { /* It had not left its processor at the last look. */
      sum_add(wl, &wl->ready, wl->end_ns, 0);
      wl->end_ns = off_ns;
    }
  }
  mark_look(ev, now_ns, cpu_ns);
  return now_ns;
}

/* -- Stacks ------------------------------------------------------------------ */

/* May the thread have run since the look? */
static int has_moved(const Event *ev)
{
  const WaitLook *wl = waitlook_of(ev);
  if (wl->ring.map) return lj_waitring_hasmore(&wl->ring);
  return thread_ns(ev->tid) != wl->cpu_ns;
}

/* Is the thread's current wait likely to reach the threshold? Only records tell. */
static int is_likely(const Event *ev)
{
  const WaitLook *wl = waitlook_of(ev);
  return wl->ring.map && wl->long_256 >= LONG_MOST;
}

/* Is it time to read the stack of the current wait? A stack that is read early saves another look.
*/
static int is_due(const Event *ev, uint64_t now_ns)
{
  const WaitLook *wl = waitlook_of(ev);
  return wl->stack == STACK_NONE &&
	 (is_likely(ev) || now_ns - wl->begun_ns >= waitevent_threshold(&ev->spec));
}

/* is_early: before the threshold. Then the thread may be about to give its processor away, and a later
** look finds it asleep.
*/
static void read_stack(Event *ev, int is_early)
{
  WaitLook *wl = waitlook_of(ev);
  WalkRegs regs;
  int err;
  wl->place = lj_waitproc_place(&wl->file, ev->tid, &wl->nr, &regs);
  switch (wl->place) {
  case WAITPLACE_RUNNING:
    if (!is_early) wl->stack = STACK_LATE;
    return;
  case WAITPLACE_HIDDEN:
    err = errno;
    if (lj_osthread_exists(ev->tid)) relaxed_set(&wl->hidden, err ? err : EACCES);
    wl->stack = STACK_HIDDEN;
    return;
  default: break;
  }
  switch (ev->keep(ev, &regs, has_moved)) {
  case KEPT_STACK: wl->stack = STACK_KEPT; break;
  case KEPT_MOVED: wl->stack = STACK_MOVED; break;
  default:
    wl->stack = STACK_HIDDEN;
    relaxed_set(&wl->hidden, ENOSYS);
    break;
  }
}

/* -- Looks ------------------------------------------------------------------- */

/* With records. A wait that goes on is due when it reaches the threshold, or before, see is_due. If
** it is known already, and lasts as usual, a next one that begins at once reaches the threshold after
** that time, too. A thread that runs may begin to wait now, and must be seen before the usual end.
*/
static uint64_t next_byrecords(const Event *ev, uint64_t now_ns)
{
  const WaitLook *wl = waitlook_of(ev);
  uint64_t due_ns = wl->begun_ns + waitevent_threshold(&ev->spec);
  uint64_t usual_ns = wl->usual_ns - wl->usual_ns / LATE_PART;
  if (!wl->is_off || wl->is_preempted)
    return is_likely(ev) ? usual_ns : wl->usual_ns - waitevent_threshold(&ev->spec);
  if (wl->stack != STACK_NONE) return usual_ns;
  return due_ns > now_ns + LOOK_DUE_NS ? due_ns - now_ns : LOOK_DUE_NS;
}

/* Without records, a wait is as exact as its end, which may be anywhere between two looks. So their
** distance is random: looks in step with the waits would take always too much, or too little.
*/
static uint64_t next_byfigures(const Event *ev, uint64_t now_ns)
{
  WaitLook *wl = waitlook_of(ev);
  uint64_t ns = waitevent_threshold(&ev->spec);
  if (wl->is_off) ns += (now_ns - wl->begun_ns) / EXACT_PART;
  wl->random = wl->random * 6364136223846793005u + 1442695040888963407u;
  return ns / 2 + (uint64_t)(((wl->random >> 32) * ns) >> 32);
}

/* A thread that runs on and on is looked at less often. */
static uint64_t next_look(const Event *ev, uint64_t now_ns)
{
  const WaitLook *wl = waitlook_of(ev);
  uint64_t ns = wl->ring.map ? next_byrecords(ev, now_ns) : next_byfigures(ev, now_ns);
  uint32_t i;
  if (ns < LOOK_MIN_NS && !(wl->ring.map && wl->is_off)) ns = LOOK_MIN_NS;
  if (!wl->is_off || wl->ring.map)
    for (i = LOOKS_BUSY; i < wl->idle && ns < LOOK_MAX_NS; i += LOOKS_BUSY) ns *= 2;
  return ns < LOOK_MAX_NS ? ns : LOOK_MAX_NS;
}

/* Take what the thread has done since the last look. Returns the time up to which it is known. */
static uint64_t take_news(Event *ev)
{
  WaitLook *wl = waitlook_of(ev);
  uint64_t now_ns;
  wl->idle++;
  if (!wl->ring.map) return look_figures(ev);
  now_ns = mono_ns(); /* The looks at other threads have taken time. */
  look_records(ev, now_ns);
  return now_ns;
}

/* May a part of the current wait go into the stream? The thread may have been ready for some time. How
** long, the kernel tells when it has a processor again.
*/
static int has_part(Event *ev, uint64_t now_ns)
{
  const WaitLook *wl = waitlook_of(ev);
  return wl->stack != STACK_NONE && now_ns - wl->told_ns >= PART_NS && sleeps_now(ev);
}

uint64_t lj_waitlook_look(Event *ev)
{
  WaitLook *wl = waitlook_of(ev);
  uint64_t now_ns = take_news(ev);
  if (wl->gone_ns == 0 && wl->is_off && !wl->is_preempted && now_ns > wl->begun_ns) {
    if (is_due(ev, now_ns))
      read_stack(ev, now_ns - wl->begun_ns < waitevent_threshold(&ev->spec));
    if (has_part(ev, now_ns)) append_wait(ev, now_ns, 0);
  }
  if (now_ns - wl->summed_ns >= PART_NS) append_sums(ev, now_ns);
  return next_look(ev, now_ns);
}

/* Without records, nobody knows what a thread that has ended did after the last look. While it was seen
** alive, CPU time is the rest of its waits. From then until a look found it gone, it lived for half of the
** time on average: a wait if it had no processor at the last look.
*/
static void lose_end(Event *ev)
{
  WaitLook *wl = waitlook_of(ev);
  uint64_t ns = 0, alive_ns = wl->looked_ns, cpu_ns;
  if (ev->alive_ns > alive_ns && ev->alive_ns < wl->gone_ns) {
    cpu_ns = ev->alive_cpu_ns > wl->cpu_ns ? ev->alive_cpu_ns - wl->cpu_ns : 0;
    alive_ns = ev->alive_ns;
    if (cpu_ns < alive_ns - wl->looked_ns) ns = alive_ns - wl->looked_ns - cpu_ns;
  }
  if (wl->is_off) ns += (wl->gone_ns - alive_ns) / 2;
  note_end(wl, alive_ns, wl->gone_ns);
  sum_add(wl, &wl->lost, ns, 0);
  wl->is_off = 0;
  wl->looked_ns = wl->gone_ns;
}

/* The kernel forgets how long a thread was ready when it ends. After its last wake-ups that was as long as
** after those before on average.
*/
static void guess_ready(WaitLook *wl, uint64_t now_ns)
{
  const WakeReady *known = wl->known.n ? &wl->known : &all_known;
  uint64_t ns = known->n
		  ? (uint64_t)((double)known->ns / (double)known->n * (double)wl->unread)
		  : 0;
  wl->unread = 0;
  if (ns <= (now_ns - wl->since_ns) / VAGUE_PART) return;
  take_from_short(wl, (int64_t)ns);
  relaxed_set(&wl->vague_ready_ns, ns);
}

/* What waits in the stream had more or less ready time than the kernel told. */
static void note_owed(WaitLook *wl, uint64_t now_ns)
{
  uint64_t ns = (uint64_t)(wl->owed_ns < 0 ? -wl->owed_ns : wl->owed_ns);
  int is_vague = wl->has_sched && ns > (now_ns - wl->since_ns) / VAGUE_PART;
  relaxed_set(&wl->vague_ready_ns, is_vague ? ns : 0);
}

/* A sum without time is not in the stream. Lost waits whose time is known all the same take the least of it. */
static void tell_lost(WaitLook *wl)
{
  WaitSum *from = wl->ready.ns > 1 ? &wl->ready : &wl->too_short;
  if (wl->lost.n == 0 || wl->lost.ns != 0 || from->ns <= 1) return;
  from->ns--;
  wl->lost.ns = 1;
}

/* A wait that goes on, and has no stack yet, gets none: the caller may be the thread that runs the
** VM, and a signal handler may interrupt it.
*/
void lj_waitlook_sync(Event *ev)
{
  WaitLook *wl = waitlook_of(ev);
  uint64_t now_ns, to_ns, rest, ready_ns;
  wl->sched_ns = 0; /* Read it now. */
  now_ns = take_news(ev);
  if (wl->wakes || wl->preempted_ns) read_owed(ev, now_ns);
  if (wl->ring.map) take_from_short(wl, wl->owed_ns);
  if (wl->ring.map) give_back(ev);
  if (wl->unread) guess_ready(wl, now_ns);
  to_ns = wl->gone_ns ? wl->looked_ns : now_ns;
  if (!wl->is_off && wl->end_ns && !wl->gone_ns) {
    take_runs(ev, 0, 0, wl->cpu_ns, now_ns); /* It may have begun a wait since then. */
  } else if (!wl->is_off) {
    sum_add(wl, &wl->lost, wl->end_ns, 0);
    wl->end_ns = 0;
  }
  rest = wl->is_off && to_ns > wl->told_ns ? to_ns - wl->told_ns : 0;
  if (rest && wl->is_preempted) {
    uint64_t waited_ns = wl->woken_ns > wl->told_ns ? wl->woken_ns - wl->told_ns : 0;
    add_unseen(ev, waited_ns, 0, to_ns); /* A part of a wait that has been counted. */
    sum_add(wl, &wl->ready, rest - waited_ns, wl->told_ns == wl->begun_ns);
    wl->told_ns = to_ns;
    if (!wl->ring.map)
      wl->owed_ns -= (int64_t)(rest - waited_ns); /* The kernel tells it later. */
  } else if (rest) { /* It makes up for waits before that had too much. */
    ready_ns = wl->ring.map && wl->owed_ns > 0 ? (uint64_t)wl->owed_ns : 0;
    if (ready_ns > rest) ready_ns = rest;
    if (to_ns - wl->begun_ns < waitevent_threshold(&ev->spec)) {
      sum_add(wl, &wl->too_short, rest - ready_ns, wl->told_ns == wl->begun_ns);
      wl->told_ns = to_ns;
    } else {
      append_wait(ev, to_ns, ready_ns);
    }
    if (ready_ns) sum_add(wl, &wl->ready, ready_ns, 0);
    wl->owed_ns -= (int64_t)ready_ns;
  }
  if (wl->ring.map && thread_ns(ev->tid) != 0) note_owed(wl, now_ns);
  if (wl->gone_ns) lose_end(ev);
  tell_lost(wl);
  append_sums(ev, now_ns);
}

/* A thread that waits already began to wait now, for the profile. */
void lj_waitlook_begin(Event *ev)
{
  WaitLook *wl = waitlook_of(ev);
  WalkRegs regs;
  WaitPlaceKind place = lj_waitproc_place(&wl->file, ev->tid, &wl->nr, &regs);
  uint64_t now_ns, cpu_ns = clocks_read(ev->tid, &now_ns);
  wl->looked_ns = wl->summed_ns = wl->sched_ns = now_ns;
  wl->since_ns = now_ns;
  wl->since_cpu_ns = wl->cpu_ns = cpu_ns;
  wl->usual_ns = 2 * waitevent_threshold(&ev->spec);
  wl->long_256 = LONG_MOST; /* Unless the first wait is short. */
  wl->random = now_ns;
  wl->first_runs = wl->sched.runs;
  if (!wl->ring.map) {
    lj_waitproc_sched(ev->tid, &wl->sched);
    lj_waitproc_left(ev->tid, &wl->left);
  }
  if (!wl->is_off && is_asleep(place, ev->tid)) wait_begin(wl, now_ns, 0);
}
