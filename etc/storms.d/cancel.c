/*
** Storm of etc/storms: threads are cancelled in blocking calls, in computations, and so in
** our handler, while all are sampled.
*/

#include "storm.h"

#include <poll.h>
#include <semaphore.h>

#define CANCELLERS 2
#define VICTIMS    8 /* Of each canceller. */

static int pipe_ends[2];
static sem_t never;
static _Atomic uint64_t cancelled, cleaned;

static void on_cleanup(void *arg)
{
  (void)arg;
  cleaned++;
}

__attribute__((noinline)) static uint64_t compute(uint64_t n)
{
  volatile uint64_t x = n;
  int i;
  for (i = 0; i < 1000; i++) x = x * 3 + 1;
  return x;
}

/* The C library before 2.41 makes blocking calls asynchronously cancellable. */
static void block(int kind)
{
  static const struct timespec ms = { 0, 1000000 };
  char c;
  switch (kind) {
  case 0: (void)!read(pipe_ends[0], &c, 1); break;
  case 1: pause(); break;
  case 2: poll(NULL, 0, -1); break;
  case 3: sem_wait(&never); break;
  case 4: clock_nanosleep(CLOCK_MONOTONIC, 0, &ms, NULL); break;
  case 5:
    compute(1);
    pthread_testcancel();
    break;
  default: compute(2); break;
  }
}

static void *victim(void *arg)
{
  int kind = (int)(uintptr_t)arg;
  pthread_cleanup_push(on_cleanup, NULL);
  if (kind >= 6) pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  for (;;) block(kind);
  pthread_cleanup_pop(1);
  return NULL;
}

static void *canceller(void *arg)
{
  StormActor *self = (StormActor *)arg;
  uint32_t x = (uint32_t)(uintptr_t)arg | 1;
  while (!storm_over) {
    pthread_t t[VICTIMS];
    int i;
    for (i = 0; i < VICTIMS; i++) t[i] = storm_thread(victim, (void *)(uintptr_t)i, 0);
    storm_nap(storm_random(&x) % 120 * 1e-3); /* The helper finds threads after 50 ms. */
    for (i = 0; i < VICTIMS; i++) {
      REQUIRE(pthread_cancel(t[i]) == 0);
      storm_nap(storm_random(&x) % 300 * 1e-6);
    }
    for (i = 0; i < VICTIMS; i++) {
      void *result;
      REQUIRE(pthread_join(t[i], &result) == 0);
      REQUIRE(result == PTHREAD_CANCELED);
      cancelled++;
    }
    self->count++;
  }
  return NULL;
}

int main(int argc, char **argv)
{
  static const char *const options[] = {
    "threads = 'all', clock = 'wall-signal', path = 'cancel.bin'",
    "threads = 'all', clock = 'task-clock', path = 'cancel.bin'",
    "threads = 'all', clock = 'wall', path = 'cancel.bin'",
  };
  lua_State *L = storm_open(argc, argv);
  pthread_t t[CANCELLERS];
  int i;
  REQUIRE(pipe(pipe_ends) == 0 && sem_init(&never, 0, 0) == 0);
  for (i = 0; i < CANCELLERS; i++)
    t[i] = storm_thread(canceller, storm_actor("a canceller"), 0);
  storm_run(L, options, 3);
  for (i = 0; i < CANCELLERS; i++) REQUIRE(pthread_join(t[i], NULL) == 0);
  CHECK_EQ(cleaned, cancelled);
  lua_close(L);
  return storm_close("%llu threads cancelled", (unsigned long long)cancelled);
}
