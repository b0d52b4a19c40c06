/*
** Blocks SIGPIPE and SIGXFSZ around our writes.
** Context: handler | any thread.
*/

#define lj_nosig_c
#define LUA_CORE

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "profile/output/lj_nosig.h"

void lj_nosig_begin(NoSig *q)
{
  sigset_t output;
  sigemptyset(&output);
  sigaddset(&output, SIGPIPE);
  sigaddset(&output, SIGXFSZ);
  sigpending(&q->pending);
  pthread_sigmask(SIG_BLOCK, &output, &q->mask);
}

/* Remove the signal that our write raised. A signal that was pending before stays. */
void lj_nosig_end(const NoSig *q, int err)
{
  static const struct timespec now;
  int signo = err == EPIPE ? SIGPIPE : err == EFBIG ? SIGXFSZ : 0, old = errno;
  if (signo && !sigismember(&q->pending, signo)) {
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, signo);
    sigtimedwait(&ours, NULL, &now);
  }
  pthread_sigmask(SIG_SETMASK, &q->mask, NULL);
  errno = old;
}
