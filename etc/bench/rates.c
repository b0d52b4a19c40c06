/*
** Busy threads of etc/bench/rates: each does the same work and ends.
*/

#include <pthread.h>
#include <stdint.h>

#define THREADS_MAX 16

static pthread_t thread[THREADS_MAX];
static volatile uint64_t sink;

static void *busy(void *arg)
{
  uint64_t x = 1, i, n = (uint64_t)(uintptr_t)arg;
  for (i = 0; i < n; i++) x = x * 6364136223846793005u + 1442695040888963407u;
  sink += x;
  return NULL;
}

/* Returns 0 or an errno. */
int busy_begin(int n, double loops)
{
  int i, err = 0;
  for (i = 0; i < n && !err; i++)
    err = pthread_create(&thread[i], NULL, busy, (void *)(uintptr_t)(uint64_t)loops);
  return err;
}

void busy_end(int n)
{
  int i;
  for (i = 0; i < n; i++) pthread_join(thread[i], NULL);
}
