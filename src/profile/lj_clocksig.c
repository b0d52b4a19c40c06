/*
** Signals of the clocks: table of slots, handler, installation.
*/

#define lj_clocksig_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "profile/lj_clock_kinds.h"
#include "profile/lj_clocksig.h"

/* The value of a slot: a tag, a generation that changes with every claim, and
** the slot. Without the tag no signal belongs to it.
*/
#define VALUE_TAG		((uintptr_t)0x5350 << 48)
#define VALUE_TAG_MASK		((uintptr_t)0xffff << 48)
#define VALUE_SLOT_MASK		((uintptr_t)(CLOCKS_MAX-1))
#define VALUE_GENERATION	((uintptr_t)CLOCKS_MAX)
#define VALUE_FREE		((uintptr_t)0)
#define VALUE_RETIRED		((uintptr_t)1)	/* Not to be claimed yet. */

#define SIGNALS_MAX	64	/* Signals of Linux, 1 to 64. */
#define FOREIGN_MAX	16	/* Pending signals kept while ours are taken. */
#define RETRY_NS	20000	/* Between two looks at another thread's tick. */

/* Shared with the handler. A slot's value is set last by the claim. */
static struct {
  volatile uintptr_t value;
  volatile int users;		/* Handlers that use the slot. */
  Clock *clock;
} slots[CLOCKS_MAX];

static struct {
  struct sigaction oldsa;	/* The program's handler. Set before ours is. */
  int users;			/* Clocks. Under the lock, as all below. */
  int closed_elsewhere;		/* One was closed by another thread than its. */
} signals[SIGNALS_MAX+1];
static volatile uint64_t inuse;	/* Signals with clocks. */
static uintptr_t generation;	/* Of the last claim. */
static int slot_next;		/* Where to look for a free one. */

uintptr_t lj_clocksig_value(const Clock *c)
{
  return slots[c->slot].value;
}

uint64_t lj_clocksig_inuse(void)
{
  return inuse;
}

/* -- Handler ----------------------------------------------------------------- */

/* A signal that is not ours goes where it would have gone without us; only a
** default action, which would end the program, is left out.
*/
static void pass_on(int signo, siginfo_t *info, void *uc)
{
  const struct sigaction *old = &signals[signo].oldsa;
  if (old->sa_flags & SA_SIGINFO)
    old->sa_sigaction(signo, info, uc);
  else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN)
    old->sa_handler(signo);
}

/* The value that a signal carries, 0 if it is none of ours. */
static uintptr_t value_of(const siginfo_t *info)
{
  uintptr_t value = (uintptr_t)info->si_value.sival_ptr;
  if (info->si_code == SI_TIMER && (value & VALUE_TAG_MASK) == VALUE_TAG)
    return value;
  return 0;
}

static void clock_signal(int signo, siginfo_t *info, void *uc)
{
  int saved_errno = errno;
  uintptr_t value = value_of(info);
  if (value) {
    uintptr_t slot = value & VALUE_SLOT_MASK;
    __atomic_add_fetch(&slots[slot].users, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&slots[slot].value, __ATOMIC_SEQ_CST) == value)
      lj_clock_tick(slots[slot].clock, info, (ucontext_t *)uc);
    __atomic_sub_fetch(&slots[slot].users, 1, __ATOMIC_SEQ_CST);
  } else {
    pass_on(signo, info, uc);
  }
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
  memset(&sa, 0, sizeof(sa));
  sa.sa_sigaction = clock_signal;
  sa.sa_flags = SA_SIGINFO|SA_RESTART|SA_ONSTACK;
  sigemptyset(&sa.sa_mask);
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
  return signals[signo].users > 0 && sigaction(signo, NULL, &now) == 0 &&
	 !is_ours(&now);
}

/* -- Signals that are pending at the end ------------------------------------- */

/* Take signals of clocks that are gone which are pending for this thread: the
** program's handler must not get them. Others are queued again as they were.
*/
static void drain(int signo)
{
  static const struct timespec now = { 0, 0 };
  siginfo_t info[FOREIGN_MAX];
  sigset_t set, old;
  int i, n = 0;
  if (sigpending(&set) != 0 || !sigismember(&set, signo)) return;
  sigemptyset(&set);
  sigaddset(&set, signo);
  if (pthread_sigmask(SIG_BLOCK, &set, &old) != 0) return;
  while (n < FOREIGN_MAX && sigtimedwait(&set, &info[n], &now) == signo) {
    uintptr_t value = value_of(&info[n]);
    if (!value || slots[value & VALUE_SLOT_MASK].value == value) n++;
  }
  for (i = 0; i < n; i++)
    syscall(SYS_rt_tgsigqueueinfo, getpid(), lj_clock_tid(), signo, &info[i]);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Has a thread of this process the signal pending? tid is its folder's name. */
static int pending_for(const char *tid, int signo)
{
  char path[64], text[2048], *at;
  ssize_t n;
  int fd;
  snprintf(path, sizeof(path), "/proc/self/task/%.20s/status", tid);
  fd = open(path, O_RDONLY|O_CLOEXEC);
  if (fd < 0) return errno != ENOENT;
  n = read(fd, text, sizeof(text)-1);
  close(fd);
  if (n < 0) return errno != ESRCH;
  text[n] = '\0';
  at = strstr(text, "\nSigPnd:");
  return !at || ((strtoull(at + 8, NULL, 16) >> (signo-1)) & 1);
}

/* A signal that is pending for another thread cannot be taken here, and the
** program's handler must not get it: is there none? If in doubt, there is one.
*/
static int pending_anywhere(int signo)
{
  DIR *dir = opendir("/proc/self/task");
  struct dirent *e;
  int found = 0;
  if (!dir) return 1;
  while (!found && (e = readdir(dir)) != NULL)
    if (e->d_name[0] != '.') found = pending_for(e->d_name, signo);
  closedir(dir);
  return found;
}

/* -- Slots ------------------------------------------------------------------- */

ClockStatus lj_clocksig_claim(Clock *c)
{
  uintptr_t value;
  int i, slot;
  for (i = 0; i < CLOCKS_MAX; i++) {
    slot = (slot_next + i) & (CLOCKS_MAX-1);
    if (slots[slot].value == VALUE_FREE) break;
  }
  if (i == CLOCKS_MAX) return CLOCK_BUSY;
  if (signals[c->signo].users == 0 && handler_install(c->signo) != 0)
    return CLOCK_ERROR;
  signals[c->signo].users++;
  inuse |= U64x(00000000,00000001) << (c->signo-1);
  slot_next = slot + 1;
  generation += VALUE_GENERATION;
  value = VALUE_TAG | (generation & ~VALUE_TAG_MASK) | (uintptr_t)slot;
  c->slot = slot;
  slots[slot].clock = c;
  __atomic_store_n(&slots[slot].value, value, __ATOMIC_SEQ_CST);
  return CLOCK_OK;
}

/* Ticks run on the clock's thread. On this one a tick can only be below us: if
** it is what calls here, it cannot be waited for. One on a thread that was
** cancelled in it will never end.
*/
void lj_clocksig_retire(Clock *c)
{
  static const struct timespec retry = { 0, RETRY_NS };
  __atomic_store_n(&slots[c->slot].value, VALUE_RETIRED, __ATOMIC_SEQ_CST);
  if (c->tid == lj_clock_tid()) return;
  while (__atomic_load_n(&slots[c->slot].users, __ATOMIC_SEQ_CST) > 0 &&
	 syscall(SYS_tgkill, getpid(), c->tid, 0) == 0)
    nanosleep(&retry, NULL);
}

void lj_clocksig_release(Clock *c)
{
  int signo = c->signo;
  if (c->tid == lj_clock_tid()) drain(signo);
  else signals[signo].closed_elsewhere = 1;
  /* The slot stays retired if a tick will never end. */
  if (slots[c->slot].users == 0 || c->tid == lj_clock_tid())
    slots[c->slot].value = VALUE_FREE;
  if (--signals[signo].users > 0) return;
  inuse &= ~(U64x(00000000,00000001) << (signo-1));
  if (!signals[signo].closed_elsewhere || !pending_anywhere(signo))
    handler_restore(signo);
}

void lj_clocksig_forget(void)
{
  int i;
  for (i = 0; i < CLOCKS_MAX; i++) {
    slots[i].value = VALUE_FREE;
    slots[i].users = 0;
  }
  for (i = 1; i <= SIGNALS_MAX; i++) {
    if (signals[i].users > 0) handler_restore(i);
    signals[i].users = 0;
  }
  inuse = 0;
}
