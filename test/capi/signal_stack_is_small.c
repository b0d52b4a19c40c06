/* TIMEOUT: 600
** A signal stack for the kernel's largest frame and SMALL_STACK_HANDLER is enough for the
** handler. The program's signal stack stays set. A start on a smaller one is refused. If the program
** sets a smaller one later, samples are left out, and the profile says so.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>

#include "session.h"
#include "small_stack.h"

#define BELOW 4096
#define PAINT 0x5a

/* Bytes below the stack belong to the program. */
static void set_later(lua_State *L)
{
  static uint8_t area[BELOW + 64 * 1024];
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 2048);
  struct luam_Sysprof_SelfReport r;
  stack_t ss, old;
  uint64_t samples;
  size_t i, painted = 0;
  memset(area, PAINT, BELOW);
  memset(&ss, 0, sizeof(ss));
  ss.ss_sp = area + BELOW;
  ss.ss_size = small_stack_kernel_max() + 1024;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  session_run(L, 20);
  REQUIRE(sigaltstack(&ss, &old) == 0);
  samples = session_samples();
  for (i = 0; i < 300; i++) session_work(L);
  CHECK_EQ(session_samples(), samples);
  REQUIRE(sigaltstack(&old, NULL) == 0);
  session_run(L, samples + 20);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  while (painted < BELOW && area[painted] == PAINT) painted++;
  CHECK_EQ(painted, BELOW);
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  printf("%s\n", r.limit);
  CHECK(strstr(r.limit, "bytes left; a sample needs 6144, so samples are missing") != NULL);
  sink_free(&sink);
}

int main(void)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 2048);
  size_t size = small_stack_kernel_max() + SMALL_STACK_HANDLER;
  stack_t ss, now;
  uint64_t samples;
  char *folded;
  if (small_stack_skipped()) return 77;
  printf("the signal stack has %zu bytes\n", size);
  memset(&ss, 0, sizeof(ss));
  ss.ss_sp = small_stack(size);
  ss.ss_size = size - 1;
  REQUIRE(sigaltstack(&ss, NULL) == 0);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_ERRMEM);
  CHECK_EQ(errno, ENOMEM);
  CHECK(strstr(luaM_sysprof_error(), "the signal stack of the thread has ") != NULL);
  ss.ss_size = size;
  REQUIRE(sigaltstack(&ss, NULL) == 0);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  session_run(L, 300);
  REQUIRE(sigaltstack(NULL, &now) == 0);
  CHECK(now.ss_sp == ss.ss_sp && now.ss_size == ss.ss_size && now.ss_flags == 0);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  REQUIRE(sigaltstack(NULL, &now) == 0);
  CHECK(now.ss_sp == ss.ss_sp && now.ss_size == ss.ss_size && now.ss_flags == 0);
  samples = session_samples();
  CHECK_EQ(session_parse(sink.bytes, sink.len, "", &folded), 0);
  CHECK_EQ(folded_count(folded, ""), samples);
  CHECK(folded_count(folded, "main") > samples * 8 / 10);
  sink_free(&sink);
  set_later(L);
  lua_close(L);
  return check_status();
}
