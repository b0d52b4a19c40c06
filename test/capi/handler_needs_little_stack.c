/* The built-in handler gets by with the smallest signal stack that programs
** use: MINSIGSTKSZ, or what the kernel needs to save the registers plus 4 KB.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "session.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif
#define AREA (1024 * 1024)

int main(void)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 2048);
  size_t kernel = (size_t)getauxval(AT_MINSIGSTKSZ), used = 0;
  uint8_t *area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
  stack_t ss;
  REQUIRE(area != MAP_FAILED);
  memset(area, 0x5a, AREA);
  memset(&ss, 0, sizeof(ss));
  ss.ss_sp = area;
  ss.ss_size = AREA;
  REQUIRE(sigaltstack(&ss, NULL) == 0);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  session_run(L, 500);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  while (used < AREA && area[used] == 0x5a) used++;
  used = AREA - used;
  printf("stack used: %zu bytes, of these the kernel's: %zu\n", used, kernel);
  CHECK(used > kernel); /* It did run there. */
  CHECK(used <= kernel + 6 * 1024);
  lua_close(L);
  return check_status();
}
