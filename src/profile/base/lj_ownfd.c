/*
** File descriptor of ours that the program may close: take, check, close.
** Context: any thread; take, outside of the handler. Async-signal-safe.
*/

#define lj_ownfd_c
#define LUA_CORE

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <sys/stat.h>

#include "profile/base/lj_ownfd.h"

#define NUMBER_HIGH 256 /* The number is at least this, if the limit allows it, */
#define NUMBER_LOW  3   /* else this: programs use the first three without opening them. */

int lj_ownfd_take(OwnFd *o, int fd)
{
  OwnFd low;
  int err;
  o->fd = -1;
  if (!lj_ownfd_borrow(&low, fd)) return 0;
  *o = low;
  o->fd = fcntl(fd, F_DUPFD_CLOEXEC, NUMBER_HIGH);
  if (o->fd < 0) o->fd = fcntl(fd, F_DUPFD_CLOEXEC, NUMBER_LOW);
  err = errno == EINVAL ? EMFILE : errno; /* EINVAL: the limit is 3 or lower. */
  lj_ownfd_close(&low);
  if (o->fd < 0) errno = err;
  return o->fd >= 0;
}

int lj_ownfd_borrow(OwnFd *o, int fd)
{
  struct stat st;
  int err;
  o->fd = -1;
  if (fd < 0) return 0;
  if (fstat(fd, &st) != 0) {
    err = errno;
    if (err != EBADF) close(fd); /* Else the program has closed it. */
    errno = err;
    return 0;
  }
  o->fd = fd;
  o->dev = st.st_dev;
  o->ino = st.st_ino;
  return 1;
}

int lj_ownfd_isours(const OwnFd *o)
{
  struct stat st;
  return o->fd >= 0 && fstat(o->fd, &st) == 0 && st.st_dev == o->dev && st.st_ino == o->ino;
}

void lj_ownfd_close(OwnFd *o)
{
  int err = errno;
  if (lj_ownfd_isours(o)) close(o->fd);
  o->fd = -1;
  errno = err;
}
