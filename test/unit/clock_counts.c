/* TIMEOUT: 600
** BASE: none, its modules know no VM
** Events are counted exactly: the weights of the ticks and the rest are the total. The
** total lies between bounds from the kernel's other counters. A storm of events, each
** with a tick, does not stop the program.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/mman.h>
#include <sys/resource.h>

#include "ticks.h"

#define PAGES 3000

static struct rusage usage(void)
{
  struct rusage ru;
  REQUIRE(getrusage(RUSAGE_THREAD, &ru) == 0);
  return ru;
}

static void touch_pages(int n)
{
  size_t size = (size_t)n * 4096;
  volatile char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
  int i;
  REQUIRE(p != MAP_FAILED);
  madvise((void *)p, size, MADV_NOHUGEPAGE);
  for (i = 0; i < n; i++) p[(size_t)i * 4096] = 1;
  munmap((void *)p, size);
}

/* The counter of the kernel goes on before and after the event does. */
static void faults(const char *name, uint64_t period)
{
  uint64_t before, after, total;
  Ticks t;
  before = (uint64_t)usage().ru_minflt;
  ticks_start(&t, name, 10000000, period);
  touch_pages(PAGES);
  total = lj_clocksig_total(&t.clock);
  ticks_stop(&t);
  after = (uint64_t)usage().ru_minflt;
  printf("%s, period %llu: %llu counted, %llu by getrusage, %llu ticks\n", name,
	 (unsigned long long)t.clock.spec.period, (unsigned long long)total,
	 (unsigned long long)(after - before), (unsigned long long)t.n);
  CHECK(total >= PAGES && t.n > 0);
  if (strncmp(name, "minor", 5) == 0) CHECK(total <= after - before);
  CHECK(t.weights <= total && total - t.weights <= t.clock.spec.period);
  CHECK_EQ(lj_clocksig_total(&t.clock), total); /* Known after the close. */
}

static uint64_t switches(void)
{
  struct rusage ru = usage();
  return (uint64_t)ru.ru_nvcsw + (uint64_t)ru.ru_nivcsw;
}

static void context_switches(uint64_t period)
{
  static const struct timespec moment = { 0, 1000 };
  uint64_t before, begin, end, after, total;
  Ticks t;
  int i;
  before = switches();
  ticks_start(&t, "context-switches", 10000000, period);
  begin = switches();
  for (i = 0; i < 300; i++) nanosleep(&moment, NULL);
  end = switches();
  total = lj_clocksig_total(&t.clock);
  ticks_stop(&t);
  after = switches();
  printf("context-switches: %llu counted, %llu by getrusage, %llu ticks\n",
	 (unsigned long long)total, (unsigned long long)(end - begin),
	 (unsigned long long)t.n);
  CHECK(total >= end - begin && total <= after - before);
  CHECK(t.n > 0 && t.weights <= total);
}

/* A call that sleeps is begun anew after each tick, and sleeps at last. */
static void sleeping_call(void)
{
  Ticks t;
  int fd[2];
  char c;
  pid_t pid;
  REQUIRE(pipe(fd) == 0);
  fflush(stdout);
  ticks_start(&t, "context-switches", 10000000, 2);
  pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    usleep(50000);
    _exit(write(fd[1], "x", 1) != 1);
  }
  while (read(fd[0], &c, 1) != 1)
    ;
  ticks_stop(&t);
  REQUIRE(waitpid(pid, NULL, 0) == pid);
  close(fd[0]);
  close(fd[1]);
}

static void instructions(void)
{
  enum { LOOPS = 20000000 };
  volatile unsigned int i;
  uint64_t total;
  Ticks t;
  ticks_start(&t, "instructions:u", 10000000, 0);
  for (i = 0; i < LOOPS;) i = i + 1; /* At least a load, a store and a jump. */
  total = lj_clocksig_total(&t.clock);
  ticks_stop(&t);
  printf("instructions:u: %llu, %llu ticks\n", (unsigned long long)total,
	 (unsigned long long)t.n);
  CHECK(total >= LOOPS);
  CHECK(t.weights <= total && t.n > 0);
}

/* -- perf, of the whole program ---------------------------------------------- */

/* This program under perf: prints its own count. */
static int profiled(const char *name)
{
  enum { SLEEPS = 10 };
  Ticks t;
  uint64_t total;
  int i;
  ticks_start(&t, name, 1000000, 0);
  touch_pages(PAGES);
  burn_us(20000);
  for (i = 0; i < SLEEPS; i++) usleep(1000); /* Each is a switch. */
  total = lj_clocksig_total(&t.clock);
  ticks_stop(&t);
  printf("counted %llu\n", (unsigned long long)(total - (t.last - t.weights)));
  return check_status();
}

static void as_perf(const char *self, const char *name)
{
  char command[1024], line[512];
  unsigned long long counted = 0, n;
  double by_perf = -1;
  FILE *f;
  if (!ticks_available(name)) return;
  snprintf(command, sizeof(command), "perf stat -x ' ' -e %s '%s' %s 2>&1", name, self,
	   name);
  f = popen(command, "r");
  REQUIRE(f != NULL);
  while (fgets(line, sizeof(line), f)) {
    if (sscanf(line, "counted %llu", &n) == 1) counted = n;
    else if (strstr(line, name) && line[0] >= '0' && line[0] <= '9') by_perf = atof(line);
  }
  if (pclose(f) != 0 || by_perf < 0) {
    printf("skipped perf stat -e %s: perf is missing, or has no such count\n", name);
    return;
  }
  if (strcmp(name, "task-clock") == 0) by_perf *= 1000; /* perf prints milliseconds. */
  printf("%s: %llu counted, %.0f by perf\n", name, counted, by_perf);
  /* perf counts from the program's start to its end. */
  CHECK(counted > 0 && (double)counted <= by_perf + 1);
}

int main(int argc, char **argv)
{
  int n = 0;
  if (argc == 2) return profiled(argv[1]);
  if (ticks_available("page-faults")) {
    n++;
    faults("page-faults", 0);
    faults("page-faults", 1);
    faults("minor-faults", 1);
  }
  if (ticks_available("page-faults:u")) {
    n++;
    faults("minor-faults:u", 7);
  }
  if (ticks_available("context-switches")) {
    n++;
    context_switches(2);
    context_switches(10);
    sleeping_call();
  }
  if (ticks_available("instructions:u")) {
    n++;
    instructions();
  }
  as_perf(argv[0], "page-faults");
  as_perf(argv[0], "task-clock");
  as_perf(argv[0], "context-switches");
  if (check_failures == 0 && n == 0) {
    puts("skipped: no events are available here");
    return 77;
  }
  return check_status();
}
