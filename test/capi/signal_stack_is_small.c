/* TIMEOUT: 600
** BASE: none, files, sockets, signals, processes; the VM runs a loop, or none
** A signal stack for the kernel's largest frame and SMALL_STACK_HANDLER is enough for the
** handler. The program's signal stack stays set. A start on a smaller one is refused. If the program
** sets a smaller one later, samples are lost, and the profile says so. Their time is `[lost samples]`, however
** small the stack is: what runs with a large stack again has its own time only.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>

#include "cpu_work.h"
#include "small_stack.h"

#define BELOW   4096
#define PAINT   0x5a
#define COUNTED 720    /* Bytes beyond the kernel's frame: enough to count a lost tick. */
#define PART_US 300000 /* CPU time with each stack. */

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
  CHECK(strstr(r.limit, "bytes left; a sample needs 6144, so samples are lost") != NULL);
  sink_free(&sink);
}

/* Half of the time has a signal stack of so many bytes beyond the kernel's frame. goes_on: the half with
** a large one follows.
*/
static void time_is_lost(lua_State *L, const char *clock, size_t more, int goes_on)
{
  static uint8_t area[BELOW + 64 * 1024];
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  struct luam_Sysprof_SelfReport r;
  stack_t ss, old;
  uint64_t all, lost;
  size_t painted = 0;
  char *folded;
  memset(area, PAINT, BELOW);
  memset(&ss, 0, sizeof(ss));
  ss.ss_sp = area + BELOW;
  ss.ss_size = small_stack_kernel_max() + more;
  opt.clocks = clock;
  opt.interval_ns = 5000000;
  if (luaM_sysprof_start(L, &opt) != PROFILE_SUCCESS) {
    printf("%s is left out: %s\n", clock, luaM_sysprof_error());
    sink_free(&sink);
    return;
  }
  if (!goes_on) cpu_burn(PART_US);
  REQUIRE(sigaltstack(&ss, &old) == 0);
  cpu_run_lua(L, PART_US);
  if (goes_on) {
    REQUIRE(sigaltstack(&old, NULL) == 0);
    cpu_burn(PART_US);
  }
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  if (!goes_on) REQUIRE(sigaltstack(&old, NULL) == 0);
  while (painted < BELOW && area[painted] == PAINT) painted++;
  CHECK_EQ(painted, BELOW);
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  CHECK(strstr(r.limit, "bytes left; a sample needs") != NULL);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "--weight=event", &folded), 0);
  all = folded_count(folded, "");
  lost = folded_count(folded, "[lost samples]");
  printf("%s, %zu bytes: %.1f %% lost, %.1f %% with a large stack\n", clock, more,
	 100.0 * (double)lost / (double)all,
	 100.0 * (double)folded_count(folded, "cpu_burn") / (double)all);
  /* Without room to count it, an event of perf also stands still until the background thread looks. */
  CHECK(lost > all * 2 / 5 && lost < (more < COUNTED ? all * 5 / 6 : all * 3 / 5));
  CHECK(folded_count(folded, "cpu_burn") < all * 3 / 5);
  CHECK(folded_count(folded, "work.lua") < all / 10);
  free(folded);
  sink_free(&sink);
}

int main(void)
{
  static const char *const clocks[] = { "cpu", "ctimer", "task-clock", "itimer" };
  static const size_t more[] = { 2048, 720, 256, 0 };
  size_t i, k;
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
  for (i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
    for (k = 0; k < sizeof(more) / sizeof(more[0]); k++) {
      time_is_lost(L, clocks[i], more[k], 1);
      time_is_lost(L, clocks[i], more[k], 0);
    }
  }
  lua_close(L);
  return check_status();
}
