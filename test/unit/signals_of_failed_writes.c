/* A failed write of ours raises no SIGPIPE in the program; one that was pending before, and
** the mask, stay.
** BASE: none, its modules know no VM
*/

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "lj_def.h"
#include "profile/output/lj_nosig.h"
#include "check.h"

static int is_pending(int signo)
{
  sigset_t set;
  REQUIRE(sigpending(&set) == 0);
  return sigismember(&set, signo);
}

static int is_blocked(int signo)
{
  sigset_t set;
  REQUIRE(sigprocmask(SIG_BLOCK, NULL, &set) == 0);
  return sigismember(&set, signo);
}

/* A write into a pipe that nobody reads. */
static void fail(int fd, int garbage)
{
  NoSig q;
  int err;
  memset(&q, garbage, sizeof(q));
  lj_nosig_begin(&q);
  CHECK(is_blocked(SIGPIPE) && is_blocked(SIGXFSZ));
  err = write(fd, "x", 1) < 0 ? errno : 0;
  CHECK_EQ(err, EPIPE);
  errno = 42;
  lj_nosig_end(&q, err);
  CHECK_EQ(errno, 42);
}

int main(void)
{
  sigset_t set;
  int pipes[2], round;
  REQUIRE(pipe(pipes) == 0 && close(pipes[0]) == 0);
  for (round = 0; round < 2; round++) {
    int garbage = round ? 0xff : 0;
    fail(pipes[1], garbage); /* SIGPIPE would end the program. */
    CHECK(!is_pending(SIGPIPE) && !is_blocked(SIGPIPE) && !is_blocked(SIGXFSZ));
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    REQUIRE(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    fail(pipes[1], garbage);
    CHECK(!is_pending(SIGPIPE) && is_blocked(SIGPIPE) && !is_blocked(SIGXFSZ));
    raise(SIGPIPE);
    fail(pipes[1], garbage);
    CHECK(is_pending(SIGPIPE));
    REQUIRE(signal(SIGPIPE, SIG_IGN) != SIG_ERR); /* Drops it. */
    REQUIRE(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    REQUIRE(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
  }
  return check_status();
}
