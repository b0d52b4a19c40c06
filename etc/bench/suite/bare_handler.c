/*
** Bare handler of the benchmark suite: replaces the profiler's handler in a session.
** Clock, signal and flags stay the profiler's, but this handler does nothing. So the
** difference to a session is the handler's cost alone. The profiled thread calls these
** functions through the FFI.
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

/* Note the program's handlers. The caller has not started the profiler yet. */
void bare_handler_note(void)
{
  int i;
  for (i = 1; i <= SIGNALS; i++) sigaction(i, NULL, &before[i]);
}

/* Find the profiler's handler, while the profiler runs: a signal's handler that has
** changed. Returns the number of such signals.
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

/* Install the bare handler, or the profiler's again. The caller restores the profiler's
** before it stops the profiler.
*/
void bare_handler_set(int bare)
{
  int i;
  for (i = 0; i < nchanged; i++) {
    struct sigaction sa = profiler[changed[i]];
    if (bare) sa.sa_sigaction = on_tick;
    sigaction(changed[i], &sa, NULL);
  }
}

/* Number of signals that the bare handler took. */
uint64_t bare_handler_ticks(void)
{
  return ticks;
}
