/* Another user exchanges a file between the profiler's check and its open. The profiler
** checks again. Here openat() exchanges the file.
** BASE: none, its modules know no VM
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "lj_arch.h"
#include "profile/output/lj_outfile.h"
#include "check.h"

static const char *exchange; /* Put in the place of all/x at its next open. */
static int exchanged;

static int open_at(int dir, const char *name, int flags, mode_t mode)
{
  if (exchange && strcmp(name, "x") == 0 && !(flags & O_PATH)) {
    exchanged += (rename(exchange, "all/x") == 0);
    exchange = NULL;
  }
  return (int)syscall(SYS_openat, dir, name, flags, mode);
}

/* In the place of the C library's. */
#define OPEN_AT(NAME) \
  int NAME(int dir, const char *name, int flags, ...) \
  { \
    va_list args; \
    mode_t mode; \
    va_start(args, flags); \
    mode = (flags & O_CREAT) ? va_arg(args, mode_t) : 0; \
    va_end(args); \
    return open_at(dir, name, flags, mode); \
  }
OPEN_AT(openat)
OPEN_AT(openat64)

static void make(const char *path, const char *text)
{
  FILE *f = fopen(path, "wb");
  REQUIRE(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

int main(void)
{
  const char *problem;
  struct stat st;
  int fd, created;
  mkdir("all", 0777);
  REQUIRE(chmod("all", 01777) == 0);
  unlink("secret");
  unlink("all/x");
  unlink("all/y");

  /* By a second name of another file, which is a profile: refused. */
  make("all/x", "");
  make("secret", "ljs\3");
  REQUIRE(link("secret", "all/y") == 0);
  exchange = "all/y";
  fd = lj_outfile_open("all/x", 0, &created, &problem);
  CHECK_EQ(exchanged, 1);
  CHECK_EQ(fd, -1);
  CHECK(problem && strstr(problem, "second name"));
  if (fd >= 0) close(fd);

  /* By another file that may be written: that one is opened. */
  unlink("all/x");
  make("all/x", "");
  make("all/y", "");
  REQUIRE(stat("all/y", &st) == 0);
  exchange = "all/y";
  fd = lj_outfile_open("all/x", 0, &created, &problem);
  CHECK_EQ(exchanged, 2);
  REQUIRE(fd >= 0);
  {
    struct stat now;
    REQUIRE(fstat(fd, &now) == 0);
    CHECK_EQ((uint64_t)now.st_ino, (uint64_t)st.st_ino);
  }
  close(fd);
  return check_status();
}
