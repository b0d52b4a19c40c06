/* TIMEOUT: 600
** The gate of a VM. A change waits for a reading handler by sleeping, so that a real-time
** thread leaves its processor. It does not wait for a reader of an ended thread, nor for
** the calling thread's own. No hook sees a removed reader.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include <sys/resource.h>

#include "check.h"
#include "lj_obj.h"
#include "profile/base/lj_osthread.h"
#include "profile/vm/lj_vmgate.h"

static VmGate gate;
static VmReader reader, own, second;
static volatile int waiter; /* Thread that waits in change_begin. */
static volatile int step;   /* What the other thread has done. */

/* Times that a thread has gone to sleep by itself, -1 if that is not known. */
static long sleeps_of(int tid)
{
  char path[64], line[256];
  long n = -1;
  FILE *f;
  snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
  f = fopen(path, "r");
  REQUIRE(f != NULL);
  while (fgets(line, sizeof(line), f)) sscanf(line, "voluntary_ctxt_switches: %ld", &n);
  fclose(f);
  return n;
}

static void wait_for_step(int n)
{
  while (__atomic_load_n(&step, __ATOMIC_SEQ_CST) < n) usleep(100);
}

/* Reads until the waiter has slept five times. One that only yields never does. */
static void *read_for_long(void *arg)
{
  long before;
  reader.tid = lj_osthread_self();
  CHECK(vmgate_read_begin(&gate, &reader));
  __atomic_store_n(&step, 1, __ATOMIC_SEQ_CST);
  while (!waiter) usleep(100);
  before = sleeps_of(waiter);
  while (sleeps_of(waiter) < before + 5) usleep(100);
  CHECK(__atomic_load_n(&step, __ATOMIC_SEQ_CST) == 1); /* It waits. */
  vmgate_read_end(&reader);
  wait_for_step(2); /* It has begun to change. */
  CHECK(!vmgate_read_begin(&gate, &reader));
  CHECK_EQ(reader.reading, 0);
  __atomic_store_n(&step, 3, __ATOMIC_SEQ_CST);
  return arg;
}

/* Ends while it reads, like a thread that is cancelled in the handler. */
static void *end_while_reading(void *arg)
{
  reader.tid = lj_osthread_self();
  CHECK(vmgate_read_begin(&gate, &reader));
  return arg;
}

static void *remove_second(void *arg)
{
  lj_vmgate_remove(&gate, &second);
  __atomic_store_n(&step, 5, __ATOMIC_SEQ_CST);
  return arg;
}

int main(void)
{
  pthread_t t;
  lj_vmgate_open(&gate, lj_osthread_self());
  own.tid = lj_osthread_self();
  lj_vmgate_add(&gate, &own);
  lj_vmgate_add(&gate, &reader);
  CHECK(!lj_vmgate_enter(&gate)); /* It does not run. */
  lj_vmgate_run(&gate);

  REQUIRE(pthread_create(&t, NULL, read_for_long, NULL) == 0);
  wait_for_step(1);
  CHECK(lj_vmgate_enter(&gate));
  waiter = lj_osthread_self();
  lj_vmgate_change_begin(&gate);
  CHECK_EQ(reader.reading, 0);
  CHECK(vmgate_read_begin(&gate, &own)); /* A handler on the VM's thread reads. */
  __atomic_store_n(&step, 2, __ATOMIC_SEQ_CST);
  wait_for_step(3);
  lj_vmgate_change_end(&gate);
  REQUIRE(pthread_join(t, NULL) == 0);

  REQUIRE(pthread_create(&t, NULL, end_while_reading, NULL) == 0);
  REQUIRE(pthread_join(t, NULL) == 0);
  CHECK_EQ(reader.reading, 1);
  lj_vmgate_change_begin(&gate); /* The test ends by its timeout if it waits. */
  CHECK_EQ(reader.reading, 0);
  CHECK_EQ(own.reading, 0); /* The program has jumped out of its handler. */
  lj_vmgate_change_end(&gate);

  /* In a hook still: who removes a reader waits until the hook has left. */
  lj_vmgate_add(&gate, &second);
  step = 4;
  REQUIRE(pthread_create(&t, NULL, remove_second, NULL) == 0);
  while (gate.first == &second) usleep(100);
  CHECK_EQ(step, 4);
  CHECK(second.next == &reader); /* A hook that is at it goes on from there. */
  lj_vmgate_leave(&gate);
  REQUIRE(pthread_join(t, NULL) == 0);
  CHECK_EQ(step, 5);

  lj_vmgate_stop(&gate);
  CHECK(!lj_vmgate_enter(&gate));
  CHECK(lj_vmgate_forget(&gate) == &reader);
  CHECK(gate.first == NULL);
  return check_status();
}
