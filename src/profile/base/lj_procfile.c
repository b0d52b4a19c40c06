/*
** Small text files of /proc, read at once.
** Context: handler or any thread. Async-signal-safe; may change errno.
**
** Builds the path without snprintf(), which the handler must not call.
*/

#define lj_procfile_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "profile/base/lj_ownfd.h"
#include "profile/base/lj_procfile.h"

#define TASK_DIR   "/proc/self/task/"
#define DIGITS_MAX 10 /* Digits of a thread's id. */

ssize_t lj_procfile_read(const char *path, char *text, size_t size)
{
  OwnFd own;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n;
  if (!lj_ownfd_borrow(&own, fd)) return -1;
  n = read(fd, text, size - 1);
  lj_ownfd_close(&own);
  if (n >= 0) text[n] = '\0';
  return n;
}

#define TASK_PATH_MAX (sizeof(TASK_DIR) + DIGITS_MAX + 1 + PROCFILE_NAME_MAX)

static void task_path(char *path, int tid, const char *name)
{
  char digits[DIGITS_MAX];
  size_t at = sizeof(TASK_DIR) - 1, n = 0;
  memcpy(path, TASK_DIR, at);
  for (; tid > 0; tid /= 10) digits[n++] = (char)('0' + tid % 10);
  while (n > 0) path[at++] = digits[--n];
  path[at++] = '/';
  memcpy(path + at, name, strlen(name) + 1);
}

ssize_t lj_procfile_task(int tid, const char *name, char *text, size_t size)
{
  char path[TASK_PATH_MAX];
  task_path(path, tid, name);
  return lj_procfile_read(path, text, size);
}

int lj_procfile_taskopen(int tid, const char *name)
{
  char path[TASK_PATH_MAX];
  task_path(path, tid, name);
  return open(path, O_RDONLY | O_CLOEXEC);
}
