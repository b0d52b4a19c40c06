/* A fork while a start is due: the VM has not served it, because it runs C code. The child serves it,
** too. So it does with a delay that is not over, and with a command in a control file of both.
*/

#include <stdlib.h>
#include <sys/stat.h>

#include "session.h"
#include "lj_obj.h"
#include "profile/start/lj_sysprof.h"
#include "profile/base/lj_relaxed.h"
#include "profile/control/lj_ctlslot.h"
#include "profile/vm/lj_safepoint.h"

#define SECONDS 60

static void wait_for_start(const Control *c)
{
  time_t deadline = time(NULL) + SECONDS;
  while (!(relaxed_get(&c->sig.pending) & CONTROL_START) && time(NULL) < deadline)
    usleep(1000);
  CHECK(relaxed_get(&c->sig.pending) & CONTROL_START);
}

static void work_until_start(lua_State *L)
{
  time_t deadline = time(NULL) + SECONDS;
  while (!lj_sysprof_isrunning(G(L)) && time(NULL) < deadline) session_work(L);
  CHECK(lj_sysprof_isrunning(G(L)));
  CHECK_EQ(lj_sysprof_stop(G(L)), PROFILE_SUCCESS);
}

static int exists(const char *name)
{
  struct stat st;
  return stat(name, &st) == 0;
}

/* Fork here, and run in both what comes next. Writes PATH, and PATH.PID in the child. */
static void both(lua_State *L, const char *path, void (*next)(lua_State *L))
{
  char name[64];
  int status = 0;
  pid_t pid = fork();
  REQUIRE(pid >= 0);
  next(L);
  if (pid == 0) _exit(check_status());
  while (waitpid(pid, &status, 0) < 0) {}
  CHECK_EQ(WEXITSTATUS(status), 0);
  snprintf(name, sizeof(name), "%s.%ld", path, (long)pid);
  if (path[0]) {
    CHECK(exists(path));
    CHECK(exists(name));
  }
}

static void delay_is_over(void)
{
  lua_State *L = session_vm();
  session_script(
    L,
    "assert(misc.sysprof.start { mode = 'C', path = 'delay', delay = 0.001, fork = true })");
  wait_for_start(lj_ctlslot_of(G(L)));
  both(L, "delay", work_until_start);
  lua_close(L);
}

/* The VM reaches a safe point that nobody needs any more. */
static void still_waits(lua_State *L)
{
  const Control *c = lj_ctlslot_of(G(L));
  lj_safepoint_request(G(L), SAFEPOINT_CONTROL);
  session_work(L);
  CHECK(!lj_safepoint_iswanted(G(L)));
  CHECK(lj_ctlslot_isdue(c));
  CHECK(c->poll.has_time);
  session_script(L, "assert(misc.sysprof.stop())");
}

static void delay_goes_on(void)
{
  lua_State *L = session_vm();
  session_script(
    L,
    "assert(misc.sysprof.start { mode = 'C', path = 'late', delay = 1000, fork = true })");
  both(L, "", still_waits);
  CHECK(!exists("late"));
  lua_close(L);
}

/* A VM under the control of a file, with this option. */
static lua_State *controlled_vm(const char *file, const char *option)
{
  char value[512], folder[256];
  lua_State *L;
  REQUIRE(getcwd(folder, sizeof(folder)) != NULL);
  snprintf(value, sizeof(value), "control=%s/%s,path=%s-%%r,fork,%s", folder, file, file,
	   option);
  setenv("LUAJIT_SYSPROF", value, 1);
  L = session_vm();
  unsetenv("LUAJIT_SYSPROF");
  REQUIRE(lj_ctlslot_of(G(L)) != NULL);
  return L;
}

static void delay_beside_a_file(void)
{
  lua_State *L = controlled_vm("beside", "delay=1ms");
  wait_for_start(lj_ctlslot_of(G(L)));
  both(L, "beside-1", work_until_start);
  lua_close(L);
}

static void word_in_a_file(void)
{
  lua_State *L = controlled_vm("word", "paused");
  FILE *f = fopen("word", "w");
  REQUIRE(f != NULL && fputs("start", f) >= 0 && fclose(f) == 0 &&
	  chmod("word", 0600) == 0);
  wait_for_start(lj_ctlslot_of(G(L)));
  both(L, "word-1", work_until_start);
  lua_close(L);
}

int main(void)
{
  delay_is_over();
  delay_goes_on();
  delay_beside_a_file();
  word_in_a_file();
  return check_status();
}
