/*
** luaM_sysprof_error tells why the last call of the thread failed, whichever it was: no call
** leaves the sentence of one before. After a success, it is empty. Other threads have their own.
** BASE: none, files, sockets, signals, processes; the VM runs a loop, or none
*/

#include <pthread.h>

#include "session.h"

static lua_State *L;
static Sink sink;

/* Check the reason of the last call. why: a part of it; NULL: none. */
#define CHECK_REASON(call, status, why) \
  do { \
    const char *reason_; \
    CHECK_EQ(call, status); \
    reason_ = luaM_sysprof_error(); \
    if ((why) ? !strstr(reason_, (why) ? (why) : "") : reason_[0] != '\0') { \
      printf("%s: '%s', expected '%s'\n", #call, reason_, (why) ? (why) : ""); \
      CHECK(!"the reason"); \
    } \
  } while (0)

#define NOT_RUNNING "this VM is not profiled; start a profile first"
#define NO_ALLOC    "no profile with the event alloc runs on this VM"

static void *other_thread(void *arg)
{
  (void)arg;
  CHECK_EQ(strlen(luaM_sysprof_error()), 0);
  CHECK_REASON(luaM_sysprof_stop(NULL), PROFILE_ERRUSE, "the argument L is NULL");
  return NULL;
}

int main(void)
{
  struct luam_Sysprof_Options opt, wrong;
  struct luam_Sysprof_Counters counters;
  struct luam_Sysprof_SelfReport report;
  struct luam_Memprof_Count count;
  pthread_t thread;
  size_t len;
  char *text;
  L = session_vm();
  opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  wrong = opt;
  wrong.mode = 99;

  CHECK_REASON(luaM_sysprof_start(L, &wrong), PROFILE_ERRUSE, "mode 99 is unknown");
  CHECK_REASON(luaM_sysprof_stop(L), PROFILE_ERRRUN, NOT_RUNNING);
  CHECK_REASON(luaM_sysprof_start(NULL, &opt), PROFILE_ERRUSE, "the argument L is NULL");
  CHECK_REASON(luaM_sysprof_dump(L), PROFILE_ERRRUN, NOT_RUNNING);
  CHECK_REASON(luaM_sysprof_set_writer(NULL), PROFILE_ERRUSE,
	       "the argument writer is NULL");
  CHECK_REASON(luaM_sysprof_moved(L), PROFILE_ERRRUN, NOT_RUNNING);
  CHECK_REASON(luaM_sysprof_set_on_stop(NULL), PROFILE_ERRUSE, "on_stop is NULL");
  CHECK_REASON(luaM_memprof_stop(L), PROFILE_ERRRUN, NO_ALLOC);
  CHECK_REASON(luaM_sysprof_report(NULL), PROFILE_ERRUSE, "counters is NULL");
  CHECK_REASON(luaM_sysprof_report(&counters), PROFILE_SUCCESS, NULL);
  CHECK_REASON(luaM_sysprof_selfreport(L, NULL, 0), PROFILE_ERRUSE, "r is NULL");
  CHECK_REASON(luaM_sysprof_selfreport(L, &report, sizeof(report)), PROFILE_SUCCESS, NULL);
  CHECK_REASON(luaM_sysprof_live(NULL), PROFILE_ERRUSE, "L is NULL");
  CHECK_REASON(luaM_sysprof_set_backtracer(NULL), PROFILE_SUCCESS, NULL);

  CHECK_REASON(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS, NULL);
  CHECK_REASON(luaM_sysprof_start(L, &opt), PROFILE_ERRRUN, "this VM is profiled already");
  CHECK_REASON(luaM_sysprof_dump(L), PROFILE_SUCCESS, NULL);
  CHECK_REASON(luaM_sysprof_start_path(L, NULL, NULL), PROFILE_ERRUSE, "path is NULL");
  CHECK_REASON(luaM_sysprof_moved(L), PROFILE_SUCCESS, NULL);
  CHECK_REASON(luaM_memprof_stop(L), PROFILE_ERRRUN, NO_ALLOC);
  CHECK_REASON(luaM_sysprof_coroutines(L, "xml", &text, &len), PROFILE_ERRUSE,
	       "the format is xml");
  REQUIRE(pthread_create(&thread, NULL, other_thread, NULL) == 0);
  REQUIRE(pthread_join(thread, NULL) == 0);
  CHECK(strstr(luaM_sysprof_error(), "the format is xml") != NULL);
  CHECK_REASON(luaM_sysprof_coroutines(L, NULL, &text, &len), PROFILE_SUCCESS, NULL);
  free(text);
  CHECK_REASON(luaM_memprof_count(L, 1, 0, NULL, 0), PROFILE_ERRUSE, "count is NULL");
  CHECK_REASON(luaM_memprof_snapshot(NULL, "a.heap", 0), PROFILE_ERRUSE, "L is NULL");
  CHECK_REASON(luaM_memprof_snapshot(L, NULL, 0), PROFILE_ERRUSE, "path is NULL");
  CHECK_REASON(luaM_memprof_snapshot(L, "none/a.heap", 0), PROFILE_ERRIO, "No such file");
  CHECK_REASON(luaM_memprof_snapshot(L, "a.heap", 0), PROFILE_SUCCESS, NULL);
  CHECK_EQ(remove("a.heap"), 0);
  session_script(L, "function f() end");
  lua_getglobal(L, "f");
  CHECK_REASON(luaM_memprof_count(L, 1, 0, &count, sizeof(count)), PROFILE_SUCCESS, NULL);
  sink.fail_at = 1;
  CHECK_REASON(luaM_sysprof_stop(L), PROFILE_ERRIO, "No space left on device");
  CHECK_REASON(luaM_sysprof_stop(L), PROFILE_ERRRUN, NOT_RUNNING);
  lua_close(L);
  return check_status();
}
