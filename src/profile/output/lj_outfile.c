/*
** Output files of profiles: safe opening in folders that other users can write to.
** Context: any thread, outside of the handler.
**
** Links follow the rule of the kernel's fs.protected_symlinks, files the rule of
** fs.protected_regular and fs.protected_fifos. The kernel's own checks may be disabled,
** and cover only folders with the sticky bit. A group may share the files of its folder, but its
** members lead nobody to other places: links there follow the rule, too.
*/

#define lj_outfile_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For O_PATH. */
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_osmemory.h"
#include "profile/output/lj_outfile.h"

/* Limit of links of a path: (refused) */
#define LINKS_MAX 40
/* Limit of the wait for the reader of a FIFO, in ms: (refused) */
#define READER_MS 10000
/* Limit of tries to open a file that changes: (refused) */
#define TRIES_MAX 100

#define OTHERS        "in a folder that other users may write to; "
#define PROBLEM_LINK  "another user owns a symbolic link of the path, " OTHERS
#define PROBLEM_OWNER "another user owns the file, " OTHERS
#define PROBLEM_NAMES "the file has a second name (hard link), " OTHERS
#define BY_FOLLOW     "set the option follow to follow it"
#define BY_FORCE      "set the option force to write it"
#define BY_PATH       "choose another path"
/* Refuse with a sentence, and the remedy that the caller has. */
#define walk_advise(w, problem, remedy) \
  walk_refuse((w), EACCES, ((w)->how & OUTFILE_PLAIN) ? problem BY_PATH : problem remedy)
#define PROBLEM_CONTENT "not a profile; set the option force to overwrite the file"
#define PROBLEM_OTHER   "there is another file; choose a new path, or that of a heap snapshot"
#define PROBLEM_KIND    "not a regular file"

/* State of a walk along a path. Mapped: a VM's thread may have a small stack. */
typedef struct Walk {
  int dir;               /* Current folder, AT_FDCWD at the beginning. */
  int how;               /* OUTFILE_*. */
  int links;             /* Symbolic links followed so far. */
  const char **problem;  /* Reason for a refusal, or NULL. */
  char rest[PATH_MAX];   /* Rest of the path, from the current folder. */
  char name[PATH_MAX];   /* Of the folder to enter. */
  char target[PATH_MAX]; /* Of a link. */
} Walk;

static int walk_refuse(Walk *w, int err, const char *problem)
{
  *w->problem = problem;
  errno = err;
  return 0;
}

/* -- Names ------------------------------------------------------------------- */

int lj_outfile_name(char *name, size_t size, const char *s, int number, int run)
{
  size_t len = 0;
  for (; *s; s++) {
    char text[24] = { *s, '\0' };
    size_t n;
    if (*s == '%') {
      switch (*++s) {
      case 'p': snprintf(text, sizeof(text), "%ld", (long)getpid()); break;
      case 'n': snprintf(text, sizeof(text), "%d", number); break;
      case 'r': snprintf(text, sizeof(text), "%d", run); break;
      case 't': snprintf(text, sizeof(text), "%lld", (long long)time(NULL)); break;
      case '%': break;
      default: return 0;
      }
    }
    n = strlen(text);
    if (len + n >= size) return -1;
    memcpy(name + len, text, n + 1);
    len += n;
  }
  if (len == 0 && size > 0) name[0] = '\0';
  return 1;
}

/* -- Folders ----------------------------------------------------------------- */

static void walk_close(Walk *w)
{
  int err = errno;
  if (w->dir >= 0) close(w->dir);
  w->dir = -1;
  errno = err;
}

/* Go on from another folder. Owns fd. */
static int walk_enter(Walk *w, int fd)
{
  if (fd < 0) return 0;
  walk_close(w);
  w->dir = fd;
  return 1;
}

/* Does the owner already have all rights of this process? */
static int is_trusted(uid_t uid)
{
  return uid == 0 || uid == geteuid();
}

/* May another user create files in the folder? modes: S_IW* of these users. Its owner always may.
** If in doubt, yes.
*/
static int walk_ispublic(const Walk *w, mode_t modes)
{
  struct stat st;
  return fstatat(w->dir, "", &st, AT_EMPTY_PATH) != 0 || (st.st_mode & modes) ||
	 !is_trusted(st.st_uid);
}

/* Follow the link at fd, which is in the current folder. tail: the path after the link.
** Returns 0 on a refusal or failure, -1 if the kernel has to follow the link: links of
** procfs lead to open files, which have no path.
*/
static int walk_link(Walk *w, int fd, const struct stat *st, const char *tail)
{
  struct statfs fs;
  size_t tail_len = strlen(tail);
  ssize_t n;
  if (++w->links > LINKS_MAX) {
    errno = ELOOP;
    return 0;
  }
  if (!(w->how & OUTFILE_FOLLOW) && !is_trusted(st->st_uid) &&
      walk_ispublic(w, S_IWGRP | S_IWOTH))
    return walk_advise(w, PROBLEM_LINK, BY_FOLLOW);
  if (fstatfs(fd, &fs) != 0) return 0;
  if (fs.f_type == PROC_SUPER_MAGIC) return -1;
  n = readlinkat(fd, "", w->target, sizeof(w->target));
  if (n < 0) return 0;
  if ((size_t)n + 1 + tail_len >= sizeof(w->rest)) {
    errno = ENAMETOOLONG;
    return 0;
  }
  memmove(w->rest + n + (tail_len > 0), tail, tail_len + 1);
  memcpy(w->rest, w->target, (size_t)n);
  if (tail_len) w->rest[n] = '/';
  return 1;
}

/* Enter the folder of this name. tail: the path after it. */
static int walk_folder(Walk *w, const char *name, const char *tail)
{
  int flags = O_PATH | O_DIRECTORY | O_CLOEXEC, result;
  int fd = openat(w->dir, name, flags | O_NOFOLLOW), err;
  struct stat st;
  if (fd >= 0) {
    memmove(w->rest, tail, strlen(tail) + 1);
    return walk_enter(w, fd);
  }
  if (errno != ENOTDIR && errno != ELOOP) return 0;
  fd = openat(w->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return 0;
  errno = ENOTDIR;
  result = fstat(fd, &st) == 0 && S_ISLNK(st.st_mode) ? walk_link(w, fd, &st, tail) : 0;
  err = errno;
  close(fd);
  errno = err;
  if (result >= 0) return result;
  if (!walk_enter(w, openat(w->dir, name, flags))) return 0;
  memmove(w->rest, tail, strlen(tail) + 1);
  return 1;
}

/* Walk to the folder of the path's last name, and leave that name in w->rest. */
static int walk_folders(Walk *w)
{
  size_t len, next;
  for (;;) {
    if (w->rest[0] == '/') {
      if (!walk_enter(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC))) return 0;
      next = strspn(w->rest, "/");
      memmove(w->rest, w->rest + next, strlen(w->rest + next) + 1);
    }
    len = strcspn(w->rest, "/");
    if (!w->rest[len]) return 1;
    next = len + strspn(w->rest + len, "/");
    memcpy(w->name, w->rest, len);
    w->name[len] = '\0';
    if (!walk_folder(w, w->name, w->rest + next)) return 0;
  }
}

/* Returns NULL and errno if the path has no valid length, or without memory. */
static Walk *walk_begin(const char *path, int how, const char **problem)
{
  size_t len = strlen(path);
  Walk *w;
  *problem = NULL;
  if (len == 0 || len >= PATH_MAX) {
    errno = len ? ENAMETOOLONG : ENOENT;
    return NULL;
  }
  w = (Walk *)lj_osmemory_new(sizeof(*w), 0);
  if (!w) return NULL;
  w->dir = AT_FDCWD;
  w->how = how;
  w->problem = problem;
  memcpy(w->rest, path, len + 1);
  return w;
}

static void walk_end(Walk *w)
{
  int err = errno;
  walk_close(w);
  lj_osmemory_free(w, sizeof(*w));
  errno = err;
}

/* -- Files ------------------------------------------------------------------- */

/* Check type and owner of a file before the open. */
static int file_isallowed(Walk *w, const struct stat *st)
{
  if (S_ISDIR(st->st_mode)) {
    errno = EISDIR;
    return 0;
  }
  if (!S_ISREG(st->st_mode) && (w->how & OUTFILE_REGULAR))
    return walk_refuse(w, EINVAL, PROBLEM_KIND);
  if ((w->how & OUTFILE_FORCE) || !walk_ispublic(w, S_IWOTH)) return 1;
  if (!is_trusted(st->st_uid)) return walk_advise(w, PROBLEM_OWNER, BY_FORCE);
  if (S_ISREG(st->st_mode) && st->st_nlink > 1)
    return walk_advise(w, PROBLEM_NAMES, BY_FORCE);
  return 1;
}

/* Is the file empty, or does it begin as a profile of our or Tarantool's format does?
** Returns -1 if reading fails.
*/
static int file_isprofile(int fd)
{
  unsigned char head[4]; /* The fourth byte is the version. */
  ssize_t n;
  do n = pread(fd, head, sizeof(head), 0);
  while (n < 0 && errno == EINTR);
  if (n < 0) return -1;
  return n == 0 ||
	 (n == (ssize_t)sizeof(head) && memcmp(head, "ljs", 3) == 0 && head[3] < ' ');
}

/* Open a FIFO. Waits some time for a reader; a blocking open could wait for ever. */
static int fifo_open(Walk *w, int flags)
{
  static const struct timespec nap = { 0, 10000000 };
  int64_t till = mono_ms() + READER_MS;
  int fd;
  while ((fd = openat(w->dir, w->rest, flags)) < 0 && errno == ENXIO && mono_ms() < till)
    nanosleep(&nap, NULL);
  return fd;
}

/* Open the file that st describes. Returns -2 if another file has replaced it. */
static int file_open(Walk *w, const struct stat *st, int follow)
{
  int regular = S_ISREG(st->st_mode), look = regular && !(w->how & OUTFILE_FORCE);
  /* O_NONBLOCK: neither the open nor a write to a full FIFO may wait for ever. */
  int flags = O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (look ? O_RDWR : O_WRONLY) |
	      (follow ? 0 : O_NOFOLLOW);
  int fd = S_ISFIFO(st->st_mode) ? fifo_open(w, flags) : openat(w->dir, w->rest, flags);
  struct stat now;
  if (fd < 0)
    return errno == ENOENT || errno == ELOOP || (errno == ENXIO && regular) ? -2 : -1;
  if (fstat(fd, &now) != 0 || now.st_dev != st->st_dev || now.st_ino != st->st_ino) {
    close(fd);
    return -2;
  }
  if (look && (look = file_isprofile(fd)) <= 0) {
    int err = errno;
    close(fd);
    errno = err;
    if (look == 0) walk_refuse(w, EEXIST, PROBLEM_CONTENT);
    return -1;
  }
  if (regular) fcntl(fd, F_SETFL, O_APPEND);
  return fd;
}

/* Open or create the last name of the path. Returns a descriptor, -1, or -2 to try again. */
static int walk_last(Walk *w, int *created)
{
  const char *name = w->rest;
  struct stat st;
  int at, fd, follow = 0, err;
  if (!*name) {
    errno = EISDIR;
    return -1;
  }
  at = openat(w->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (at < 0) {
    if (errno != ENOENT) return -1;
    fd = openat(w->dir, name, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    *created = fd >= 0;
    return fd < 0 && errno == EEXIST ? -2 : fd;
  }
  if (w->how & OUTFILE_NEW) {
    close(at);
    errno = EEXIST;
    return -1;
  }
  fd = fstat(at, &st);
  if (fd == 0 && S_ISLNK(st.st_mode)) {
    int result = walk_link(w, at, &st, "");
    fd = result > 0 ? -2 : -1;
    if (result < 0) {
      follow = 1;
      fd = fstatat(w->dir, name, &st, 0);
    }
  }
  err = errno;
  close(at);
  errno = err;
  if (fd != 0) return fd;
  return file_isallowed(w, &st) ? file_open(w, &st, follow) : -1;
}

int lj_outfile_open(const char *path, int how, int *created, const char **problem)
{
  Walk *w = walk_begin(path, how, problem);
  int fd = -2, tries;
  *created = 0;
  if (!w) return -1;
  for (tries = 0; fd == -2 && tries < TRIES_MAX; tries++)
    fd = walk_folders(w) ? walk_last(w, created) : -1;
  walk_end(w);
  return fd == -2 ? -1 : fd;
}

/* May a new file replace what has the last name of the path? */
static int walk_mayreplace(Walk *w, const char *begins)
{
  char head[4];
  struct stat st;
  ssize_t n;
  int fd, err;
  if (fstatat(w->dir, w->rest, &st, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT;
  w->how |= OUTFILE_REGULAR;
  if (!file_isallowed(w, &st)) return 0;
  fd = openat(w->dir, w->rest, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return 0;
  do n = pread(fd, head, sizeof(head), 0);
  while (n < 0 && errno == EINTR);
  err = errno;
  close(fd);
  errno = err;
  if (n < 0) return 0;
  if (n == (ssize_t)sizeof(head) && memcmp(head, begins, 3) == 0 && head[3] < ' ') return 1;
  return walk_refuse(w, EEXIST, PROBLEM_OTHER);
}

/* Create the file in the folder of the walk. */
static int walk_temp(Walk *w, const char *begins, OutTemp *t)
{
  int i, n;
  if (!*w->rest) {
    errno = EISDIR;
    return 0;
  }
  if (!walk_mayreplace(w, begins)) return 0;
  if (w->dir == AT_FDCWD && !walk_enter(w, open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)))
    return 0;
  n = snprintf(t->name, sizeof(t->name), "%s", w->rest);
  for (i = 0; n > 0 && (size_t)n < sizeof(t->name) && i < TRIES_MAX; i++) {
    n = snprintf(t->temp, sizeof(t->temp), "%s.%ld.%d", t->name, (long)getpid(), i);
    if ((size_t)n >= sizeof(t->temp)) break;
    t->fd = openat(w->dir, t->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (t->fd >= 0 || errno != EEXIST) return t->fd >= 0;
  }
  if (i < TRIES_MAX) errno = ENAMETOOLONG;
  return 0;
}

int lj_outfile_temp(const char *path, const char *begins, OutTemp *t, const char **problem)
{
  Walk *w = walk_begin(path, OUTFILE_PLAIN, problem);
  int ok;
  if (!w) return 0;
  ok = walk_folders(w) && walk_temp(w, begins, t);
  if (ok) {
    t->dir = w->dir;
    w->dir = -1;
  }
  walk_end(w);
  return ok;
}

int lj_outfile_read(const char *path, const char **problem)
{
  Walk *w = walk_begin(path, 0, problem);
  int fd = -1;
  if (!w) return -1;
  if (walk_folders(w))
    fd = openat(w->dir, w->rest, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  walk_end(w);
  return fd;
}

void lj_outfile_remove(const char *path, int how, dev_t dev, ino_t ino)
{
  const char *problem;
  Walk *w = walk_begin(path, how, &problem);
  struct stat st;
  if (!w) return;
  while (walk_folders(w) && fstatat(w->dir, w->rest, &st, AT_SYMLINK_NOFOLLOW) == 0) {
    int at, result = 0;
    if (st.st_dev == dev && st.st_ino == ino) unlinkat(w->dir, w->rest, 0);
    if (!S_ISLNK(st.st_mode)) break;
    at = openat(w->dir, w->rest, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (at < 0) break;
    if (fstat(at, &st) == 0 && S_ISLNK(st.st_mode)) result = walk_link(w, at, &st, "");
    close(at);
    if (result <= 0) break;
  }
  walk_end(w);
}
