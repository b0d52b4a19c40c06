/* A thread whose C stack has no room for a signal cannot start a profile: the first signal would
** end the program. A larger one can. Each way to start says so in the same words, and of a small
** signal stack, too. A profile does not follow its VM to such a thread.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <limits.h>
#include <pthread.h>

#include "session.h"
#include "small_stack.h"

static lua_State *L;
static int status, error;
static char why[512];

static void *start(void *arg)
{
  struct luam_Sysprof_Options *opt = (struct luam_Sysprof_Options *)arg;
  status = luaM_sysprof_start(L, opt);
  error = errno;
  snprintf(why, sizeof(why), "%s", luaM_sysprof_error());
  return arg;
}

/* The same from Lua. */
static void *start_lua(void *arg)
{
  status = luaL_dostring(L, "return (select(2, misc.sysprof.start { mode = 'D' }))") != 0;
  snprintf(why, sizeof(why), "%s", lua_tostring(L, -1));
  lua_settop(L, 0);
  return arg;
}

static void *move(void *arg)
{
  status = luaM_sysprof_moved(L);
  error = errno;
  snprintf(why, sizeof(why), "%s", luaM_sysprof_error());
  return arg;
}

/* Start a profile on a thread with such a stack. */
static void start_on(size_t size, void *(*start)(void *), struct luam_Sysprof_Options *opt)
{
  pthread_attr_t attr;
  pthread_t thread;
  size_t page = 4096, least = PTHREAD_STACK_MIN;
  size = (size + page - 1) & ~(page - 1);
  REQUIRE(pthread_attr_init(&attr) == 0);
  REQUIRE(pthread_attr_setstacksize(&attr, size > least ? size : least) == 0);
  REQUIRE(pthread_create(&thread, &attr, start, opt) == 0);
  REQUIRE(pthread_join(thread, NULL) == 0);
  REQUIRE(pthread_attr_destroy(&attr) == 0);
  if (status != PROFILE_SUCCESS) printf("%s\n", why);
}

int main(void)
{
  Sink sink;
  char in_lua[sizeof(why)];
  stack_t ss = { 0 };
  struct luam_Sysprof_Options opt;
  if (small_stack_skipped()) return 77;
  L = session_vm();
  opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  start_on(small_stack_kernel_max() + SMALL_STACK_HANDLER + 4096, start_lua, &opt);
  CHECK_EQ(status, 0);
  snprintf(in_lua, sizeof(in_lua), "%s", why);
  start_on(small_stack_kernel_max() + SMALL_STACK_HANDLER + 4096, start, &opt);
  CHECK(strcmp(why, in_lua) == 0);
  CHECK_EQ(status, PROFILE_ERRMEM);
  CHECK_EQ(error, ENOMEM);
  CHECK(strstr(why, "the C stack of the VM's thread has ") != NULL);
  CHECK(strstr(why, "ulimit -s") != NULL);
  start_on(small_stack_kernel_max() + SMALL_STACK_HANDLER + 32 * 1024, start, &opt);
  CHECK_EQ(status, PROFILE_SUCCESS);
  if (status == PROFILE_SUCCESS) CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  sink.len = 0;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  start_on(small_stack_kernel_max() + SMALL_STACK_HANDLER + 4096, move, &opt);
  CHECK_EQ(status, PROFILE_ERRMEM);
  CHECK_EQ(error, ENOMEM);
  CHECK(strstr(why, "the C stack of the VM's thread has ") != NULL);
  session_run(L, session_samples() + 3);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  ss.ss_size = small_stack_kernel_max() + 1024;
  ss.ss_sp = small_stack(ss.ss_size);
  REQUIRE(sigaltstack(&ss, NULL) == 0);
  start_lua(NULL);
  CHECK(strstr(why, "the signal stack of the thread has ") != NULL);
  start(&opt);
  CHECK_EQ(status, PROFILE_ERRMEM);
  CHECK(strstr(why, "the signal stack of the thread has ") != NULL);
  lua_close(L);
  return check_status();
}
