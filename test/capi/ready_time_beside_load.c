/* TIMEOUT: 300
** BASE: none, times that the kernel counts; the VM runs a loop, or none
** Beside busy processes, two threads wake each other in bursts: short waits and long ones in turn. Their `[runnable]` is the
** kernel's run delay, although the kernel tells only the sum of all waits.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "wait_checks.h"

#define NEIGHBOURS 3
#define SESSIONS   7
#define SECONDS    2
#define TURNS      5 /* Of a burst. */
#define PAUSE_US   8000
/* Part of real time that all sessions but the worst may be off. What one wait has too little, others make up for. */
#define BOUND 0.01

static int pipes[2][2], tids[2];
static pthread_barrier_t named;

static void *thread_of(void *arg)
{
  int i = *(int *)arg, n;
  char name[16], byte = 0;
  snprintf(name, sizeof(name), "thread-%d-", i);
  prctl(PR_SET_NAME, name);
  tids[i] = (int)syscall(SYS_gettid);
  pthread_barrier_wait(&named);
  for (n = 0;; n++) {
    if (i == 0 && n % TURNS == 0) usleep(PAUSE_US);
    if (i == 0 && write(pipes[1][1], &byte, 1) != 1) return NULL;
    if (read(pipes[i][0], &byte, 1) != 1) return NULL;
    if (i == 1 && write(pipes[0][1], &byte, 1) != 1) return NULL;
  }
}

/* Returns by how much of real time the run delay of a thread is outside of its bounds in a profile. */
static double error_of(int i, const Sink *sink, double least, double most)
{
  char option[64], *text;
  double ready;
  snprintf(option, sizeof(option), "--format=folded --thread=thread-%d-", i);
  CHECK_EQ(session_parse(sink->bytes, sink->len, option, &text), 0);
  ready = folded_sum(text, "[runnable]", "");
  free(text);
  printf("thread %d: %.1f ms runnable, %.1f to %.1f by the kernel\n", i, ready / 1e6,
	 least / 1e6, most / 1e6);
  if (ready < least) return (least - ready) / (SECONDS * 1e9);
  return ready > most ? (ready - most) / (SECONDS * 1e9) : 0;
}

/* Returns the error of the worse thread. */
static double error_of_session(void)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  double begin[2], began[2], end[2], ended[2], worst = 0, error;
  int i;
  opt.clocks = "wall";
  opt.interval_ns = 10000000;
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  for (i = 0; i < 2; i++) begin[i] = schedstat_of(tids[i]).delay_ns;
  REQUIRE(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
  for (i = 0; i < 2; i++) began[i] = schedstat_of(tids[i]).delay_ns;
  cpu_sleep_us(SECONDS * 1000000);
  for (i = 0; i < 2; i++) end[i] = schedstat_of(tids[i]).delay_ns;
  REQUIRE(luaM_sysprof_stop(L) == PROFILE_SUCCESS);
  for (i = 0; i < 2; i++) ended[i] = schedstat_of(tids[i]).delay_ns;
  for (i = 0; i < 2; i++) {
    error = error_of(i, &sink, end[i] - began[i], ended[i] - begin[i]);
    if (error > worst) worst = error;
  }
  sink_free(&sink);
  lua_close(L);
  return worst;
}

static int compare(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static pid_t neighbour(void)
{
  pid_t pid = flush_and_fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
      ;
  }
  return pid;
}

int main(void)
{
  static int number[2] = { 0, 1 };
  double errors[SESSIONS];
  pid_t busy[NEIGHBOURS];
  pthread_t thread[2];
  int i;
  for (i = 0; i < NEIGHBOURS; i++) busy[i] = neighbour();
  signal(SIGPIPE, SIG_IGN);
  REQUIRE(pipe(pipes[0]) == 0 && pipe(pipes[1]) == 0);
  REQUIRE(pthread_barrier_init(&named, NULL, 3) == 0);
  for (i = 0; i < 2; i++)
    REQUIRE(pthread_create(&thread[i], NULL, thread_of, &number[i]) == 0);
  pthread_barrier_wait(&named);
  for (i = 0; i < SESSIONS; i++) errors[i] = error_of_session();
  for (i = 0; i < NEIGHBOURS; i++) {
    kill(busy[i], SIGKILL);
    waitpid(busy[i], NULL, 0);
  }
  qsort(errors, SESSIONS, sizeof(double), compare);
  printf("the second worst session is %.2f %% off\n", 100 * errors[SESSIONS - 2]);
  CHECK(errors[SESSIONS - 2] <= BOUND);
  return check_status(); /* It ends the threads. */
}
