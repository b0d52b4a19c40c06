/* TIMEOUT: 600
** A custom backtracer: frame_no counts from 1, a backtracer returns addresses, and NULL
** stops it. One backtracer uses libunwind, one uses backtrace(3); both give stacks under
** main.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <execinfo.h>
#include <signal.h>

#include "session.h"

#define DEPTH 200

static volatile int traces, refused;

/* Hand over n frames. */
static void give(void *(*frame_writer)(int, void *), void **frames, int n)
{
  int i;
  traces++;
  for (i = 0; i < n; i++)
    if (!frame_writer(i + 1, frames[i])) {
      refused++;
      return;
    }
}

static void by_libunwind(void *(*frame_writer)(int, void *))
{
  unw_context_t context;
  unw_cursor_t cursor;
  void *frames[DEPTH];
  int n = 0;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  do {
    unw_word_t ip;
    if (unw_get_reg(&cursor, UNW_REG_IP, &ip) != 0 || ip == 0) break;
    frames[n++] = (void *)ip;
  } while (n < DEPTH && unw_step(&cursor) > 0);
  give(frame_writer, frames, n);
}

static void by_glibc(void *(*frame_writer)(int, void *))
{
  void *frames[DEPTH];
  give(frame_writer, frames, backtrace(frames, DEPTH));
}

static void one_at_a_time(void *(*frame_writer)(int, void *))
{
  /* Innermost first, until the writer has enough. */
  static char code[4];
  int n;
  traces++;
  for (n = 1; n < 6; n++) {
    void *taken = frame_writer(n, &code[n % 4]);
    CHECK(taken == &code[n % 4]);
  }
  CHECK(frame_writer(6, NULL) == NULL); /* No address, no frame. */
  CHECK(frame_writer(0, code) == NULL); /* They count from 1. */
  CHECK(frame_writer(-1, code) == NULL);
}

static void nothing(void *(*frame_writer)(int, void *))
{
  (void)frame_writer;
  traces++;
}

static char *profile(lua_State *L, luam_Sysprof_backtracer backtracer, int mode,
		     uint64_t *samples)
{
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, mode, 65536);
  char *folded;
  CHECK_EQ(luaM_sysprof_set_backtracer(backtracer), PROFILE_SUCCESS);
  traces = refused = 0;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  session_run(L, 150);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  *samples = session_samples();
  CHECK_EQ(traces, *samples); /* Called for each. */
  CHECK_EQ(refused, 0);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "", &folded), 0);
  CHECK_EQ(folded_count(folded, ""), *samples);
  sink_free(&sink);
  return folded;
}

int main(void)
{
  lua_State *L = session_vm();
  void *frames[DEPTH];
  uint64_t samples;
  char *folded;
  backtrace(frames, DEPTH); /* Loads its library. */
  unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_NONE);
  session_script(
    L,
    "jit.off()\n"
    "local function lua() local s = 0 for i = 1, 1e4 do s = s + i end return s end\n"
    /* Far more than the look at the report: a busy processor is lost in its system calls. */
    "function work() for i = 1, 500 do pcall(lua) end end");

  folded = profile(L, by_glibc, LUAM_SYSPROF_CALLGRAPH, &samples);
  CHECK(folded_count(folded, "main") > samples * 9 / 10);
  CHECK(folded_count(folded, "work.lua:2") > samples * 9 / 10);
  CHECK_EQ(folded_count(folded, ";backtrace"), 0); /* Nothing of the handler. */
  CHECK_EQ(folded_count(folded, "by_glibc"), 0);
  CHECK_EQ(folded_count(folded, "session_tick"), 0);
  if (check_failures) puts(folded);
  free(folded);

  folded = profile(L, by_libunwind, LUAM_SYSPROF_CALLGRAPH, &samples);
  CHECK(folded_count(folded, "main") > samples * 9 / 10);
  CHECK_EQ(folded_count(folded, "by_libunwind"), 0);
  free(folded);

  folded = profile(L, by_glibc, LUAM_SYSPROF_LEAF, &samples);
  CHECK_EQ(folded_count(folded, "main;"), 0);
  free(folded);

  folded = profile(L, one_at_a_time, LUAM_SYSPROF_CALLGRAPH, &samples);
  free(folded);
  folded = profile(L, nothing, LUAM_SYSPROF_CALLGRAPH, &samples);
  CHECK(folded_count(folded, "work.lua:2") > samples * 9 / 10);
  free(folded);
  lua_close(L);
  return check_status();
}
