/*
** Messages on standard error.
** Context: any thread, outside of the handler.
*/

#define lj_log_c
#define LUA_CORE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "profile/base/lj_cleantext.h"
#include "profile/base/lj_relaxed.h"
#include "profile/output/lj_log.h"
#include "profile/output/lj_nosig.h"

#define READER_MS 200 /* Time that the reader of a pipe has to make room. */
/* Limit of incomplete files at the exit: (no more are reported) */
#define CUT_MAX 10

/* Identity of standard error when the last VM began; ino 0 if it was closed. */
static ino_t stderr_ino;
static dev_t stderr_dev;

void lj_log_begin(void)
{
  struct stat st;
  int is_open = (fstat(STDERR_FILENO, &st) == 0);
  if (is_open) relaxed_set(&stderr_dev, st.st_dev);
  relaxed_set(&stderr_ino, is_open ? st.st_ino : 0);
}

/* Is descriptor 2 still standard error? A program may close it, and its next file gets the
** descriptor. A regular file that is only appended to counts as a log.
*/
static int stderr_isopen(void)
{
  ino_t ino = relaxed_get(&stderr_ino);
  struct stat st;
  if (!ino || fstat(STDERR_FILENO, &st) != 0) return 0;
  return (st.st_ino == ino && st.st_dev == relaxed_get(&stderr_dev)) ||
	 (S_ISREG(st.st_mode) && (fcntl(STDERR_FILENO, F_GETFL) & O_APPEND));
}

/* Write to standard error. Gives up after a while if it is a pipe that nobody reads. */
static void write_stderr(const char *s, size_t len)
{
  struct pollfd ready = { STDERR_FILENO, POLLOUT, 0 };
  NoSig quiet;
  if (!stderr_isopen() || poll(&ready, 1, READER_MS) == 0) return;
  lj_nosig_begin(&quiet);
  lj_nosig_end(&quiet, write(STDERR_FILENO, s, len) < 0 ? errno : 0);
}

/* Write a line. Paths and option texts in it may contain any bytes. */
static LJ_NOINLINE void write_line(const char *text)
{
  char line[LOG_MAX] = LOG_NAME;
  size_t n = strlen(line);
  lj_cleantext(line + n, sizeof(line) - 1 - n, text, strlen(text));
  n = strlen(line);
  line[n] = '\n';
  write_stderr(line, n + 1);
}

void lj_say(const char *format, ...)
{
  char text[LOG_MAX];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  write_line(text);
}

void lj_log_cut(const char *path, const char *ending, int err)
{
  static int said;
  size_t len = strlen(path), cut = len > LOG_PROBLEM_MAX ? len - LOG_PROBLEM_MAX : 0;
  if (__atomic_fetch_add(&said, 1, __ATOMIC_RELAXED) >= CUT_MAX) return;
  lj_say(": %s%s%s: %s; the profile is incomplete", cut ? "..." : "", path + cut, ending,
	 strerror(err));
}

void lj_log_nothread(int err)
{
  static int said;
  if (__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED)) return;
  lj_say(": the background thread of the profiler did not start: %s; the VM writes "
	 "the profile",
	 strerror(err));
}
