/* TIMEOUT: 200
** A signal stack of 16 KiB, as small as programs have them, is enough for the
** handler; what the program has set stays set.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>
#include <sys/auxv.h>

#include "session.h"
#include "small_stack.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

#define SIZE (16 * 1024)

int main(void)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 2048);
  unsigned long frame = getauxval(AT_MINSIGSTKSZ);
  stack_t ss, now;
  uint64_t samples;
  char *folded;
  if (small_stack_skipped()) return 77;
  printf("the kernel's frame takes %lu bytes\n", frame);
  if (frame > SIZE - 6 * 1024) {
    puts(
      "skipped: too large for such a stack, programs on this processor have another one");
    return 77;
  }
  memset(&ss, 0, sizeof(ss));
  ss.ss_sp = small_stack(SIZE);
  ss.ss_size = SIZE;
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
  lua_close(L);
  return check_status();
}
