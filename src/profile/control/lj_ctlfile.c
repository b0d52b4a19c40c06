/*
** Control file: polls for changes and reads commands.
** Context: background thread, under the lock of the slots | begin: VM thread.
**
** The poll obeys a changed file when two polls in a row find it the same. So it does not
** read a file while a writer is at work. An empty file must stay empty for more polls,
** since a writer often truncates a file first and fills it later.
*/

#define lj_ctlfile_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "profile/base/lj_relaxed.h"
#include "profile/control/lj_ctlfile.h"
#include "profile/control/lj_ctlsig.h"
#include "profile/output/lj_log.h"
#include "profile/output/lj_outfile.h"

/* Limit of a control file, in bytes: (the rest is not read) */
#define WORD_MAX       64
#define EMPTY_POLLS    10   /* Polls that have to find a file empty. */
#define WAKE_POLLS     20   /* Polls from one wake-up of the VM thread to the next, */
#define WAKE_POLLS_MAX 5120 /* and their limit, reached by doubling. */
/* Limit of problems of a control file: (no more are logged) */
#define LOGGED_MAX 10

static int logged;

static void file_stat(const char *path, ControlFile *f, struct stat *st)
{
  memset(f, 0, sizeof(*f));
  if (fstatat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW) != 0) return;
  f->exists = 1;
  f->dev = st->st_dev;
  f->ino = st->st_ino;
  f->size = st->st_size;
  f->mtime = st->st_mtim;
}

static int is_same(const ControlFile *a, const ControlFile *b)
{
  return a->exists == b->exists && a->dev == b->dev && a->ino == b->ino &&
	 a->size == b->size && a->mtime.tv_sec == b->mtime.tv_sec &&
	 a->mtime.tv_nsec == b->mtime.tv_nsec;
}

/* Only this user and root may give commands. Returns NULL, or the reason for a refusal. */
static const char *file_problem(const struct stat *st)
{
  if (!S_ISREG(st->st_mode)) return "not a regular file";
  if (st->st_uid != geteuid() && st->st_uid != 0) return "another user owns the file";
  if (st->st_mode & (S_IWGRP | S_IWOTH))
    return "other users may write the file; remove that right by chmod go-w";
  if (st->st_nlink != 1) return "the file has a second name (hard link)";
  return NULL;
}

/* Open the file. Refuses a symbolic link of another user on its path. Returns the
** descriptor, or -1 and the reason.
*/
static int file_open(const char *path, const char **problem)
{
  int fd = lj_outfile_read(path, problem);
  if (fd < 0)
    *problem = *problem ? "another user owns a symbolic link of the path" : strerror(errno);
  return fd;
}

const char *lj_ctlfile_begin(Control *c)
{
  struct stat st;
  const char *problem;
  int fd;
  file_stat(c->way.file, &c->poll.done, &st);
  c->poll.now = c->poll.done;
  c->poll.polls = c->poll.wait = c->poll.waited = 0;
  if (!c->poll.done.exists) return NULL;
  if ((problem = file_problem(&st)) != NULL) return problem;
  fd = file_open(c->way.file, &problem);
  if (fd >= 0) close(fd);
  return fd >= 0 ? NULL : problem;
}

/* Read the first word. Returns NULL, or the reason of a failure. */
static const char *file_read(const char *path, char *word)
{
  struct stat st;
  const char *problem = NULL;
  ssize_t n = 0;
  int fd;
  if (fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) != 0) return strerror(errno);
  if ((problem = file_problem(&st)) != NULL) return problem;
  fd = file_open(path, &problem);
  if (fd < 0) return problem;
  if (fstat(fd, &st) != 0 || (problem = file_problem(&st)) == NULL) {
    n = read(fd, word, WORD_MAX - 1);
    if (n < 0) problem = strerror(errno);
  }
  close(fd);
  word[n > 0 ? n : 0] = '\0';
  word[strcspn(word, " \t\r\n")] = '\0';
  return problem;
}

static uint32_t word_command(const char *word)
{
  static const struct {
    const char *word;
    uint32_t command;
  } words[] = { { "", CONTROL_TOGGLE },     { "toggle", CONTROL_TOGGLE },
		{ "start", CONTROL_START }, { "stop", CONTROL_STOP },
		{ "dump", CONTROL_DUMP },   { "coroutines", CONTROL_COROUTINES } };
  size_t i;
  for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
    if (strcmp(words[i].word, word) == 0) return words[i].command;
  return 0;
}

static void file_obey(Control *c)
{
  char word[WORD_MAX];
  const char *problem = file_read(c->way.file, word);
  uint32_t command = 0;
  if (!problem && (command = word_command(word)) == 0)
    problem = "the first word is unknown; expected start, stop, dump, toggle or coroutines";
  if (problem) {
    if (logged++ < LOGGED_MAX)
      lj_say(": control file '%s': %s; the file is ignored", c->way.file, problem);
    return;
  }
  if (command == CONTROL_TOGGLE)
    __atomic_fetch_xor(&c->sig.pending, command, __ATOMIC_RELAXED);
  else if (command == CONTROL_DUMP || command == CONTROL_COROUTINES)
    __atomic_fetch_or(&c->sig.pending, command, __ATOMIC_RELAXED);
  else { /* A later command replaces an earlier one. */
    __atomic_fetch_and(&c->sig.pending, CONTROL_COROUTINES | CONTROL_OVER,
		       __ATOMIC_RELAXED);
    __atomic_fetch_or(&c->sig.pending, command, __ATOMIC_RELAXED);
  }
  relaxed_set(&c->sig.asked, 0);
  c->poll.wait = WAKE_POLLS;
  c->poll.waited = 0;
  lj_ctlsig_trywake(c);
}

/* Wake the VM thread again. A thread that does not run the VM cannot ask for a safe point,
** and a request may get lost. The interval doubles, to rarely interrupt a thread that waits.
*/
static void wake_again(Control *c)
{
  if (!relaxed_get(&c->sig.pending)) return;
  c->poll.waited++;
  if (relaxed_get(&c->sig.asked) && c->poll.waited < c->poll.wait) return;
  if (c->poll.waited >= c->poll.wait && c->poll.wait < WAKE_POLLS_MAX) c->poll.wait *= 2;
  c->poll.waited = 0;
  lj_ctlsig_trywake(c);
}

void lj_ctlfile_poll(Control *c)
{
  struct stat st;
  ControlFile now;
  wake_again(c);
  file_stat(c->way.file, &now, &st);
  if (!is_same(&now, &c->poll.now)) {
    c->poll.now = now;
    c->poll.polls = 0;
    return;
  }
  if (is_same(&now, &c->poll.done) ||
      ++c->poll.polls < (now.exists && now.size == 0 ? EMPTY_POLLS : 1))
    return;
  c->poll.done = now;
  if (now.exists) file_obey(c);
}
