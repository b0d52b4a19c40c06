/*
** Signals of the clocks: table of slots, handler, installation.
*/

#define lj_clocksig_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "profile/lj_clock_kinds.h"
#include "profile/lj_clocksig.h"
#include "profile/lj_now.h"
#include "profile/lj_shared.h"
#include "profile/lj_threads.h"

/* The value of a slot: a tag, a generation that changes with every claim, and
** the slot. Without the tag no signal belongs to it.
*/
#define VALUE_TAG		((uintptr_t)0x5350 << 48)
#define VALUE_TAG_MASK		((uintptr_t)0xffff << 48)
#define VALUE_SLOT_MASK		((uintptr_t)(CLOCKS_MAX-1))
#define VALUE_GENERATION	((uintptr_t)CLOCKS_MAX)
#define VALUE_FREE		((uintptr_t)0)
#define VALUE_RETIRED		((uintptr_t)1)	/* Not to be claimed yet. */

/* Where the program's handler takes three arguments; no address has this bit. */
#define PASS_SIGINFO		((uintptr_t)1 << 63)

#define SIGNALS_MAX	64	/* Signals of Linux, 1 to 64. */
#define FOREIGN_MAX	16	/* Pending signals kept while ours are taken. */
#define RETRY_NS	20000	/* Between two looks at another thread's tick. */
#define SIBLINGS_MAX	32	/* Clocks of a thread that a signal sees to. */
#define LOOKS_MAX	8	/* Threads that a signal of the process looks at. */

/* Shared with the handler. A slot's value is set last by the claim; its clock is
** there as long as the value is, or the slot has users.
*/
static struct {
  uintptr_t value;
  int users;			/* Handlers that use the slot, */
  int ticks;			/* and ticks among them, of the clock's thread. */
  Clock *clock;
  /* Copies, so that a look at them needs no use. */
  int tid, signo, kind;
  int next;			/* Ring of slots with the same thread and signal. */
} slots[CLOCKS_MAX];
static int slots_top;		/* Beyond the highest that was ever claimed. */
static unsigned int look_from;	/* Where itimer_signal begins. */

static struct {
  uintptr_t pass;		/* The program's handler, for ours, which may run
				** while it is set. */
  struct sigaction oldsa;	/* All of it. Set under the lock, as all below. */
  int users;			/* Clocks. */
  int closed_elsewhere;		/* One was closed by another thread than its. */
} signals[SIGNALS_MAX+1];
static uint64_t inuse;		/* Signals with clocks. */
static uintptr_t generation;	/* Of the last claim. */

int lj_clocksig_islive(uintptr_t value)
{
  return shared_get(&slots[value & VALUE_SLOT_MASK].value) == value;
}

int lj_clocksig_isticking(const Clock *c)
{
  return shared_get(&slots[c->slot].value) == c->value &&
	 shared_get(&slots[c->slot].ticks) > 0;
}

uint64_t lj_clocksig_inuse(void)
{
  return shared_get(&inuse);
}

/* -- Handler ----------------------------------------------------------------- */

/* The signal that is passed on now on this thread, and the frame that does. */
static __thread struct {
  const siginfo_t *info;
  uintptr_t frame;
} passing __attribute__((tls_model("initial-exec")));

/* A signal that is not ours goes where it would have gone without us; only a
** default action, which would end the program, is left out. The program's handler
** may pass it on in turn, to ours, if it was set while ours was there: it has been
** there, then. A handler may also be left by a jump; what comes after that is on
** top of the same stack again, not below.
*/
static void pass_on(int signo, siginfo_t *info, void *uc)
{
  uintptr_t pass = shared_get(&signals[signo].pass);
  uintptr_t handler = pass & ~PASS_SIGINFO;
  uintptr_t frame = (uintptr_t)__builtin_frame_address(0), outer = passing.frame;
  const siginfo_t *before = passing.info;
  if (handler == (uintptr_t)SIG_DFL || handler == (uintptr_t)SIG_IGN ||
      (before == info && frame < outer))
    return;
  passing.info = info;
  passing.frame = frame;
  if (pass & PASS_SIGINFO)
    ((void (*)(int, siginfo_t *, void *))handler)(signo, info, uc);
  else
    ((void (*)(int))handler)(signo);
  passing.info = before;
  passing.frame = outer;
}

/* The value that a signal stands for, 0 if it is none of ours. */
static uintptr_t value_of(const siginfo_t *info)
{
  uintptr_t value = (uintptr_t)info->si_value.sival_ptr;
  switch (info->si_code) {
  case SI_TIMER: case SI_QUEUE:  /* From forward(). */
    return (value & VALUE_TAG_MASK) == VALUE_TAG ? value : 0;
  case POLL_IN: case SI_SIGIO:
    return lj_clock_perf_value(info->si_fd);
  default:
    return 0;
  }
}

/* Use the slot of a value, if its clock is there still. */
static Clock *slot_use(uintptr_t value)
{
  uintptr_t slot = value & VALUE_SLOT_MASK;
  __atomic_add_fetch(&slots[slot].users, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&slots[slot].value, __ATOMIC_SEQ_CST) == value)
    return slots[slot].clock;
  __atomic_sub_fetch(&slots[slot].users, 1, __ATOMIC_SEQ_CST);
  return NULL;
}

static void slot_done(uintptr_t value)
{
  __atomic_sub_fetch(&slots[value & VALUE_SLOT_MASK].users, 1, __ATOMIC_SEQ_CST);
}

/* A tick of a clock whose slot is in use, which the handler began with at begin_ns. */
static void clock_tick(Clock *c, const siginfo_t *info, ucontext_t *uc,
		       uint64_t begin_ns)
{
  int slot = c->slot;
  shared_add(&slots[slot].ticks, 1);
  c->begin_ns = begin_ns;
  lj_clock_tick(c, info, uc);
  shared_add(&slots[slot].ticks, -1);
}

/* The kernel drops a perf event's signal while another one with the number is
** pending, so that two events that always come together would show one of them
** only: see to the others of the thread.
*/
static void siblings_tick(uintptr_t value, int tid, int signo,
			  const siginfo_t *info, ucontext_t *uc)
{
  int first = (int)(value & VALUE_SLOT_MASK), i, n;
  for (i = shared_get(&slots[first].next), n = 0; i != first && n < SIBLINGS_MAX;
       i = shared_get(&slots[i].next), n++) {
    uintptr_t v = shared_get(&slots[i].value);
    Clock *c;
    if (shared_get(&slots[i].tid) != tid || shared_get(&slots[i].signo) != signo)
      return;  /* It changes. */
    if (shared_get(&slots[i].kind) != CLOCK_PERF ||
	(v & VALUE_TAG_MASK) != VALUE_TAG)
      continue;
    c = slot_use(v);
    if (!c) continue;
    /* Before it is armed, another thread may be about to open it. */
    if (__atomic_load_n(&c->armed, __ATOMIC_SEQ_CST) && lj_clock_perf_isdue(c))
      clock_tick(c, info, uc, mono_ns());
    slot_done(v);
  }
}

static void value_tick(uintptr_t value, int signo, const siginfo_t *info,
		       ucontext_t *uc, uint64_t begin_ns)
{
  Clock *c = slot_use(value);
  int tid, is_own;
  if (!c) {  /* Its clock is closed. */
    if (info->si_code == POLL_IN || info->si_code == SI_SIGIO)
      lj_clock_perf_unlist(info->si_fd, value);
    return;
  }
  tid = c->tid;
  /* A late signal of another thread's clock with this descriptor? */
  is_own = (c->spec.kind != CLOCK_PERF || tid == lj_threads_self());
  if (is_own) clock_tick(c, info, uc, begin_ns);
  slot_done(value);
  if (is_own && shared_get(&slots[value & VALUE_SLOT_MASK].next) !=
		(int)(value & VALUE_SLOT_MASK))
    siblings_tick(value, tid, signo, info, uc);
}

/* Have another thread tick. */
static void forward(uintptr_t value, const Clock *c)
{
  siginfo_t info;
  memset(&info, 0, sizeof(info));
  info.si_signo = c->signo;
  info.si_code = SI_QUEUE;
  info.si_pid = c->pid;
  info.si_value.sival_ptr = (void *)value;
  syscall(SYS_rt_tgsigqueueinfo, c->pid, c->tid, c->signo, &info);
}

/* The timer of the process ticks for this thread, and is told to others that it
** passes over.
*/
static void itimer_signal(const siginfo_t *info, ucontext_t *uc)
{
  int tid = lj_clock_tid(), top = shared_get(&slots_top), looks = 0, i;
  unsigned int from = shared_get(&look_from);
  for (i = 0; i < top; i++) {
    int slot = (int)((from + (unsigned int)i) % (unsigned int)top);
    uintptr_t value = shared_get(&slots[slot].value);
    Clock *c;
    if (shared_get(&slots[slot].kind) != CLOCK_ITIMER ||
	(value & VALUE_TAG_MASK) != VALUE_TAG ||
	(shared_get(&slots[slot].tid) != tid && looks >= LOOKS_MAX))
      continue;
    c = slot_use(value);
    if (!c) continue;
    if (c->tid == tid) {
      clock_tick(c, info, uc, mono_ns());
    } else if (__atomic_load_n(&c->armed, __ATOMIC_SEQ_CST)) {
      if (++looks == LOOKS_MAX) shared_set(&look_from, (unsigned int)slot + 1);
      if (lj_clock_itimer_isstarved(c)) forward(value, c);
    }
    slot_done(value);
  }
}

static void clock_signal(int signo, siginfo_t *info, void *uc)
{
  uint64_t begin_ns = mono_ns();  /* Before anything that takes time. */
  int saved_errno = errno;
  uintptr_t value = value_of(info);
  if (value)
    value_tick(value, signo, info, (ucontext_t *)uc, begin_ns);
  else if (lj_clock_itimer_issignal(signo, info->si_code))
    itimer_signal(info, (ucontext_t *)uc);
  else
    pass_on(signo, info, uc);
  errno = saved_errno;
}

/* -- Installation ------------------------------------------------------------ */

static int is_ours(const struct sigaction *sa)
{
  return (sa->sa_flags & SA_SIGINFO) && sa->sa_sigaction == clock_signal;
}

/* Ours may be there still: then the program's is known already. */
static int handler_install(int signo)
{
  struct sigaction sa;
  if (sigaction(signo, NULL, &sa) != 0) return -1;
  signals[signo].closed_elsewhere = 0;
  if (is_ours(&sa)) return 0;
  signals[signo].oldsa = sa;
  shared_set(&signals[signo].pass, sa.sa_flags & SA_SIGINFO ?
	     (uintptr_t)sa.sa_sigaction | PASS_SIGINFO : (uintptr_t)sa.sa_handler);
  memset(&sa, 0, sizeof(sa));
  sa.sa_sigaction = clock_signal;
  sa.sa_flags = SA_SIGINFO|SA_RESTART|SA_ONSTACK;
  sigemptyset(&sa.sa_mask);
  sigaddset(&sa.sa_mask, SIGPROF);  /* Clocks of a session may have both. */
  sigaddset(&sa.sa_mask, SIGURG);
  return sigaction(signo, &sa, NULL);
}

/* Put the program's handler back, unless it has set another one meanwhile. */
static void handler_restore(int signo)
{
  struct sigaction now;
  if (sigaction(signo, NULL, &now) == 0 && is_ours(&now))
    sigaction(signo, &signals[signo].oldsa, NULL);
}

int lj_clocksig_isreplaced(int signo)
{
  struct sigaction now;
  return shared_get(&signals[signo].users) > 0 && sigaction(signo, NULL, &now) == 0 &&
	 !is_ours(&now);
}

/* -- Signals that are pending at the end ------------------------------------- */

/* Take signals of clocks that are gone which are pending for this thread: the
** program's handler must not get them. Others are queued again as they were.
*/
static void drain(const Clock *c)
{
  static const struct timespec now = { 0, 0 };
  siginfo_t info[FOREIGN_MAX];
  sigset_t set, old;
  int signo = c->signo, i, n = 0;
  if (sigpending(&set) != 0 || !sigismember(&set, signo)) return;
  sigemptyset(&set);
  sigaddset(&set, signo);
  if (pthread_sigmask(SIG_BLOCK, &set, &old) != 0) return;
  while (n < FOREIGN_MAX && sigtimedwait(&set, &info[n], &now) == signo) {
    uintptr_t value = value_of(&info[n]);
    if (value ? lj_clocksig_islive(value) :
	c->spec.kind != CLOCK_ITIMER || info[n].si_code != SI_KERNEL)
      n++;
  }
  for (i = 0; i < n; i++)
    syscall(SYS_rt_tgsigqueueinfo, getpid(), c->tid, signo, &info[i]);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Has a thread of this process a signal pending, by the line of its status with
** this key? If in doubt, it has: one that its tracer holds back is in no line.
*/
static int pending_for(int tid, int signo, const char *key)
{
  char path[64], text[2048], *at;
  ssize_t n;
  int fd;
  snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
  fd = open(path, O_RDONLY|O_CLOEXEC);
  if (fd < 0) return errno != ENOENT;
  n = read(fd, text, sizeof(text)-1);
  close(fd);
  if (n < 0) return errno != ESRCH;
  text[n] = '\0';
  at = strstr(text, key);
  return !at || !strstr(text, "\nTracerPid:\t0\n") ||
	 ((strtoull(at + strlen(key), NULL, 16) >> (signo-1)) & 1);
}

/* A signal that is pending for another thread cannot be taken here, and the
** program's handler must not get it.
*/
typedef struct PendingScan {
  int signo, found;
} PendingScan;

static void pending_look(void *ctx, int tid)
{
  PendingScan *scan = (PendingScan *)ctx;
  if (!scan->found) scan->found = pending_for(tid, scan->signo, "\nSigPnd:");
}

static int pending_anywhere(int signo)
{
  PendingScan scan = { signo, 0 };
  return !lj_threads_each(pending_look, &scan) || scan.found;
}

/* -- Slots ------------------------------------------------------------------- */

/* Clocks of one thread and signal are a ring. */
static void ring_join(int slot)
{
  int i;
  shared_set(&slots[slot].next, slot);
  for (i = 0; i < slots_top; i++) {
    if (i != slot && (shared_get(&slots[i].value) & VALUE_TAG_MASK) == VALUE_TAG &&
	slots[i].tid == slots[slot].tid && slots[i].signo == slots[slot].signo) {
      shared_set(&slots[slot].next, slots[i].next);
      shared_set(&slots[i].next, slot);
      break;
    }
  }
}

static void ring_leave(int slot)
{
  int i = slot;
  while (slots[i].next != slot) i = slots[i].next;
  shared_set(&slots[i].next, slots[slot].next);
}

ClockStatus lj_clocksig_claim(Clock *c)
{
  int slot = 0;
  while (slot < CLOCKS_MAX && shared_get(&slots[slot].value) != VALUE_FREE) slot++;
  if (slot == CLOCKS_MAX) return CLOCK_BUSY;
  if (signals[c->signo].users == 0 && handler_install(c->signo) != 0)
    return CLOCK_ERROR;
  shared_add(&signals[c->signo].users, 1);
  shared_set(&inuse, inuse | U64x(00000000,00000001) << (c->signo-1));
  generation += VALUE_GENERATION;
  c->slot = slot;
  c->value = VALUE_TAG | (generation & ~VALUE_TAG_MASK) | (uintptr_t)slot;
  slots[slot].clock = c;
  shared_set(&slots[slot].tid, c->tid);
  shared_set(&slots[slot].signo, c->signo);
  shared_set(&slots[slot].kind, (int)c->spec.kind);
  ring_join(slot);
  if (slot >= slots_top) shared_set(&slots_top, slot + 1);
  __atomic_store_n(&slots[slot].value, c->value, __ATOMIC_SEQ_CST);
  return CLOCK_OK;
}

void lj_clocksig_kind(const Clock *c)
{
  shared_set(&slots[c->slot].kind, (int)c->spec.kind);
}

/* Ticks run on the clock's thread. On this one a tick can only be below us: it is
** what calls here, and cannot be waited for. One on a thread that was cancelled in
** it will never end.
*/
void lj_clocksig_retire(Clock *c)
{
  static const struct timespec retry = { 0, RETRY_NS };
  int own = (c->tid == lj_clock_tid()), slot = c->slot;
  __atomic_store_n(&slots[slot].value, VALUE_RETIRED, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&slots[slot].users, __ATOMIC_SEQ_CST) > 0) {
    if ((own || !lj_threads_exists(c->tid)) &&
	shared_get(&slots[slot].users) <= shared_get(&slots[slot].ticks))
      break;
    nanosleep(&retry, NULL);
  }
}

void lj_clocksig_release(Clock *c)
{
  int signo = c->signo, own = (c->tid == lj_clock_tid());
  if (own) drain(c);
  else signals[signo].closed_elsewhere = 1;
  if (c->spec.kind == CLOCK_PERF &&
      (own || !pending_for(c->tid, signo, "\nSigPnd:")))
    lj_clock_perf_unlist(c->fd, c->value);
  ring_leave(c->slot);
  /* It stays retired if a tick will never end. A user that is none looks only, and
  ** finds that the clock is gone.
  */
  if (own || shared_get(&slots[c->slot].ticks) == 0)
    shared_set(&slots[c->slot].value, VALUE_FREE);
  shared_add(&signals[signo].users, -1);
  if (signals[signo].users > 0) return;
  shared_set(&inuse, inuse & ~(U64x(00000000,00000001) << (signo-1)));
  if (c->spec.kind == CLOCK_ITIMER && pending_for(c->pid, signo, "\nShdPnd:"))
    return;
  if (!signals[signo].closed_elsewhere || !pending_anywhere(signo))
    handler_restore(signo);
}

void lj_clocksig_forget(void)
{
  int i;
  lj_threads_forget();
  for (i = 0; i < CLOCKS_MAX; i++) {
    shared_set(&slots[i].value, VALUE_FREE);
    shared_set(&slots[i].users, 0);
    shared_set(&slots[i].ticks, 0);
  }
  for (i = 1; i <= SIGNALS_MAX; i++) {
    if (signals[i].users > 0) handler_restore(i);
    shared_set(&signals[i].users, 0);
  }
  shared_set(&inuse, 0);
}
