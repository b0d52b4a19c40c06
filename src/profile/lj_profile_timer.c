/*
** Profiling clock: periodic signals for the calling thread.
** Start and stop run outside of the handler, under a lock; the handler reads
** the table of running timers without one.
*/

#define lj_profile_timer_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* For SIGEV_THREAD_ID. */
#endif
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "lmisclib.h"
#include "profile/lj_profile_timer.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id	_sigev_un._tid
#endif

/* The value that our timers' signals carry: a tag, a generation that changes
** with every start, and the slot.
*/
#define VALUE_TAG		((uintptr_t)0x5350 << 48)
#define VALUE_TAG_MASK		((uintptr_t)0xffff << 48)
#define VALUE_SLOT_MASK		((uintptr_t)(PROFILE_TIMERS_MAX-1))
#define VALUE_GENERATION	((uintptr_t)PROFILE_TIMERS_MAX)

/* Shared with the handler. A slot's value is set last at the start and first
** cleared at the stop.
*/
static struct {
  volatile uintptr_t value;	/* What its signals carry, 0 if free. */
  ProfileTimer *timer;		/* Who gets them. */
} slots[PROFILE_TIMERS_MAX];
static struct sigaction oldsa;	/* The program's handler. */

/* Under the lock. */
static pthread_mutex_t timer_lock = PTHREAD_MUTEX_INITIALIZER;
static int nrunning;		/* Timers in slots. */
static int jitp_running;	/* The only one is jit.profile's. */
static uintptr_t generation;	/* Of the last start. */
static pid_t timers_pid;	/* Process that they belong to. */

int lj_profile_timer_tid(void)
{
  return (int)syscall(SYS_gettid);
}

/* -- Handler ----------------------------------------------------------------- */

/* A signal that is not ours goes where it would have gone without us; only a
** default action, which would end the program, is left out.
*/
static void pass_on(int sig, siginfo_t *info, void *uc)
{
  if (oldsa.sa_flags & SA_SIGINFO)
    oldsa.sa_sigaction(sig, info, uc);
  else if (oldsa.sa_handler != SIG_DFL && oldsa.sa_handler != SIG_IGN)
    oldsa.sa_handler(sig);
}

static void timer_signal(int sig, siginfo_t *info, void *uc)
{
  int saved_errno = errno;
  uintptr_t value = (uintptr_t)info->si_value.sival_ptr;
  if (info->si_code == SI_TIMER && (value & VALUE_TAG_MASK) == VALUE_TAG) {
    uintptr_t slot = value & VALUE_SLOT_MASK;
    if (slots[slot].value == value) {  /* Else it comes too late. */
      ProfileTimer *t = slots[slot].timer;
      t->tick(t->owner, info->si_overrun, (ucontext_t *)uc);
    }
  } else {
    pass_on(sig, info, uc);
  }
  errno = saved_errno;
}

/* -- Start and stop ---------------------------------------------------------- */

static int handler_install(void)
{
  struct sigaction sa;
  memset(&sa, 0, sizeof(sa));
  sa.sa_sigaction = timer_signal;
  sa.sa_flags = SA_SIGINFO|SA_RESTART|SA_ONSTACK;
  sigemptyset(&sa.sa_mask);
  return sigaction(PROFILE_SIGNAL, &sa, &oldsa);
}

/* Put the program's handler back, unless it has set another one meanwhile. */
static void handler_restore(void)
{
  struct sigaction now;
  if (sigaction(PROFILE_SIGNAL, NULL, &now) == 0 &&
      (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == timer_signal)
    sigaction(PROFILE_SIGNAL, &oldsa, NULL);
}

/* A number in [1, n], different in each start: the phase of the first tick. */
static uint64_t random_phase(uint64_t n)
{
  struct timespec ts;
  uint64_t x;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  x = (uint64_t)ts.tv_nsec * U64x(9e3779b9,7f4a7c15) + generation;
  x ^= x >> 32;
  return 1 + x % n;
}

/* After fork() the table describes the timers of another process. */
static void forget_parent(void)
{
  pid_t pid = getpid();
  int i;
  if (timers_pid == pid) return;
  timers_pid = pid;
  for (i = 0; i < PROFILE_TIMERS_MAX; i++)
    slots[i].value = 0;
  if (nrunning) handler_restore();
  nrunning = jitp_running = 0;
}

static ProfileTimerStatus timer_claim(ProfileTimer *t, int is_jitp)
{
  ProfileTimerStatus status = PROFILE_TIMER_ERROR;
  uintptr_t value;
  int slot, err = 0;
  pthread_mutex_lock(&timer_lock);
  forget_parent();
  for (slot = 0; slot < PROFILE_TIMERS_MAX; slot++)
    if (slots[slot].value == 0) break;
  if ((nrunning && (is_jitp || jitp_running)) || slot == PROFILE_TIMERS_MAX) {
    status = PROFILE_TIMER_BUSY;
    goto out;
  }
  if (nrunning == 0 && handler_install() != 0) {
    err = errno;
    goto out;
  }
  generation += VALUE_GENERATION;
  value = VALUE_TAG | (generation & ~VALUE_TAG_MASK) | (uintptr_t)slot;
  t->slot = slot;
  t->pid = timers_pid;
  t->armed = 0;
  slots[slot].timer = t;
  __atomic_store_n(&slots[slot].value, value, __ATOMIC_SEQ_CST);
  nrunning++;
  jitp_running = is_jitp;
  status = PROFILE_TIMER_OK;
out:
  pthread_mutex_unlock(&timer_lock);
  errno = err;
  return status;
}

/* Take signals of a deleted timer that are still pending for this thread: the
** program's handler must not get them. Others are queued again as they were.
*/
static void drain(void)
{
  static const struct timespec now = { 0, 0 };
  enum { PENDING_MAX = 2 };  /* One for the thread, one for the process. */
  siginfo_t info[PENDING_MAX];
  sigset_t set, old;
  int i, n = 0;
  sigemptyset(&set);
  sigaddset(&set, PROFILE_SIGNAL);
  if (pthread_sigmask(SIG_BLOCK, &set, &old) != 0) return;
  for (i = 0; i < PENDING_MAX &&
	      sigtimedwait(&set, &info[n], &now) == PROFILE_SIGNAL; i++) {
    uintptr_t value = (uintptr_t)info[n].si_value.sival_ptr;
    if (!(info[n].si_code == SI_TIMER &&
	  (value & VALUE_TAG_MASK) == VALUE_TAG &&
	  slots[value & VALUE_SLOT_MASK].value != value))
      n++;
  }
  for (i = 0; i < n; i++)
    syscall(SYS_rt_tgsigqueueinfo, getpid(), lj_profile_timer_tid(),
	    PROFILE_SIGNAL, &info[i]);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void timer_stop(ProfileTimer *t)
{
  int err = errno;
  if (t->pid != getpid()) return;
  pthread_mutex_lock(&timer_lock);
  if (t->armed) timer_delete(t->id);
  __atomic_store_n(&slots[t->slot].value, 0, __ATOMIC_SEQ_CST);
  drain();
  if (--nrunning == 0) {
    handler_restore();
    jitp_running = 0;
  }
  pthread_mutex_unlock(&timer_lock);
  errno = err;
}

ProfileTimerStatus lj_profile_timer_claim(ProfileTimer *t)
{
  return timer_claim(t, 0);
}

ProfileTimerStatus lj_profile_timer_arm(ProfileTimer *t)
{
  struct sigevent ev;
  struct itimerspec its;
  uint64_t first;
  memset(&ev, 0, sizeof(ev));
  ev.sigev_notify = SIGEV_THREAD_ID;
  ev.sigev_signo = PROFILE_SIGNAL;
  ev.sigev_value.sival_ptr = (void *)slots[t->slot].value;
  ev.sigev_notify_thread_id = lj_profile_timer_tid();
  if (timer_create(t->clock == LUAM_SYSPROF_CLOCK_WALL ? CLOCK_MONOTONIC :
		   CLOCK_THREAD_CPUTIME_ID, &ev, &t->id) != 0)
    return PROFILE_TIMER_ERROR;
  first = random_phase(t->interval_ns);
  its.it_value.tv_sec = (time_t)(first / 1000000000u);
  its.it_value.tv_nsec = (long)(first % 1000000000u);
  its.it_interval.tv_sec = (time_t)(t->interval_ns / 1000000000u);
  its.it_interval.tv_nsec = (long)(t->interval_ns % 1000000000u);
  if (timer_settime(t->id, 0, &its, NULL) != 0) {
    int err = errno;
    timer_delete(t->id);
    errno = err;
    return PROFILE_TIMER_ERROR;
  }
  t->armed = 1;
  return PROFILE_TIMER_OK;
}

void lj_profile_timer_stop(ProfileTimer *t)
{
  timer_stop(t);
}

/* -- jit.profile ------------------------------------------------------------- */

static ProfileTimer jitp_timer;

static void jitp_tick(void *owner, int overrun, ucontext_t *uc)
{
  void (*handler)(int);
  UNUSED(overrun);
  UNUSED(uc);
  memcpy(&handler, &owner, sizeof(handler));
  handler(PROFILE_SIGNAL);
}

int lj_profile_timer_jitp_start(void (*handler)(int), int interval)
{
  ProfileTimer *t = &jitp_timer;
  if (jitp_running && t->pid == getpid()) return 0;
  t->tick = jitp_tick;
  memcpy(&t->owner, &handler, sizeof(handler));
  t->clock = LUAM_SYSPROF_CLOCK_CPU;
  t->interval_ns = (uint64_t)interval * 1000000u;
  if (timer_claim(t, 1) != PROFILE_TIMER_OK) return 0;
  if (lj_profile_timer_arm(t) == PROFILE_TIMER_OK) return 1;
  timer_stop(t);
  return 0;
}

void lj_profile_timer_jitp_stop(void)
{
  timer_stop(&jitp_timer);
}
