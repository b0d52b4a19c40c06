/* TIMEOUT: 600
** posix_spawn, system and popen during a profile: the other programs run to their end, no
** signal of the clock hits them, and the profile goes on.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <spawn.h>
#include <stdio.h>

#include "session.h"

/* Uses CPU time of several intervals. */
#define SCRIPT "i=0; while [ $i -lt 8000 ]; do i=$((i+1)); done; echo done; exit 7"
#define ROUNDS 3

static int by_spawn(void)
{
  static char sh[] = "sh", c[] = "-c", script[] = "exec >spawned.txt; " SCRIPT;
  char *argv[] = { sh, c, script, NULL };
  char *env[] = { NULL };
  pid_t pid;
  int status;
  REQUIRE(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, env) == 0);
  while (waitpid(pid, &status, 0) < 0) REQUIRE(errno == EINTR);
  return status;
}

static int by_system(void)
{
  return system("{ " SCRIPT "; } >/dev/null");
}

static int by_popen(void)
{
  FILE *f = popen(SCRIPT, "r");
  char line[64] = "";
  REQUIRE(f != NULL);
  CHECK(fgets(line, sizeof(line), f) != NULL);
  CHECK(strcmp(line, "done\n") == 0);
  return pclose(f);
}

static void check(lua_State *L, const char *name, int (*call)(void))
{
  int i;
  for (i = 0; i < ROUNDS; i++) {
    int status = call();
    if (!(WIFEXITED(status) && WEXITSTATUS(status) == 7)) {
      printf("%s: status %x\n", name, (unsigned)status);
      CHECK(!"the program did not end as it does");
    }
    session_run(L, session_samples() + 5);
  }
}

int main(void)
{
  static const char *const clocks[] = { "ctimer", "wall-signal", "task-clock", "itimer" };
  lua_State *L = session_vm();
  size_t i;
  for (i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
    Sink sink;
    struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
    uint64_t samples;
    char *folded;
    opt.clocks = clocks[i];
    if (luaM_sysprof_start(L, &opt) != PROFILE_SUCCESS) {
      CHECK(i >= 2);
      printf("%s is left out: %s\n", clocks[i], luaM_sysprof_error());
      continue;
    }
    check(L, "posix_spawn", by_spawn);
    check(L, "system", by_system);
    check(L, "popen", by_popen);
    CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
    CHECK_EQ(sink.stops, 1);
    samples = session_samples();
    CHECK_EQ(session_parse(sink.bytes, sink.len, "", &folded), 0);
    CHECK_EQ(folded_count(folded, ""), samples);
    free(folded);
    sink_free(&sink);
  }
  lua_close(L);
  return check_status();
}
