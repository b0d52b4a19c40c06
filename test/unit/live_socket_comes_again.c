/* The socket of live control gets a new name when something has removed the old one, or the folder.
** Names of processes that have ended go at one start, however many they are, and whatever names of
** processes that exist are there. So do those in a later folder, and the folder itself.
** BASE: none, its modules know no VM
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "lj_def.h"
#include "profile/live/lj_livesock.h"
#include "check.h"

#define STALE  3000
#define NOBODY 5000000 /* More than the highest PID of Linux. */

static const char *later = ""; /* Of the folder's name: "" or ".9". */
static char folder[64], path[108];

static void path_set(long pid)
{
  snprintf(folder, sizeof(folder), "/tmp/.luajit-sysprof-%ld%s", (long)geteuid(), later);
  snprintf(path, sizeof(path), "%s/%ld", folder, pid);
}

/* Returns 0, or the errno of a connection. */
static int try_connect(void)
{
  struct sockaddr_un sa = { .sun_family = AF_UNIX };
  int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), err = 0;
  path_set(getpid());
  strcpy(sa.sun_path, path);
  if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0) err = errno;
  close(fd);
  return err;
}

/* A killed process leaves a name behind. */
static void leave_name(long pid)
{
  struct sockaddr_un sa = { .sun_family = AF_UNIX };
  int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  path_set(pid);
  strcpy(sa.sun_path, path);
  if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0) REQUIRE(errno == EADDRINUSE);
  close(fd);
}

static int stale_names(void)
{
  struct stat st;
  int i, n = 0;
  for (i = 0; i < STALE; i++) {
    path_set(NOBODY + i);
    n += (lstat(path, &st) == 0);
  }
  return n;
}

static void reopen(void)
{
  const char *why = lj_livesock_open();
  if (why) printf("%s\n", why);
  CHECK(why == NULL);
}

/* The user had another folder while somebody had taken the first names. */
static void later_folder(void)
{
  struct stat st;
  later = ".9";
  path_set(NOBODY);
  REQUIRE(mkdir(folder, 0700) == 0 || errno == EEXIST);
  leave_name(NOBODY);
  later = "";
  reopen();
  CHECK_EQ(try_connect(), 0);
  later = ".9";
  path_set(NOBODY);
  CHECK(lstat(path, &st) != 0 && errno == ENOENT);
  CHECK(lstat(folder, &st) != 0 && errno == ENOENT);
  later = "";
  lj_livesock_close();
}

int main(void)
{
  int i;
  reopen();
  CHECK_EQ(try_connect(), 0);
  CHECK_EQ(unlink(path), 0);
  CHECK_EQ(try_connect(), ENOENT);
  /* The first look after the open comes at once; later ones from time to time. */
  reopen();
  CHECK_EQ(try_connect(), 0);
  lj_livesock_close();
  CHECK_EQ(try_connect(), ENOENT);
  /* The folder has gone, too, unless another process uses it. */
  reopen();
  path_set(getpid());
  CHECK_EQ(unlink(path), 0);
  CHECK(rmdir(folder) == 0 || errno == ENOTEMPTY);
  reopen();
  CHECK_EQ(try_connect(), 0);
  for (i = 0; i < STALE; i++) leave_name(NOBODY + i);
  lj_livesock_close();
  reopen();
  CHECK_EQ(stale_names(), 0);
  CHECK_EQ(try_connect(), 0);
  lj_livesock_close();
  later_folder();
  return check_status();
}
