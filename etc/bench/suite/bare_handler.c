/*
** Benchmark suite: takes the place of the profiler's handler in a running session.
** Clock, signal and flags are those of the profiler, only the handler does
** nothing: what is compared with it differs by the handler alone. Used through
** the FFI by the thread that is profiled.
*/

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#define SIGNALS 64

static struct sigaction before[SIGNALS + 1], profiler[SIGNALS + 1];
static int changed[SIGNALS], nchanged;
static volatile uint64_t ticks;

static void on_tick(int signo, siginfo_t *info, void *context)
{
  (void)signo;
  (void)info;
  (void)context;
  ticks++;
}

/* To be called before the profiler starts for the first time. */
void bare_handler_note(void)
{
  int i;
  for (i = 1; i <= SIGNALS; i++) sigaction(i, NULL, &before[i]);
}

/* To be called when it runs. Returns the number of signals whose handler is another
** one now: the profiler's.
*/
int bare_handler_find(void)
{
  int i;
  nchanged = 0;
  for (i = 1; i <= SIGNALS; i++)
    if (sigaction(i, NULL, &profiler[i]) == 0 &&
	profiler[i].sa_sigaction != before[i].sa_sigaction)
      changed[nchanged++] = i;
  return nchanged;
}

/* The profiler's handler is to be back before it stops. */
void bare_handler_set(int bare)
{
  int i;
  for (i = 0; i < nchanged; i++) {
    struct sigaction sa = profiler[changed[i]];
    if (bare) sa.sa_sigaction = on_tick;
    sigaction(changed[i], &sa, NULL);
  }
}

/* Signals that did nothing. */
uint64_t bare_handler_ticks(void)
{
  return ticks;
}
