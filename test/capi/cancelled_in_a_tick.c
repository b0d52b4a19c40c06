/* TIMEOUT: 600
** Threads are cancelled while the clocks tick on them, and events are counted. None ends within
** a tick: the profile would wait for that tick without end.
*/

#include <pthread.h>
#include <sys/mman.h>

#include "cpu_work.h"

#define ROUNDS   12
#define THREADS  6
#define DEADLINE 400 /* Seconds. */
#define PAGE     4096

static int running;

/* Computes, and faults pages in. It can be cancelled at one point only. */
static void *work_on(void *arg)
{
  char *page = (char *)mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
  volatile int sum = 0;
  REQUIRE(page != MAP_FAILED);
  __atomic_add_fetch(&running, 1, __ATOMIC_SEQ_CST);
  for (;;) {
    int i;
    for (i = 0; i < 2000; i++) sum = sum + i;
    page[0] = 1;
    madvise(page, PAGE, MADV_DONTNEED);
    pthread_testcancel();
  }
  return arg;
}

int main(void)
{
  static Sink sink;
  lua_State *L = session_vm();
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH,
						    256 * 1024);
  int i, k;
  alarm(DEADLINE);
  opt.clocks = "cpu,page-faults/period=1/,context-switches/period=2/";
  opt.interval_ns = 100000;
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  opt.flush = LUAM_SYSPROF_FLUSH_THREAD;
  for (i = 0; i < ROUNDS; i++) {
    pthread_t thread[THREADS];
    sink.len = 0;
    __atomic_store_n(&running, 0, __ATOMIC_SEQ_CST);
    for (k = 0; k < THREADS; k++)
      REQUIRE(pthread_create(&thread[k], NULL, work_on, NULL) == 0);
    while (__atomic_load_n(&running, __ATOMIC_SEQ_CST) < THREADS) cpu_sleep_us(1000);
    if (luaM_sysprof_start(L, &opt) != PROFILE_SUCCESS) {
      printf("SKIPPED: no events here: %s\n", luaM_sysprof_error());
      return 77;
    }
    cpu_sleep_us(100000);
    for (k = 0; k < THREADS; k++) CHECK_EQ(pthread_cancel(thread[k]), 0);
    for (k = 0; k < THREADS; k++) {
      void *result;
      REQUIRE(pthread_join(thread[k], &result) == 0);
      CHECK(result == PTHREAD_CANCELED);
    }
    session_work(L);
    CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  }
  sink_free(&sink);
  lua_close(L);
  return check_status();
}
