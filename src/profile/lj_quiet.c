/*
** Output without signals.
*/

#define lj_quiet_c
#define LUA_CORE

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "profile/lj_quiet.h"

void lj_quiet_begin(Quiet *q)
{
  sigset_t output;
  sigemptyset(&output);
  sigaddset(&output, SIGPIPE);
  sigaddset(&output, SIGXFSZ);
  sigpending(&q->pending);
  pthread_sigmask(SIG_BLOCK, &output, &q->mask);
}

/* Ours is taken back; one that was there before stays. */
void lj_quiet_end(const Quiet *q, int err)
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
