/*
** File descriptor of ours that the program may close: take, check, close.
** Context: any thread, outside of the handler.
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
  struct stat st;
  int high, err;
  o->fd = -1;
  if (fd < 0) return 0;
  high = fcntl(fd, F_DUPFD_CLOEXEC, NUMBER_HIGH);
  if (high < 0) high = fcntl(fd, F_DUPFD_CLOEXEC, NUMBER_LOW);
  if (high < 0 || fstat(high, &st) != 0) {
    err = errno == EINVAL ? EMFILE : errno; /* EINVAL: the limit is 3 or lower. */
    if (high >= 0) close(high);
    close(fd);
    errno = err;
    return 0;
  }
  close(fd);
  o->fd = high;
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
