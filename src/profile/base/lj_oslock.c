/*
** Lock that a child process finds free, however the program made the child.
** Context: any thread, not the handler.
**
** The word: id of the process in the upper half, see lj_osprocess.h; in the lower half the thread
** that holds the lock, 0 if none does, and whether others wait. futex(2) compares the lower half.
*/

#define lj_oslock_c
#define LUA_CORE

#include <unistd.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "profile/base/lj_oslock.h"
#include "profile/base/lj_osprocess.h"

#define WAITED 0x80000000u /* Threads wait. A thread's number is smaller. */

#define word_process(word) ((uint32_t)((word) >> 32))
#define word_state(word)   ((uint32_t)(word))
#define word_thread(word)  (word_state(word) & ~WAITED)

/* The processor is little-endian, so the lower half comes first. */
#define word_futex(lock) ((uint32_t *)(void *)&(lock)->word)

/* The number that lj_osthread_self() keeps is the parent's in a new child. */
static uint32_t own_thread(void)
{
  return (uint32_t)syscall(SYS_gettid);
}

static uint64_t word_make(uint32_t state)
{
  return ((uint64_t)lj_osprocess_id() << 32) | state;
}

static int word_isfree(uint64_t word)
{
  return word_state(word) == 0 || word_process(word) != lj_osprocess_id();
}

static int word_isown(uint64_t word)
{
  return !word_isfree(word) && word_thread(word) == own_thread();
}

/* Take the lock if it still has this word. Otherwise loads the word that it has. */
static int word_take(OsLock *lock, uint64_t *word, uint32_t waited)
{
  uint64_t mine = word_make(own_thread() | waited);
  if (!__atomic_compare_exchange_n(&lock->word, word, mine, 0, __ATOMIC_ACQUIRE,
				   __ATOMIC_RELAXED))
    return 0;
  lock->depth = 1;
  return 1;
}

/* Sleep until the lock changes. Marks it first, so that its holder wakes a thread. */
static void word_wait(OsLock *lock, uint64_t word)
{
  if (!(word_state(word) & WAITED) &&
      !__atomic_compare_exchange_n(&lock->word, &word, word | WAITED, 0, __ATOMIC_RELAXED,
				   __ATOMIC_RELAXED))
    return;
  syscall(SYS_futex, word_futex(lock), FUTEX_WAIT_PRIVATE, word_state(word) | WAITED, NULL,
	  NULL, 0);
}

/* Who has waited leaves the mark: other threads may wait, too. */
int lj_oslock_take(OsLock *lock)
{
  uint64_t word = __atomic_load_n(&lock->word, __ATOMIC_RELAXED);
  uint32_t waited = 0;
  if (word_isown(word)) return ++lock->depth;
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
  if (word_isown(word)) return ++lock->depth;
  while (word_isfree(word))
    if (word_take(lock, &word, 0)) return 1;
  return 0;
}

int lj_oslock_drop(OsLock *lock)
{
  uint64_t word = __atomic_load_n(&lock->word, __ATOMIC_RELAXED);
  if (!word_isown(word)) return 0;
  if (--lock->depth > 0) return lock->depth;
  word = __atomic_exchange_n(&lock->word, word_make(0), __ATOMIC_RELEASE);
  if (word_state(word) & WAITED)
    syscall(SYS_futex, word_futex(lock), FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  return 0;
}
