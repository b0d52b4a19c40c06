/* TIMEOUT: 300
** BASE: none, times that the kernel counts; the VM runs a loop, or none
** The kernel's list of threads may lack some that live, if others end while it is read. Their samples and waits go on: each
** thread has its whole time in the profile, once.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "wait_checks.h"

#define SLEEPERS 100
#define SECONDS  2
#define SLACK_NS 50e6 /* A look, and the start and the stop of so many threads. */

static _Atomic int over, cuts; /* Threads end; each second list is cut. */
static _Atomic int ncut;
static pthread_barrier_t named;

/* In place of the C library's: the list ends behind its first part. */
long syscall(long number, ...)
{
  static _Atomic int calls, lists;
  long a[6], result;
  va_list ap;
  int i;
  va_start(ap, number);
  for (i = 0; i < 6; i++) a[i] = va_arg(ap, long);
  va_end(ap);
  if (number == SYS_getdents64 && cuts && ++calls > 1 && lists % 2) {
    ncut++;
    result = 0;
  } else {
    register long r10 __asm__("r10") = a[3], r8 __asm__("r8") = a[4],
		      r9 __asm__("r9") = a[5];
    __asm__ volatile("syscall"
		     : "=a"(result)
		     : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8),
		       "r"(r9)
		     : "rcx", "r11", "memory");
  }
  if (number == SYS_getdents64 && result == 0) {
    calls = 0;
    lists++;
  }
  if (result >= 0 || result < -4095) return result;
  errno = (int)-result;
  return -1;
}

static void *sleeper_of(void *arg)
{
  char name[16];
  snprintf(name, sizeof(name), "sleeper-%zu-", *(size_t *)arg);
  prctl(PR_SET_NAME, name);
  pthread_barrier_wait(&named);
  while (!over) usleep(50000);
  return NULL;
}

/* Time in the row of a sleeper in the table of threads: the first number there. */
static double row_ns(const char *table, size_t sleeper)
{
  char name[32];
  const char *row;
  snprintf(name, sizeof(name), "  sleeper-%zu- (", sleeper);
  row = strstr(table, name);
  while (row && row > table && row[-1] != '\n') row--;
  return row ? atof(row) * 1e6 : 0;
}

int main(void)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  pthread_t sleeper[SLEEPERS];
  size_t number[SLEEPERS], i;
  double start, started, stop, stopped;
  char *text;
  opt.clocks = "wall";
  opt.interval_ns = 10000000;
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  REQUIRE(pthread_barrier_init(&named, NULL, SLEEPERS + 1) == 0);
  for (i = 0; i < SLEEPERS; i++) {
    number[i] = i;
    sleeper[i] = cpu_thread(sleeper_of, &number[i]);
  }
  pthread_barrier_wait(&named);
  start = real_ns();
  REQUIRE(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
  started = real_ns();
  cuts = 1;
  sleep(SECONDS);
  cuts = 0;
  stop = real_ns();
  REQUIRE(luaM_sysprof_stop(L) == PROFILE_SUCCESS);
  stopped = real_ns();
  over = 1;
  for (i = 0; i < SLEEPERS; i++) pthread_join(sleeper[i], NULL);
  printf("%d lists were cut\n", ncut);
  CHECK(ncut > 0);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "--format=top --by=thread --limit=0", &text),
	   0);
  for (i = 0; i < SLEEPERS; i++) {
    double ns = row_ns(text, i);
    if (ns > stop - started - SLACK_NS && ns < stopped - start + SLACK_NS) continue;
    printf("sleeper %zu: %.1f of %.1f to %.1f ms\n", i, ns / 1e6, (stop - started) / 1e6,
	   (stopped - start) / 1e6);
    CHECK(!"the time of a thread is not real time");
  }
  free(text);
  sink_free(&sink);
  lua_close(L);
  return check_status();
}
