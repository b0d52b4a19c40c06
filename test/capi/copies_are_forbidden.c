/* TIMEOUT: 600
** A seccomp filter refuses process_vm_readv, or kills its callers. Stacks through a
** library that the program can unload are complete all the same. The self-report counts
** the pages that the handler read in place. Without a filter that count is 0.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <sys/syscall.h>

#include "cpu_work.h"
#include "forbid.h"
#include "session.h"

static void burn(void)
{
  cpu_burn(2000);
}

/* Burn time below a frame of the library. */
static void (*call)(void (*)(void));

static int work(lua_State *L)
{
  (void)L;
  call(burn);
  return 0;
}

/* answer: the filter's; 0: no filter. */
static int profile(uint32_t answer)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  struct luam_Sysprof_SelfReport r;
  char *text;
  int i;
  if (answer && !forbid_call(SYS_process_vm_readv, answer)) return 77;
  lua_register(L, "work", work);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  session_run(L, 100);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  for (i = 0; i < LUAM_SYSPROF_BROKEN__MAX; i++) CHECK_EQ(r.host_broken[i], 0);
  CHECK_EQ(r.uncopied > 0, answer != 0);
  if (answer == 0) {
    CHECK_EQ(session_parse(sink.bytes, sink.len, "--no-demangle", &text), 0);
    CHECK(folded_count(text, "replaced_call") >= 90);
    free(text);
  }
  sink_free(&sink);
  lua_close(L);
  return check_status();
}

static void in_child(uint32_t answer)
{
  int status = -1;
  pid_t pid;
  pid = flush_and_fork();
  if (pid == 0) _exit(profile(answer));
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK(WIFEXITED(status));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) puts("no filter could be installed");
  else CHECK_EQ(status, 0);
}

int main(void)
{
  char path[1024];
  void *lib, *addr;
  REQUIRE(getenv("SYSPROF_BUILD") != NULL);
  snprintf(path, sizeof(path), "%s/test/replaced_a.so", getenv("SYSPROF_BUILD"));
  lib = dlopen(path, RTLD_NOW);
  REQUIRE(lib != NULL);
  addr = dlsym(lib, "replaced_call");
  REQUIRE(addr != NULL);
  memcpy(&call, &addr, sizeof(call));
  in_child(0);
  in_child(SECCOMP_RET_ERRNO | EPERM);
  in_child(SECCOMP_RET_KILL_PROCESS);
  return check_status();
}
