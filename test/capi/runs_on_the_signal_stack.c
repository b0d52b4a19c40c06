/* With an alternate signal stack the handler runs on it, and finds the program's stacks. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>

#include "session.h"
#include "small_stack.h"

#define SIZE (64 * 1024)

static volatile int outside, inside;
static char *stack;

static size_t checking_writer(const void **data, size_t len, void *ctx)
{
  char here;
  if (&here >= stack && &here < stack + SIZE) inside++;
  else outside++;
  return sink_writer(data, len, ctx);
}

int main(void)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 2048);
  uint64_t samples, n;
  stack_t ss;
  char *folded;
  stack = (char *)small_stack(SIZE);
  memset(&ss, 0, sizeof(ss));
  ss.ss_sp = stack;
  ss.ss_size = SIZE;
  REQUIRE(sigaltstack(&ss, NULL) == 0);
  CHECK_EQ(luaM_sysprof_set_writer(checking_writer), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  outside = 0; /* Calls by the start. */
  /* The handler writes when the captured samples fill a chunk. */
  for (n = 200; n <= 20000 && inside + outside == 0; n += 200) session_run(L, n);
  CHECK(inside > 0);
  CHECK_EQ(outside, 0);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  samples = session_samples();
  CHECK_EQ(session_parse(sink.bytes, sink.len, "", &folded), 0);
  CHECK(folded_count(folded, "main") > samples * 8 / 10);
  lua_close(L);
  return check_status();
}
