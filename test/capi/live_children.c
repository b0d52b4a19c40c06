/*
** Live control: a child of fork() has a socket of its own, its parent keeps its own, and each name
** goes with its process. Another user's folder is refused.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/stat.h>
#include <sys/wait.h>

#include "live_client.h"
#include "session.h"

#define OTHER_UID 64321 /* Nobody uses it. */

/* Ask a process, whose socket may not be open yet. */
static int answers(pid_t pid)
{
  const char *got;
  int fd, tries = 0;
  while ((fd = live_connect(pid)) < 0 && tries++ < 1000) usleep(10000);
  if (fd < 0) return 0;
  live_send(fd, "info", 4, -1, 0);
  got = live_answer(fd);
  close(fd);
  return strncmp(got, "ok\n", 3) == 0 && strstr(got, "vms=1") != NULL;
}

static void child_of(lua_State *L)
{
  int gate[2], status;
  pid_t pid;
  char byte;
  REQUIRE(pipe(gate) == 0);
  pid = flush_and_fork();
  if (pid == 0) {
    close(gate[1]);
    if (read(gate[0], &byte, 1) != 0) _exit(1);
    session_script(L, "work()");
    exit(0);
  }
  close(gate[0]);
  CHECK(answers(pid));
  CHECK(answers(getpid()));
  close(gate[1]);
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK_EQ(status, 0);
  CHECK(live_connect(pid) < 0);
  CHECK(access(live_path(pid), F_OK) != 0);
  CHECK(answers(getpid()));
}

/* A child that ends without a word leaves a name; the next socket of the user removes it. */
static void killed_child(lua_State *L)
{
  pid_t pid = flush_and_fork();
  if (pid == 0) {
    while (1) pause();
  }
  CHECK(answers(pid));
  kill(pid, SIGKILL);
  REQUIRE(waitpid(pid, NULL, 0) == pid);
  child_of(L);
  CHECK(access(live_path(pid), F_OK) != 0);
}

static void program_runs(void)
{
  pid_t pid = flush_and_fork();
  if (pid == 0) {
    execl("/bin/sleep", "sleep", "0.5", (char *)NULL);
    _exit(1);
  }
  REQUIRE(waitpid(pid, NULL, 0) == pid);
  CHECK(access(live_path(pid), F_OK) != 0);
}

#define FOLDERS 9

/* Make all names of a folder by make, or remove what has them. */
static int take_names(const char *path, int (*make)(const char *path))
{
  char name[80];
  int n, result = 0;
  for (n = 1; n <= FOLDERS; n++) {
    snprintf(name, sizeof(name), n == 1 ? "%s" : "%s.%d", path, n);
    if (unlink(name) != 0) rmdir(name);
    if (make) result |= make(name);
  }
  return result;
}

/* As another user: the folder of that user is a trap. */
static void other_user(const char *expected, int (*lay)(const char *path))
{
  char path[64];
  int status;
  pid_t pid;
  snprintf(path, sizeof(path), "/tmp/.luajit-sysprof-%d", OTHER_UID);
  take_names(path, NULL);
  REQUIRE(lay(path) == 0);
  pid = flush_and_fork();
  if (pid == 0) {
    lua_State *L;
    const char *why;
    REQUIRE(setresuid(OTHER_UID, OTHER_UID, OTHER_UID) == 0);
    L = session_vm();
    CHECK_EQ(luaM_sysprof_live(L), PROFILE_ERRIO);
    why = luaM_sysprof_error();
    if (!strstr(why, expected)) printf("got '%s', expected '%s'\n", why, expected);
    CHECK(strstr(why, expected) != NULL);
    _exit(check_status());
  }
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK_EQ(status, 0);
  take_names(path, NULL);
}

static int make_folder(const char *path)
{
  return mkdir(path, 0700);
}

static int lay_folders(const char *path)
{
  return take_names(path, make_folder);
}

static int lay_link(const char *path)
{
  return symlink("/tmp", path) || lchown(path, OTHER_UID, OTHER_UID);
}

static int lay_open(const char *path)
{
  return mkdir(path, 0777) || chmod(path, 0777) || chown(path, OTHER_UID, OTHER_UID);
}

int main(void)
{
  lua_State *L = session_vm();
  if (geteuid() == 0) {
    other_user("another user owns it, and others have its other names", lay_folders);
    other_user("it is a link or a file", lay_link);
    other_user("other users may enter it", lay_open);
  } else {
    puts("not root: the folders of another user are left out");
  }
  CHECK_EQ(luaM_sysprof_live(L), PROFILE_SUCCESS);
  CHECK(answers(getpid()));
  child_of(L);
  killed_child(L);
  program_runs();
  lua_close(L);
  CHECK(access(live_path(getpid()), F_OK) != 0);
  return check_status();
}
