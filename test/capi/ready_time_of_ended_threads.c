/* TIMEOUT: 300
** Threads wake up beside busy ones, and end. With them, the kernel forgets how long they were ready since it was last asked.
** The profile estimates that, and a sentence tells how much it is. The test compares with the kernel's figures (schedstat).
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <math.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "wait_checks.h"

#define NAPPERS  20
#define BURNERS  6
#define LIVED_NS 900e6
#define SLACK_NS (0.02 * LIVED_NS)
#define VAGUE    "the time that a thread was runnable is exact to "

static _Atomic int over;
static pthread_barrier_t named, begun;
static double delay[NAPPERS];

static double delay_ns(void)
{
  return schedstat_of((int)syscall(SYS_gettid)).delay_ns;
}

static void *napper_of(void *arg)
{
  size_t i = *(size_t *)arg;
  char name[16];
  double from, before;
  snprintf(name, sizeof(name), "napper-%zu-", i);
  prctl(PR_SET_NAME, name);
  pthread_barrier_wait(&named);
  pthread_barrier_wait(&begun);
  before = delay_ns();
  from = real_ns();
  while (real_ns() - from < LIVED_NS) usleep(300);
  delay[i] = delay_ns() - before;
  return NULL;
}

static void *burner_of(void *arg)
{
  while (!over) cpu_burn(1000);
  return arg;
}

int main(void)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  pthread_t napper[NAPPERS], burner[BURNERS];
  size_t number[NAPPERS], i;
  double vague;
  char *text;
  int has_records;
  opt.clocks = "offcpu";
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  REQUIRE(pthread_barrier_init(&named, NULL, NAPPERS + 1) == 0);
  REQUIRE(pthread_barrier_init(&begun, NULL, NAPPERS + 1) == 0);
  for (i = 0; i < NAPPERS; i++) {
    number[i] = i;
    napper[i] = cpu_thread(napper_of, &number[i]);
  }
  pthread_barrier_wait(&named);
  REQUIRE(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
  for (i = 0; i < BURNERS; i++) burner[i] = cpu_thread(burner_of, NULL);
  pthread_barrier_wait(&begun);
  for (i = 0; i < NAPPERS; i++) pthread_join(napper[i], NULL);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  over = 1;
  for (i = 0; i < BURNERS; i++) pthread_join(burner[i], NULL);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "--format=top", &text), 0);
  has_records = strstr(text, "switch-records") != NULL;
  free(text);
  vague = said_ns(&sink, VAGUE);
  printf("runnable times are exact to %.1f ms\n", vague / 1e6);
  for (i = 0; has_records && i < NAPPERS; i++) {
    char option[64];
    double ready, lost;
    snprintf(option, sizeof(option), "--format=folded --thread=napper-%zu-", i);
    CHECK_EQ(session_parse(sink.bytes, sink.len, option, &text), 0);
    ready = folded_sum(text, "[runnable]", "");
    lost = folded_sum(text, "[waits lost]", "");
    printf("napper %2zu: %6.1f of %6.1f ms runnable, %.1f lost\n", i, ready / 1e6,
	   delay[i] / 1e6, lost / 1e6);
    if (ready > delay[i] + vague + SLACK_NS || ready + lost < delay[i] - vague - SLACK_NS)
      CHECK(!"the runnable time is not the kernel's, and nothing tells it");
    free(text);
  }
  sink_free(&sink);
  lua_close(L);
  return check_status();
}
