/* The tables of a VM have one user at a time. If it ends in its handler, the next one takes
** the tables over. A new user's walk reuses no steps of the last
** one's, and batches of all sessions have different numbers.
*/

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "profile/base/lj_osthread.h"
#include "profile/vm/lj_vmtables.h"
#include "check.h"

#define THREADS 8
#define CLAIMS  200000

static VmTables *vt;
static volatile int started;
static uint32_t sum; /* Changed by the user only. */
static uint32_t claimed;

static void *claim_often(void *arg)
{
  int tid = lj_osthread_self(), i;
  (void)arg;
  __atomic_add_fetch(&started, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&started, __ATOMIC_SEQ_CST) < THREADS)
    ;
  for (i = 0; i < CLAIMS; i++)
    if (vmtables_claim(vt, tid)) {
      uint32_t before = sum;
      CHECK_EQ(vt->last, tid);
      sum = before + 1;
      vmtables_release(vt);
      __atomic_add_fetch(&claimed, 1, __ATOMIC_RELAXED);
    }
  return NULL;
}

static void test_threads(void)
{
  static pthread_t thread[THREADS];
  int i;
  for (i = 0; i < THREADS; i++)
    REQUIRE(pthread_create(&thread[i], NULL, claim_often, NULL) == 0);
  for (i = 0; i < THREADS; i++) REQUIRE(pthread_join(thread[i], NULL) == 0);
  CHECK_EQ(sum, claimed);
  CHECK(claimed > 0);
}

typedef struct Claimer {
  int tid, claimed_it;
} Claimer;

/* Claims the tables, and ends without a release. */
static void *claim_for_ever(void *arg)
{
  Claimer *c = (Claimer *)arg;
  c->tid = lj_osthread_self();
  c->claimed_it = vmtables_claim(vt, c->tid);
  return NULL;
}

static int claim_on_thread(void)
{
  pthread_t thread;
  Claimer c;
  REQUIRE(pthread_create(&thread, NULL, claim_for_ever, &c) == 0);
  REQUIRE(pthread_join(thread, NULL) == 0);
  while (lj_osthread_exists(c.tid)) sched_yield(); /* The kernel removes it after that. */
  return c.claimed_it;
}

static void test_users(void)
{
  static lua_State thread;
  int tid = lj_osthread_self();
  CHECK(vmtables_claim(vt, tid));
  CHECK(!claim_on_thread());
  CHECK(vmtables_claim(vt, tid)); /* It has jumped out of its handler. */
  vt->lua.memo.key.L = &thread;
  vmtables_release(vt);
  CHECK(vmtables_claim(vt, tid));
  CHECK(vt->lua.memo.key.L == &thread);
  vmtables_release(vt);
  CHECK(claim_on_thread());
  CHECK(vmtables_claim(vt, tid)); /* That thread has ended. */
  CHECK(vt->lua.memo.key.L == NULL);
  vmtables_release(vt);
}

static void test_batches(void)
{
  static Batch a, b;
  a.numbers = b.numbers = &vt->nbatch;
  vt->nbatch = ~(uint32_t)0 - 2;
  lj_batch_reset(&a);
  lj_batch_reset(&b);
  CHECK(a.number != b.number);
  lj_batch_reset(&a); /* No batch has the number 0. */
  CHECK_EQ(a.number, 1);
  lj_batch_reset(&b);
  CHECK_EQ(b.number, 2);
}

int main(void)
{
  vt = lj_vmtables_new(NULL, 0);
  REQUIRE(vt != NULL);
  test_users();
  test_batches();
  test_threads();
  lj_vmtables_free(vt);
  return check_status();
}
