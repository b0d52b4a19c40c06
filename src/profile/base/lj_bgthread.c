/*
** Background thread: sleep, wake-up, start and end.
** Context: the thread itself | wake: any thread and handler | the rest: under the lock.
*/

#define lj_bgthread_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For pthread_setname_np. */
#endif
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_osstack.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_seccomp.h"
#include "profile/base/lj_bgthread.h"

/* Stack of the thread: the deepest work of ours takes 60 KB. A writer of the C API runs on it, and
** functions of atexit(), with what programs expect of a thread.
*/
#define STACK_OURS     (128 * 1024)
#define STACK_PROGRAMS (384 * 1024)

#define LOOK_NS  ((uint64_t)BGTHREAD_LOOK_MS * 1000000)
#define ALONE_NS 1000000000 /* Between two looks for other threads. */

static struct {
  int runs;
  pthread_t thread;
  const BgWork *work;
  uint32_t begun;
  uint32_t word; /* 1: another thread has woken this one. */
  int end;       /* 1: the thread must end. */
  /* CPU time. */
  int tid;
  uint64_t ended_ns;           /* Of threads that have ended. */
  uint64_t shared_ns;          /* This much is shared out. */
  uint64_t share_ns, profiles; /* See lj_bgthread_share. */
} bgthread;

/* Sleep at most ns while a word is 0, see futex(2). The C library's functions end a program whose seccomp
** filter refuses futex(2).
*/
static void word_wait(uint32_t *word, uint64_t ns)
{
  struct timespec ts;
  ts.tv_sec = (time_t)(ns / 1000000000);
  ts.tv_nsec = (long)(ns % 1000000000);
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0);
}

/* Set a word to 1. Makes the system call only if a thread may be asleep. */
static void word_wake(uint32_t *word)
{
  if (__atomic_exchange_n(word, 1, __ATOMIC_RELEASE) == 0)
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void lj_bgthread_wake(void)
{
  word_wake(&bgthread.word);
}

/* Have all threads of the program ended? Then this thread must end, too. Otherwise the process would
** stay, and take no signal.
*/
static int is_alone(uint64_t now)
{
  static uint64_t due;
  if (now < due) return 0;
  if (lj_osthread_isalone()) return 1;
  due = mono_ns() + ALONE_NS;
  return 0;
}

/* End the process with the status of its first thread, if that one has called exit(2) or a signal has
** ended it. After pthread_exit() it has the status 0. Then this returns, and the C library calls
** exit(0).
*/
static void end_as_program(void)
{
  int status = lj_osthread_firststatus(), signo = status & 0x7f;
  sigset_t set;
  if (signo) {
    signal(signo, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, signo);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(signo);
  }
  if (status) _exit(signo ? 128 + signo : status >> 8 & 0xff);
}

static void *bgthread_main(void *arg)
{
  uint64_t due = mono_ns() + LOOK_NS, soon = due;
  UNUSED(arg);
  bgthread.tid = lj_osthread_self();
  lj_osthread_hide(bgthread.tid);
  pthread_setname_np(pthread_self(), "sysprof");
  word_wake(&bgthread.begun);
  for (;;) {
    uint64_t now = mono_ns(), first = soon < due ? soon : due, ns;
    int rested = bgthread.work->rest(), woken, look;
    if (!rested && now < first) word_wait(&bgthread.word, first - now);
    woken = __atomic_exchange_n(&bgthread.word, 0, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&bgthread.end, __ATOMIC_ACQUIRE)) break;
    now = mono_ns();
    if (now < first && !rested && !woken) continue;
    look = rested || now >= due;
    if (look && is_alone(now)) {
      bgthread.work->alone();
      end_as_program();
      break;
    }
    ns = bgthread.work->work(look);
    if (look) due = now + LOOK_NS;
    soon = ns < LOOK_NS ? mono_ns() + ns : due;
  }
  bgthread.ended_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID);
  return NULL;
}

/* Where a seccomp filter refuses futex(2), the C library ends the program that waits for a thread. Returns
** 0 or an errno.
*/
static int futex_problem(void)
{
  return syscall(SYS_futex, &bgthread.word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) < 0
	   ? errno
	   : 0;
}

/* Wait for the thread's end, also without futex(2): the program installed the filter later. */
static void thread_join(void)
{
  static const struct timespec nap = { 0, 1000000 };
  if (!futex_problem()) pthread_join(bgthread.thread, NULL);
  else
    while (pthread_tryjoin_np(bgthread.thread, NULL) == EBUSY) nanosleep(&nap, NULL);
}

int lj_bgthread_begin(const BgWork *work)
{
  sigset_t all, old;
  int err;
  if (bgthread.runs) {
    work->rouse();
    return 0;
  }
  if ((err = futex_problem()) != 0) return err;
  bgthread.work = work;
  __atomic_store_n(&bgthread.word, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&bgthread.end, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&bgthread.begun, 0, __ATOMIC_RELAXED);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  err = lj_osthread_create(&bgthread.thread, STACK_OURS + STACK_PROGRAMS, bgthread_main);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (err) return err;
  while (!__atomic_load_n(&bgthread.begun, __ATOMIC_ACQUIRE))
    word_wait(&bgthread.begun, LOOK_NS);
  lj_osstack_learn(bgthread.thread);
  bgthread.runs = 1;
  return 0;
}

void lj_bgthread_end(void)
{
  if (!bgthread.runs) return;
  __atomic_store_n(&bgthread.end, 1, __ATOMIC_RELEASE);
  lj_bgthread_wake();
  bgthread.work->rouse();
  thread_join();
  lj_osthread_hide(0);
  bgthread.runs = 0;
}

const char *lj_bgthread_why(int err, char *text, size_t size)
{
  snprintf(
    text, size, "the background thread of the profiler did not start: %s%s", strerror(err),
    lj_seccomp_isrefusal(err) ? " (a seccomp filter may refuse clone3, futex or mprotect)"
			      : "");
  return text;
}

uint64_t lj_bgthread_ns(void)
{
  return bgthread.ended_ns + (bgthread.runs ? thread_ns(bgthread.tid) : 0);
}

uint64_t lj_bgthread_share(int more)
{
  uint64_t ns = lj_bgthread_ns();
  if (bgthread.profiles) bgthread.share_ns += (ns - bgthread.shared_ns) / bgthread.profiles;
  bgthread.shared_ns = ns;
  bgthread.profiles += (uint64_t)(int64_t)more;
  return bgthread.share_ns;
}

void lj_bgthread_forget(void)
{
  lj_osthread_hide(0);
  bgthread.runs = 0;
  bgthread.ended_ns = bgthread.shared_ns = bgthread.profiles = 0;
}
