/*
** Live control and clocks share a signal, whichever comes first: a client is served while a profile
** runs, and after it. The program's action is back after the end of both.
** BASE: none, files, sockets, signals, processes; the VM runs a loop, or none
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <signal.h>

#include "live_client.h"
#include "session.h"

#define TRIES 100 /* Profiles until the action is back. */

static _Atomic int is_over;

static void check_dump(void)
{
  int file = live_file(), fd = live_ask(getpid(), "dump", file);
  CHECK(strcmp(live_answer(fd), "ok\nvms=1\nanswered=1") == 0);
  close(fd);
  close(file);
}

static void *dumps(void *arg)
{
  int i;
  for (i = 0; i < 20; i++) check_dump();
  is_over = 1;
  return arg;
}

static void *records(void *arg)
{
  int file = live_file(), fd = live_ask(getpid(), "record\nduration=100ms", file);
  CHECK(strstr(live_answer(fd), "started=1") != NULL);
  CHECK(strncmp(live_answer(fd), "done", 4) == 0);
  close(fd);
  close(file);
  check_dump();
  is_over = 1;
  return arg;
}

/* Run Lua code while a client asks. */
static void serve(lua_State *L, void *(*client)(void *))
{
  pthread_t thread;
  is_over = 0;
  REQUIRE(pthread_create(&thread, NULL, client, NULL) == 0);
  while (!is_over) {
    session_script(L, "work()");
    raise(CLOCK_SIGNAL); /* Of another sender: it does nothing. */
  }
  pthread_join(thread, NULL);
}

/* Is the program's action back? Ours stays where a thread gets no processor for so long that it
** may still meet a signal. The next profile looks again.
*/
static void check_action(const struct luam_Sysprof_Options *opt)
{
  struct sigaction now;
  int i;
  for (i = 0; i < TRIES; i++) {
    lua_State *L;
    REQUIRE(sigaction(CLOCK_SIGNAL, NULL, &now) == 0);
    if (now.sa_handler == SIG_DFL) return;
    L = session_vm();
    CHECK_EQ(luaM_sysprof_start(L, opt), PROFILE_SUCCESS);
    CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
    lua_close(L);
  }
  CHECK(!"the action is the program's");
}

static void check(int is_live_first, const char *clock)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  char *text;
  opt.clocks = clock;
  if (is_live_first) CHECK_EQ(luaM_sysprof_live(L), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  if (!is_live_first) CHECK_EQ(luaM_sysprof_live(L), PROFILE_SUCCESS);
  serve(L, dumps);
  session_run(L, 20);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK(session_samples() >= 20);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "--format=folded", &text), 0);
  free(text);
  serve(L, records);
  lua_close(L);
  check_action(&opt);
  sink_free(&sink);
}

/* A VM that lets clients in ends below the profile of another one. */
static void check_end_below(void)
{
  lua_State *L = session_vm(), *live = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  struct sigaction now;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_live(live), PROFILE_SUCCESS);
  lua_close(live);
  raise(CLOCK_SIGNAL);
  session_run(L, 20);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  sink_free(&sink);
  REQUIRE(sigaction(CLOCK_SIGNAL, NULL, &now) == 0);
  CHECK(now.sa_handler == SIG_DFL);
  lua_close(L);
}

int main(void)
{
  int i;
  check_end_below();
  for (i = 0; i < 4; i++) check(i & 1, i & 2 ? "ctimer" : "wall-signal");
  return check_status();
}
