/*
** Lock that a child process finds free, however the program made the child.
** Context: any thread, not the handler.
**
** The word: id of the process in the upper half, see lj_osprocess.h; in the lower half whether a thread
** holds the lock, and whether others wait. futex(2) compares the lower half.
*/

#define lj_oslock_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For syscall. */
#endif
#include <errno.h>
#include <sched.h>
#include <unistd.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "profile/base/lj_oslock.h"
#include "profile/base/lj_osprocess.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_relaxed.h"

#define HELD   1u
#define WAITED 0x80000000u /* Threads wait. */

#define WAIT_NS \
  100000000 /* One wait: a filter of the holder's thread may refuse to wake. */

#define word_process(word) ((uint32_t)((word) >> 32))
#define word_state(word)   ((uint32_t)(word))

/* The processor is little-endian, so the lower half comes first. */
#define word_futex(lock) ((uint32_t *)(void *)&(lock)->word)

static uint64_t word_make(uint32_t state)
{
  return ((uint64_t)lj_osprocess_id() << 32) | state;
}

static int word_isfree(uint64_t word)
{
  return word_state(word) == 0 || word_process(word) != lj_osprocess_id();
}

/* Only the thread itself makes itself the owner, so another one never finds itself there. */
static int word_isown(OsLock *lock, uint64_t word)
{
  return !word_isfree(word) && relaxed_get(&lock->owner) == osthread_pointer();
}

/* Take the lock if it still has this word. Otherwise loads the word that it has. */
static int word_take(OsLock *lock, uint64_t *word, uint32_t waited)
{
  uint64_t mine = word_make(HELD | waited);
  if (!__atomic_compare_exchange_n(&lock->word, word, mine, 0, __ATOMIC_ACQUIRE,
				   __ATOMIC_RELAXED))
    return 0;
  relaxed_set(&lock->owner, osthread_pointer());
  lock->depth = 1;
  return 1;
}

/* Sleep until the lock changes, or for a time. Marks it first, so that its holder wakes a thread. Without
** futex(2), other threads run first.
*/
static void word_wait(OsLock *lock, uint64_t word)
{
  static const struct timespec most = { 0, WAIT_NS };
  if (!(word_state(word) & WAITED) &&
      !__atomic_compare_exchange_n(&lock->word, &word, word | WAITED, 0, __ATOMIC_RELAXED,
				   __ATOMIC_RELAXED))
    return;
  if (syscall(SYS_futex, word_futex(lock), FUTEX_WAIT_PRIVATE, word_state(word) | WAITED,
	      &most, NULL, 0) != 0 &&
      errno != EAGAIN && errno != EINTR && errno != ETIMEDOUT)
    sched_yield();
}

/* Who has waited leaves the mark: other threads may wait, too. */
int lj_oslock_take(OsLock *lock)
{
  uint64_t word = __atomic_load_n(&lock->word, __ATOMIC_RELAXED);
  uint32_t waited = 0;
  if (word_isown(lock, word)) return ++lock->depth;
  for (;;) {
    if (word_isfree(word)) {
      if (word_take(lock, &word, waited)) return 1;
      continue;
    }
    word_wait(lock, word);
    waited = WAITED;
    word = __atomic_load_n(&lock->word, __ATOMIC_RELAXED);
  }
}

int lj_oslock_try(OsLock *lock)
{
  uint64_t word = __atomic_load_n(&lock->word, __ATOMIC_RELAXED);
  if (word_isown(lock, word)) return ++lock->depth;
  while (word_isfree(word))
    if (word_take(lock, &word, 0)) return 1;
  return 0;
}

int lj_oslock_drop(OsLock *lock)
{
  uint64_t word = __atomic_load_n(&lock->word, __ATOMIC_RELAXED);
  if (!word_isown(lock, word)) return 0;
  if (--lock->depth > 0) return lock->depth;
  relaxed_set(&lock->owner, 0);
  word = __atomic_exchange_n(&lock->word, word_make(0), __ATOMIC_RELEASE);
  if (word_state(word) & WAITED)
    syscall(SYS_futex, word_futex(lock), FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  return 0;
}
