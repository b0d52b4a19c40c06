/* TIMEOUT: 600
** A debugger attaches to a profiled process, sees each of its signals, stops it and lets
** it go, several times. The profile goes on and is complete.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "session.h"

#define ROUNDS  4
#define SIGNALS 25 /* In each attachment. */

static int begun[2], over[2]; /* Pipes. */

/* Is profiled until the tracer has done all. */
static void traced(const char *clock)
{
  struct pollfd poll_over = { over[0], POLLIN, 0 };
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  uint64_t samples;
  char *folded, ok = 1;
  opt.clocks = clock;
  if (luaM_sysprof_start(L, &opt) != PROFILE_SUCCESS) {
    printf("%s is left out: %s\n", clock, luaM_sysprof_error());
    ok = 0;
  }
  REQUIRE(write(begun[1], &ok, 1) == 1);
  if (!ok) exit(0);
  do {
    session_run(L, session_samples() + 1);
  } while (poll(&poll_over, 1, 0) != 1 && check_failures == 0);
  session_run(L, session_samples() + 5);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  samples = session_samples();
  CHECK_EQ(session_parse(sink.bytes, sink.len, "", &folded), 0);
  CHECK_EQ(folded_count(folded, ""), samples);
  exit(check_status());
}

/* Has the process for some of its signals. Returns 0 if that is not allowed. */
static int trace(pid_t pid)
{
  struct user_regs_struct regs;
  int status, signals = 0;
  if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0) return 0;
  REQUIRE(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) == 0);
  for (;;) {
    long signo;
    REQUIRE(waitpid(pid, &status, __WALL) == pid);
    REQUIRE(WIFSTOPPED(status));
    signo = status >> 16 ? 0 : WSTOPSIG(status); /* 0: it was interrupted. */
    CHECK(ptrace(PTRACE_GETREGS, pid, NULL, &regs) == 0);
    if (signo && ++signals == SIGNALS) {
      REQUIRE(ptrace(PTRACE_DETACH, pid, NULL, (void *)signo) == 0);
      return 1;
    }
    REQUIRE(ptrace(PTRACE_CONT, pid, NULL, (void *)signo) == 0);
  }
}

int main(void)
{
  static const char *const clocks[] = { "wall-signal", "ctimer", "task-clock" };
  size_t i;
  int k;
  for (i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
    int status;
    char ok;
    pid_t pid;
    REQUIRE(pipe(begun) == 0 && pipe(over) == 0);
    pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) traced(clocks[i]);
    REQUIRE(read(begun[0], &ok, 1) == 1);
    for (k = 0; ok && k < ROUNDS; k++) {
      if (trace(pid)) continue;
      printf("no process can be traced here: %s\n", strerror(errno));
      kill(pid, SIGKILL);
      return 77;
    }
    REQUIRE(write(over[1], "x", 1) == 1);
    REQUIRE(waitpid(pid, &status, 0) == pid);
    CHECK_EQ(status, 0);
    close(begun[0]);
    close(begun[1]);
    close(over[0]);
    close(over[1]);
  }
  return check_status();
}
