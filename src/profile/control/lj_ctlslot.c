/*
** Control slots: allocation, fork, polling.
** Context: VM thread | poll: background thread | fork, end: under the lock of lj_process.h.
*/

#define lj_ctlslot_c
#define LUA_CORE

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lj_obj.h"
#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_oslock.h"
#include "profile/base/lj_osmemory.h"
#include "profile/base/lj_osprocess.h"
#include "profile/base/lj_osstack.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_relaxed.h"
#include "profile/clock/lj_clock.h"
#include "profile/control/lj_ctlfile.h"
#include "profile/control/lj_ctlsig.h"
#include "profile/control/lj_ctlslot.h"
#include "profile/control/lj_ctlstack.h"
#include "profile/control/lj_ctltime.h"
#include "profile/output/lj_outfile.h"

static OsLock slots_lock;
static int slots_used;  /* Slots in use. Written under the lock. */
static int slots_polls; /* Slots to poll. Written under the lock. */
static int slots_live;  /* Slots for live control. Written under the lock. */
static int lives;       /* VMs that became live, for their numbers. Under the lock. */

Control *lj_ctlslot_of(const global_State *g)
{
  int i;
  if (!relaxed_get(&slots_used)) return NULL;
  for (i = 0; i < CONTROLS_MAX; i++)
    if (relaxed_get(&lj_ctlsig_slots[i].sig.g) == g) return &lj_ctlsig_slots[i];
  return NULL;
}

/* -- Slots ------------------------------------------------------------------- */

/* Note that the calling thread runs the VM. */
static void slot_setthread(Control *c)
{
  uintptr_t lo, hi;
  lj_osthread_stack(&lo, &hi);
  relaxed_set(&c->sig.stack_lo, lo);
  relaxed_set(&c->sig.stack_hi, hi);
  relaxed_set(&c->sig.is_small, hi != lo && hi - lo < lj_osstack_leastofvm());
  relaxed_set(&c->sig.tid, lj_osthread_self());
}

static void slot_free(Control *c)
{
  free((char *)c->way.pattern);
  free((char *)c->way.file);
  free((char *)c->way.fo.path);
  free((char *)c->way.opt.clocks);
  relaxed_set(&c->way.file, NULL);
  c->way.pattern = c->way.fo.path = c->way.opt.clocks = NULL;
}

/* Name the control file of this process and record its state. Returns NULL, or the reason
** of a failure.
*/
static const char *slot_findfile(Control *c)
{
  if (lj_outfile_name((char *)c->way.file, PATH_MAX, c->way.pattern, c->way.number, 1) <= 0)
    return strerror(ENAMETOOLONG);
  return lj_ctlfile_begin(c);
}

/* Does the background thread look after the slot? */
static int slot_haspoll(const Control *c)
{
  return !relaxed_get(&c->sig.is_over) && (c->way.file != NULL || c->sig.dump_signo != 0 ||
					   c->poll.has_time || c->poll.watchers);
}

/* May clients record the VM? */
static int slot_haslive(const Control *c)
{
  return c->way.is_live && !relaxed_get(&c->sig.is_over);
}

/* End the offer of a stack. A handler that has taken it may never return: then it is lost. */
static void slot_withdraw(Control *c)
{
  CtlStack *cs = c->poll.late;
  if (cs && (__atomic_exchange_n(&c->sig.offer, NULL, __ATOMIC_ACQ_REL) == cs ||
	     lj_ctlstack_isdone(cs)))
    lj_ctlstack_free(cs);
  c->poll.late = NULL;
  c->poll.late_ms = 0;
}

/* Free a slot, so that lj_ctlslot_add may fill it again. Under the lock. */
static void slot_end(Control *c)
{
  int own = relaxed_get(&c->sig.tid) == lj_osthread_self();
  if (slot_haspoll(c)) relaxed_add(&slots_polls, -1);
  relaxed_add(&slots_live, -slot_haslive(c));
  relaxed_add(&slots_used, -1);
  __atomic_store_n(&c->sig.g, NULL, __ATOMIC_SEQ_CST);
  while (!own && __atomic_load_n(&c->sig.users, __ATOMIC_SEQ_CST) > 0) sched_yield();
  slot_withdraw(c);
  lj_ctltime_end(c);
  lj_ctlsig_restore(c->sig.signo);
  lj_ctlsig_restore(c->sig.dump_signo);
  slot_free(c);
}

/* Choose a signal that wakes the thread. Another copy of this library may have some. */
static const char *slot_choose(Control *c)
{
  const int *signo = lj_clock_choices;
  for (; *signo; signo++) {
    relaxed_set(&c->sig.signo, *signo);
    if (!lj_ctlsig_install(*signo)) return NULL;
  }
  return "the program has handlers for SIGURG, SIGPROF, SIGVTALRM and SIGSTKFLT; live control, "
	 "control by a file, delay, duration and max_size need one of them";
}

static const char *slot_fill(Control *c, const ControlOptions *co)
{
  const struct luam_Sysprof_Options *opt = co->opt;
  const StreamFileOptions *fo = co->fo;
  const char *errmsg;
  int signo = co->signo ? co->signo : co->dump_signo;
  relaxed_set(&c->sig.signo, co->file ? 0 : signo);
  relaxed_set(&c->sig.dump_signo, co->dump_signo);
  relaxed_set(&c->sig.is_toggled, !co->file && co->signo);
  c->sig.asked = c->run.runs = c->run.dumps =
    0; /* Not users: a handler may be about to leave. */
  relaxed_set(&c->sig.pending, 0);
  relaxed_set(&c->sig.is_over, 0);
  c->way.is_live = co->is_live;
  c->way.is_once = !co->file && !signo && !co->is_live;
  c->poll.has_time = streamfile_istimed(fo);
  c->poll.watchers = 0;
  c->run.has_ended = c->poll.timer_tid = c->poll.refused_polls = 0;
  c->poll.start_ns = 0;
  c->way.number = co->number;
  c->way.process = lj_osprocess_id();
  c->way.opt = *opt;
  c->way.fo = *fo;
  c->way.opt.clocks = opt->clocks ? strdup(opt->clocks) : NULL;
  c->way.fo.path = fo->path ? strdup(fo->path) : NULL;
  c->way.pattern = co->file ? strdup(co->file) : NULL;
  relaxed_set(&c->way.file, co->file ? malloc(PATH_MAX) : NULL);
  if ((opt->clocks && !c->way.opt.clocks) || (fo->path && !c->way.fo.path) ||
      (co->file && !(c->way.pattern && c->way.file)))
    return strerror(ENOMEM);
  if (co->file && (errmsg = slot_findfile(c)) != NULL) return errmsg;
  if (!c->sig.peek) c->sig.peek = (SafeLoad *)lj_osmemory_new(sizeof(SafeLoad), 0);
  if (!c->sig.peek) return strerror(ENOMEM);
  slot_setthread(c);
  if (c->sig.signo) errmsg = lj_ctlsig_install(c->sig.signo);
  else if ((errmsg = slot_choose(c)) != NULL) return errmsg;
  if (!errmsg && c->sig.dump_signo &&
      (errmsg = lj_ctlsig_install(c->sig.dump_signo)) != NULL)
    lj_ctlsig_restore(c->sig.signo);
  return errmsg;
}

const char *lj_ctlslot_add(global_State *g, const ControlOptions *co)
{
  const char *errmsg = "all control slots are in use; put fewer VMs under control";
  int i;
  lj_oslock_take(&slots_lock);
  for (i = 0; i < CONTROLS_MAX && lj_ctlsig_slots[i].sig.g; i++)
    ;
  if (i < CONTROLS_MAX) {
    Control *c = &lj_ctlsig_slots[i];
    if ((errmsg = slot_fill(c, co)) != NULL) {
      slot_free(c);
    } else {
      relaxed_add(&slots_polls, slot_haspoll(c));
      relaxed_add(&slots_live, c->way.is_live);
      relaxed_add(&slots_used, 1);
      __atomic_store_n(&c->sig.g, g, __ATOMIC_SEQ_CST);
    }
  }
  lj_oslock_drop(&slots_lock);
  return errmsg;
}

const char *lj_ctlslot_addlive(global_State *g)
{
  static const struct luam_Sysprof_Options opt;
  static const StreamFileOptions fo;
  ControlOptions co = { 1, 0, NULL, 0, 0, &opt, &fo };
  Control *c;
  lj_oslock_take(&slots_lock);
  c = lj_ctlslot_of(g);
  if (c && !c->way.is_live && !c->way.is_once) {
    c->way.is_live = 1;
    relaxed_add(&slots_live, slot_haslive(c));
  }
  co.number = ++lives;
  lj_oslock_drop(&slots_lock);
  if (c && c->way.is_once)
    return "a profile of this VM waits for its time; let it end first";
  return c ? NULL : lj_ctlslot_add(g, &co);
}

int lj_ctlslot_lives(LiveVm *vms)
{
  int i, n = 0;
  lj_oslock_take(&slots_lock);
  for (i = 0; i < CONTROLS_MAX; i++) {
    const Control *c = &lj_ctlsig_slots[i];
    if (!c->sig.g || !slot_haslive(c)) continue;
    vms[n].g = c->sig.g;
    vms[n].number = c->way.number;
    vms[n].thread.tid = relaxed_get(&c->sig.tid);
    vms[n].thread.stack_lo = relaxed_get(&c->sig.stack_lo);
    vms[n].thread.stack_hi = relaxed_get(&c->sig.stack_hi);
    n++;
  }
  lj_oslock_drop(&slots_lock);
  return n;
}

int lj_ctlslot_haslive(void)
{
  return relaxed_get(&slots_live) > 0;
}

static void slot_settime(Control *c, int has_time)
{
  int had_poll = slot_haspoll(c);
  c->poll.has_time = has_time;
  relaxed_add(&slots_polls, slot_haspoll(c) - had_poll);
}

void lj_ctlslot_settime(Control *c, int has_time)
{
  lj_oslock_take(&slots_lock);
  slot_settime(c, has_time);
  if (!has_time && !c->poll.watchers) lj_ctltime_end(c);
  lj_oslock_drop(&slots_lock);
}

void lj_ctlslot_asklive(const global_State *g)
{
  Control *c;
  lj_oslock_take(&slots_lock);
  c = lj_ctlslot_of(g);
  if (c) __atomic_fetch_or(&c->sig.pending, CONTROL_LIVE, __ATOMIC_RELAXED);
  if (c && c->poll.watchers && slot_haspoll(c))
    lj_ctltime_poll(c); /* Not at the next look only. */
  lj_oslock_drop(&slots_lock);
}

void lj_ctlslot_watch(const global_State *g, int more)
{
  Control *c;
  int had_poll;
  lj_oslock_take(&slots_lock);
  c = lj_ctlslot_of(g);
  if (c && c->poll.watchers + more >= 0) {
    had_poll = slot_haspoll(c);
    c->poll.watchers += more;
    relaxed_add(&slots_polls, slot_haspoll(c) - had_poll);
    if (!c->poll.watchers)
      __atomic_fetch_and(&c->sig.pending, ~(uint32_t)CONTROL_LIVE, __ATOMIC_RELAXED);
    if (!c->poll.has_time && !c->poll.watchers) lj_ctltime_end(c);
  }
  lj_oslock_drop(&slots_lock);
}

void lj_ctlslot_startin(Control *c, uint64_t delay_ns)
{
  lj_oslock_take(&slots_lock);
  slot_settime(c, 1);
  c->poll.start_ns = mono_ns() + delay_ns;
  lj_oslock_drop(&slots_lock);
}

int lj_ctlslot_isdue(const Control *c)
{
  return relaxed_get(&c->poll.start_ns) != 0;
}

int lj_ctlslot_cancel(Control *c)
{
  int was_due;
  lj_oslock_take(&slots_lock);
  was_due = lj_ctlslot_isdue(c);
  relaxed_set(&c->poll.start_ns, 0);
  if (was_due)
    __atomic_fetch_and(&c->sig.pending, ~(uint32_t)CONTROL_START, __ATOMIC_RELAXED);
  lj_oslock_drop(&slots_lock);
  return was_due;
}

/* Only a delay needs the lock: the background thread must not ask for its start again. After exit(),
** a profile still ends at its time.
*/
uint32_t lj_ctlslot_take(Control *c)
{
  int has_delay = lj_ctlslot_isdue(c);
  uint32_t what;
  if (has_delay) lj_oslock_take(&slots_lock);
  what = __atomic_exchange_n(&c->sig.pending, 0, __ATOMIC_RELAXED);
  if (has_delay) {
    if (what & (CONTROL_START | CONTROL_STOP | CONTROL_TOGGLE))
      relaxed_set(&c->poll.start_ns, 0);
    lj_oslock_drop(&slots_lock);
  }
  return relaxed_get(&c->sig.is_over) ? what & CONTROL_OVER : what;
}

void lj_ctlslot_over(global_State *g)
{
  Control *c = lj_ctlslot_of(g);
  if (c) __atomic_fetch_or(&c->sig.pending, CONTROL_OVER, __ATOMIC_RELAXED);
}

void lj_ctlslot_moved(global_State *g)
{
  Control *c = lj_ctlslot_of(g);
  if (c) slot_setthread(c);
}

int lj_ctlslot_close(global_State *g)
{
  Control *c = lj_ctlslot_of(g);
  if (!c) return 0;
  lj_oslock_take(&slots_lock);
  slot_end(c);
  lj_oslock_drop(&slots_lock);
  return 1;
}

void lj_ctlslot_end(void)
{
  int i;
  lj_oslock_take(&slots_lock);
  for (i = 0; i < CONTROLS_MAX; i++) {
    Control *c = &lj_ctlsig_slots[i];
    if (!c->sig.g) continue;
    relaxed_add(&slots_polls, -slot_haspoll(c));
    relaxed_add(&slots_live, -slot_haslive(c));
    relaxed_set(&c->sig.is_over, 1);
    lj_ctltime_end(c);
  }
  lj_oslock_drop(&slots_lock);
}

/* End all control but that by clients. */
static void slot_leavelive(Control *c)
{
  const char *file = c->way.file;
  relaxed_add(&slots_polls, -slot_haspoll(c));
  relaxed_set(&c->way.file, NULL);
  free((char *)file);
  c->sig.is_toggled = 0;
  c->sig.dump_signo = 0;
  c->poll.has_time = 0;
  c->poll.start_ns = 0;
}

void lj_ctlslot_fork(int forked)
{
  int i;
  for (i = 0; i < CONTROLS_MAX; i++) {
    Control *c = &lj_ctlsig_slots[i];
    int is_own; /* What controls the VM in this process. */
    int had_poll;
    if (!c->sig.g) continue;
    had_poll = slot_haspoll(c);
    is_own = !c->way.file || strstr(c->way.pattern, "%p") != NULL;
    c->sig.users = c->sig.asked = 0;
    c->sig.pending &= is_own ? 0 : ~(uint32_t)CONTROL_OVER;
    c->poll.timer_tid = 0; /* The parent's timer stays with the parent. */
    c->poll.refused_polls = c->run.has_ended = 0;
    slot_withdraw(c);
    if (c->poll.watchers) {
      c->poll.watchers = 0;
      relaxed_add(&slots_polls, slot_haspoll(c) - had_poll);
    }
    if ((!c->way.fo.children && !c->way.is_live) || c->sig.tid != forked) {
      slot_end(c);
      continue;
    }
    c->sig.tid = lj_osthread_self();
    if (!c->way.fo.children) slot_leavelive(c);
    if (c->way.file && is_own) slot_findfile(c);
  }
}

int lj_ctlslot_haspoll(void)
{
  return relaxed_get(&slots_polls) > 0;
}

int lj_ctlslot_ischild(const Control *c)
{
  return c->way.process != lj_osprocess_id();
}

/* -- Late dumps -------------------------------------------------------------- */

#define LATE_MS 1000

static void late_place(void *ctx, const char *place, uint32_t n)
{
  LateDump *ld = (LateDump *)ctx;
  uint32_t i;
  for (i = 0; place && i < ld->nplace; i++)
    if (strcmp(ld->place[i].name, place) == 0) { /* With other labels. */
      ld->place[i].n += n;
      return;
    }
  if (!place || ld->nplace == LATEDUMP_PLACES) {
    ld->nmore += n;
    return;
  }
  strcpy(ld->place[ld->nplace].name, place);
  ld->place[ld->nplace++].n = n;
}

/* Collect what is known. The slot keeps the VM. */
static LateDump *late_new(Control *c)
{
  LateDump *ld = (LateDump *)calloc(1, sizeof(*ld));
  if (!ld || (ld->pattern = strdup(c->way.fo.path)) == NULL) {
    free(ld);
    return NULL;
  }
  if (c->poll.late && lj_ctlstack_isdone(c->poll.late)) {
    ld->stack = c->poll.late;
    c->poll.late = NULL;
  }
  ld->number = c->way.number;
  ld->is_child = lj_ctlslot_ischild(c);
  ld->how = c->way.fo.how;
  ld->dumps = &c->run.dumps;
  ld->has_known = lj_cowait_known(c->sig.g, late_place, ld);
  return ld;
}

void lj_ctlslot_latefree(LateDump *ld)
{
  if (!ld) return;
  if (ld->stack) lj_ctlstack_free(ld->stack);
  free(ld->pattern);
  free(ld);
}

/* A dump that the VM does not serve: after a second, offer a handler to take the stack. When it
** has, or after another second, return what is known, once.
*/
static LateDump *slot_late(Control *c)
{
  int64_t now = mono_ms();
  LateDump *ld;
  if (!(relaxed_get(&c->sig.pending) & CONTROL_COROUTINES)) {
    slot_withdraw(c);
  } else if (c->poll.late_ms == 0) {
    c->poll.late_ms = now + LATE_MS;
  } else if (c->poll.late_ms > 0 && !c->poll.late && now >= c->poll.late_ms) {
    c->poll.late_ms = now + LATE_MS;
    if ((c->poll.late = lj_ctlstack_new()) == NULL) return NULL;
    __atomic_store_n(&c->sig.offer, c->poll.late, __ATOMIC_RELEASE);
    lj_ctlsig_trywake(c);
  } else if (c->poll.late && (lj_ctlstack_isdone(c->poll.late) || now >= c->poll.late_ms)) {
    ld = late_new(c);
    slot_withdraw(c);
    c->poll.late_ms = -1;
    return ld;
  }
  return NULL;
}

LateDump *lj_ctlslot_poll(void)
{
  LateDump *ld = NULL;
  int i;
  if (!lj_ctlslot_haspoll() || !lj_oslock_try(&slots_lock)) return NULL;
  for (i = 0; i < CONTROLS_MAX; i++) {
    Control *c = &lj_ctlsig_slots[i];
    if (!c->sig.g || !slot_haspoll(c)) continue;
    if (c->way.file) lj_ctlfile_poll(c);
    if (c->poll.has_time || c->poll.watchers) lj_ctltime_poll(c);
    if (!ld) ld = slot_late(c);
  }
  lj_oslock_drop(&slots_lock);
  return ld;
}
