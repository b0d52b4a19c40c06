/* TIMEOUT: 600
** In nested pid namespaces a child of fork() has its parent's process id. Still, the
** child does not take the parent's profile for its own, whether fork() or clone() made
** it. The child can start a profile, but not into its parent's file. The parent's profile
** goes on.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "session.h"

#define PATH       "number.bin"
#define CHILD_PATH "child.bin"

static const char *clocks;

static struct luam_Sysprof_Options options(void)
{
  struct luam_Sysprof_Options opt;
  memset(&opt, 0, sizeof(opt));
  opt.mode = LUAM_SYSPROF_CALLGRAPH;
  opt.interval_ns = 1000000;
  opt.clocks = clocks;
  return opt;
}

/* Returns the exit status, or -1. */
static int wait_for(pid_t pid)
{
  int status;
  while (waitpid(pid, &status, 0) < 0) REQUIRE(errno == EINTR);
  if (WIFSIGNALED(status)) printf("%s: signal %d\n", clocks, WTERMSIG(status));
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void in_child(lua_State *L)
{
  struct luam_Sysprof_Options opt = options();
  check_failures = 0;
  alarm(200); /* A hang ends the child. */
  CHECK_EQ(getpid(), 1);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_ERRRUN);
  session_work(L);
  CHECK_EQ(luaM_sysprof_start_path(L, &opt, PATH), PROFILE_ERRIO);
  CHECK_EQ(errno, EBUSY);
  REQUIRE(luaM_sysprof_start_path(L, &opt, CHILD_PATH) == PROFILE_SUCCESS);
  session_run(L, 20);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  fflush(stdout);
  _exit(check_status());
}

/* The first process of a namespace, profiled, and its children. */
static void in_parent(lua_State *L)
{
  struct luam_Sysprof_Options opt = options();
  pid_t pid;
  CHECK_EQ(getpid(), 1);
  if (luaM_sysprof_start_path(L, &opt, PATH) != PROFILE_SUCCESS) {
    printf("%s is left out: %s\n", clocks, luaM_sysprof_error());
    fflush(stdout);
    _exit(check_status());
  }
  session_run(L, 20);
  fflush(stdout);
  pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
  REQUIRE(pid >= 0);
  if (pid == 0) in_child(L);
  CHECK_EQ(wait_for(pid), 0);
  REQUIRE(unshare(CLONE_NEWPID) == 0);
  pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) in_child(L);
  CHECK_EQ(wait_for(pid), 0);
  session_run(L, session_samples() + 20);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  fflush(stdout);
  _exit(check_status());
}

int main(void)
{
  static const char *const names[] = { "task-clock", "ctimer", "itimer", "wall-signal",
				       "page-faults:u" };
  lua_State *L = session_vm();
  size_t i;
  if (unshare(CLONE_NEWUSER) != 0 && geteuid() != 0) {
    printf("skipped: no user namespace: %s\n", strerror(errno));
    return 77;
  }
  /* LuaJIT's allocator maps a string of 4 MB anew each time: 1,000 page faults. */
  session_script(L, "local f, n = work, 0 function work() f() n = n + 1\n"
		    "  local s = (n .. ' '):rep(2e6) s = nil collectgarbage() end");
  for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    pid_t pid;
    clocks = names[i];
    fflush(stdout);
    pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
    if (pid < 0) {
      printf("skipped: no pid namespace: %s\n", strerror(errno));
      return 77;
    }
    if (pid == 0) in_parent(L);
    CHECK_EQ(wait_for(pid), 0);
  }
  lua_close(L);
  return check_status();
}
