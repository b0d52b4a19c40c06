/*
** What the tests of waits share: time, the kernel's figures, sums of folded stacks, children with a filter.
*/

#ifndef WAIT_CHECKS_H
#define WAIT_CHECKS_H

#include "cpu_work.h"

/* Result of a child that could not set up its seccomp filter. */
#define NO_FILTER 77

static inline double real_ns(void)
{
  return (double)cpu_us(CLOCK_MONOTONIC) * 1e3;
}

/* The kernel's figures of a thread (Documentation/scheduler/sched-stats.rst). */
typedef struct Schedstat {
  double cpu_ns, delay_ns, runs;
} Schedstat;

static inline Schedstat schedstat_of(int tid)
{
  char path[64];
  Schedstat s = { 0, 0, 0 };
  FILE *f;
  snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", tid);
  f = fopen(path, "r");
  REQUIRE(f && fscanf(f, "%lf %lf %lf", &s.cpu_ns, &s.delay_ns, &s.runs) == 3);
  fclose(f);
  return s;
}

/* Sum of the weights of the folded stacks that contain both texts. */
static inline double folded_sum(const char *folded, const char *a, const char *b)
{
  double sum = 0;
  while (*folded) {
    const char *end = strchr(folded, '\n'), *hit_a, *hit_b, *count;
    if (!end) end = folded + strlen(folded);
    hit_a = strstr(folded, a);
    hit_b = strstr(folded, b);
    for (count = end; count > folded && count[-1] != ' '; count--)
      ;
    if (hit_a && hit_a < end && hit_b && hit_b < end) sum += atof(count);
    folded = *end ? end + 1 : end;
  }
  return sum;
}

/* Largest number of milliseconds behind a sentence of a profile, in nanoseconds; 0 without the sentence. */
static inline double said_ns(const Sink *sink, const char *sentence)
{
  const uint8_t *at = sink->bytes, *end = at + sink->len;
  size_t len = strlen(sentence);
  double most = 0;
  while ((at = memmem(at, (size_t)(end - at), sentence, len)) != NULL) {
    char digits[16] = "";
    at += len;
    memcpy(digits, at, (size_t)(end - at) < 15 ? (size_t)(end - at) : 15);
    if (atof(digits) * 1e6 > most) most = atof(digits) * 1e6;
  }
  return most;
}

/* Run a test in a child, which returns check_status() or NO_FILTER. Returns whether it failed. */
static inline int child_fails(const char *what, int (*test)(const void *), const void *arg)
{
  int status = -1, result;
  pid_t pid = flush_and_fork();
  if (pid == 0) _exit(test(arg));
  REQUIRE(waitpid(pid, &status, 0) == pid);
  result = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (result == NO_FILTER) printf("%s: the kernel takes no filter\n", what);
  else if (result) printf("%s: the child failed, status %d\n", what, status);
  return result != 0 && result != NO_FILTER;
}

#endif
