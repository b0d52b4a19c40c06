/* With an alternate signal stack the handler runs on it, and the stacks that
** it finds are those of the program. Also with one of the minimum size.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "session.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ	51
#endif

static volatile int outside, inside;
static char *stack;
static size_t stack_size;

static size_t checking_writer(const void **data, size_t len, void *ctx)
{
  char here;
  if (&here >= stack && &here < stack + stack_size) inside++;
  else outside++;
  return sink_writer(data, len, ctx);
}

int main(void)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 2048);
  uint64_t samples;
  stack_t ss;
  char *folded;
  stack_size = 64*1024;
  stack = mmap(NULL, stack_size + 4096, PROT_READ|PROT_WRITE,
	       MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
  REQUIRE(stack != MAP_FAILED);
  REQUIRE(mprotect(stack, 4096, PROT_NONE) == 0);  /* Overflows are seen. */
  stack += 4096;
  memset(&ss, 0, sizeof(ss));
  ss.ss_sp = stack;
  ss.ss_size = stack_size;
  REQUIRE(sigaltstack(&ss, NULL) == 0);
  CHECK_EQ(luaM_sysprof_set_writer(checking_writer), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  outside = 0;  /* Calls by the start. */
  session_run(L, 200);
  CHECK(inside > 0);
  CHECK_EQ(outside, 0);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  samples = session_samples();
  CHECK_EQ(session_parse(sink.bytes, sink.len, "", &folded), 0);
  CHECK(folded_count(folded, "main") > samples * 8 / 10);
  lua_close(L);
  return check_status();
}
