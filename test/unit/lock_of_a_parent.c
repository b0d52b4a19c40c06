/* A lock of ours excludes other threads, is recursive, and is free in a child whose parent's thread
** holds it: in a child of fork() and in one of a bare clone(2), also if other threads wait.
** BASE: none, its modules know no VM
*/

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "profile/base/lj_oslock.h"

#define THREADS 4
#define ROUNDS  4000
#define SECONDS 20 /* For a child to end; it needs none. */

static OsLock lock;
static long counted, refused;
static int gate[2], held[2];

static void *count(void *arg)
{
  int i;
  (void)arg;
  for (i = 0; i < ROUNDS; i++) {
    int first = lj_oslock_take(&lock), second = lj_oslock_try(&lock);
    long n = counted;
    if (i % 64 == 0) sched_yield();
    counted = n + 1;
    if (first != 1 || second != 2) abort();
    if (lj_oslock_drop(&lock) != 1 || lj_oslock_drop(&lock) != 0) abort();
    if (lj_oslock_try(&lock)) {
      counted++;
      lj_oslock_drop(&lock);
    } else {
      __atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
    }
  }
  return NULL;
}

static void excludes(void)
{
  pthread_t t[THREADS];
  int i;
  for (i = 0; i < THREADS; i++) REQUIRE(pthread_create(&t[i], NULL, count, NULL) == 0);
  for (i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
  CHECK_EQ(counted + refused, 2L * THREADS * ROUNDS);
}

/* Hold the lock until the gate closes. */
static void *hold(void *arg)
{
  char byte = 0;
  (void)arg;
  lj_oslock_take(&lock);
  REQUIRE(write(held[1], &byte, 1) == 1);
  while (read(gate[0], &byte, 1) != 0) {}
  lj_oslock_drop(&lock);
  return NULL;
}

static void *wait_for(void *arg)
{
  lj_oslock_take(&lock);
  lj_oslock_drop(&lock);
  return arg;
}

/* In a child. alarm() ends one that waits. */
static void child(void)
{
  pthread_t other;
  alarm(SECONDS);
  if (lj_oslock_drop(&lock) != 0) _exit(2); /* Not its own. */
  if (lj_oslock_try(&lock) != 1) _exit(3);
  if (lj_oslock_take(&lock) != 2 || lj_oslock_drop(&lock) != 1) _exit(4);
  if (lj_oslock_drop(&lock) != 0) _exit(5);
  if (pthread_create(&other, NULL, wait_for, NULL) == 0) pthread_join(other, NULL);
  if (lj_oslock_take(&lock) != 1) _exit(6);
  _exit(0);
}

static pid_t bare_clone(void)
{
  return (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
}

static void is_free_in(pid_t (*make)(void))
{
  int status;
  pid_t pid = make();
  REQUIRE(pid >= 0);
  if (pid == 0) child();
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK_EQ(status, 0);
}

int main(void)
{
  pthread_t holder, waiter;
  char byte;
  excludes();
  REQUIRE(pipe(gate) == 0 && pipe(held) == 0);
  REQUIRE(pthread_create(&holder, NULL, hold, NULL) == 0);
  REQUIRE(read(held[0], &byte, 1) == 1);
  CHECK_EQ(lj_oslock_try(&lock), 0);
  is_free_in(fork);
  is_free_in(bare_clone);
  REQUIRE(pthread_create(&waiter, NULL, wait_for, NULL) == 0);
  while (!(__atomic_load_n(&lock.word, __ATOMIC_RELAXED) >> 31 & 1)) sched_yield();
  is_free_in(fork);
  is_free_in(bare_clone);
  CHECK_EQ(lj_oslock_try(&lock), 0);
  close(gate[1]);
  pthread_join(holder, NULL);
  pthread_join(waiter, NULL);
  CHECK_EQ(lj_oslock_try(&lock), 1);
  return check_status();
}
