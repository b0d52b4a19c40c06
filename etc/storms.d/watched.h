/*
** Processes that a storm watches: whether they live, and what they use.
*/

#ifndef WATCHED_H
#define WATCHED_H

#include <sys/wait.h>

#include "count_kept.h"
#include "storm.h"

#define WATCHED_SETTLE_S 90  /* Longer than a thread that storm_watch() finds. */
#define WATCHED_REST     0.3 /* Of one processor, at a rest. */

static inline void watched_alive(pid_t pid, const char *what)
{
  int status;
  if (waitpid(pid, &status, WNOHANG) != 0)
    storm_fail("%s has ended: status 0x%x", what, (unsigned)status);
  storm_vm->count++;
}

/* Wait for something that is soon true. look(): fails if a process has ended. */
#define WATCHED_AWAIT(look, cond, ...) \
  do { \
    double await_end = storm_now() + WATCHED_SETTLE_S; \
    while (!(cond)) { \
      if (storm_now() > await_end) storm_fail(__VA_ARGS__); \
      look(); \
      storm_nap(0.01); \
    } \
  } while (0)

/* Entries of a folder in /proc/PID: fd or task. */
static inline int watched_entries(pid_t pid, const char *folder)
{
  char path[40];
  snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, folder);
  return count_entries(path);
}

static inline double watched_cpu(pid_t pid)
{
  clockid_t clock;
  struct timespec ts;
  REQUIRE(clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &ts) == 0);
  return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* A process that has nothing to do does nothing. */
static inline void watched_rests(pid_t pid, const char *what)
{
  double begun = storm_now(), cpu = watched_cpu(pid);
  storm_nap(0.5);
  cpu = (watched_cpu(pid) - cpu) / (storm_now() - begun);
  if (cpu > WATCHED_REST) storm_fail("%s uses %.0f %% CPU at rest", what, cpu * 100);
}

#endif
