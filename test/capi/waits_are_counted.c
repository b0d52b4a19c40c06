/* Without context-switch records, each look knows only how often the thread got a processor. No
** wait counts twice: one that goes on over a look belongs to the look that finds its end.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/syscall.h>

#include "forbid.h"
#include "wait_checks.h"

#define WAITS 500

static int lua_naps(lua_State *L)
{
  int i;
  (void)L;
  for (i = 0; i < WAITS; i++) usleep(1000);
  return 0;
}

static int profile(const void *unused)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  char *text;
  double waits;
  (void)unused;
  if (!forbid_call(SYS_perf_event_open, SECCOMP_RET_ERRNO | EPERM)) return NO_FILTER;
  opt.clocks = "offcpu";
  lua_pushcfunction(L, lua_naps);
  REQUIRE(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
  CHECK_EQ(lua_pcall(L, 0, 0, 0), 0);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "--format=folded --weight=waits", &text), 0);
  waits = folded_sum(text, "", "");
  /* A look lacks at most one wait, if it finds the thread on a processor. Looks are some 3 ms apart:
  ** of three waits of 1 ms, two count. On a busy machine waits are longer, so half of that must do.
  */
  CHECK(waits >= WAITS / 3);
  /* Counted twice at each look, they were 900. Each time that another thread takes the processor
  ** counts as a wait, too: so the test allows a tenth more.
  */
  CHECK(waits <= WAITS * 1.1);
  if (check_failures) printf("%g waits\n%s", waits, text);
  free(text);
  sink_free(&sink);
  lua_close(L);
  return check_status();
}

int main(void)
{
  return child_fails("waits", profile, NULL);
}
