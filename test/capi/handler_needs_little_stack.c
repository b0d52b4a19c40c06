/* The built-in handler uses at most SMALL_STACK_HANDLER bytes of the signal stack below
** the kernel's frame. That frame holds the registers, and differs between processors.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>
#include <sys/mman.h>

#include "session.h"
#include "small_stack.h"

#define AREA  (1024 * 1024)
#define PAINT 0x5a

static void (*profiler)(int, siginfo_t *, void *);
static uintptr_t frame; /* Lowest address of the kernel's frame. */

/* The frame is a return address, the context and what that points to. */
static void handler(int sig, siginfo_t *info, void *uc)
{
  frame = (uintptr_t)uc - sizeof(void *);
  profiler(sig, info, uc);
}

int main(void)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 2048);
  size_t kernel, kernel_max = small_stack_kernel_max(), untouched = 0, taken;
  uint8_t *area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
  struct sigaction sa;
  stack_t ss;
  REQUIRE(area != MAP_FAILED);
  memset(area, PAINT, AREA);
  memset(&ss, 0, sizeof(ss));
  ss.ss_sp = area;
  ss.ss_size = AREA;
  REQUIRE(sigaltstack(&ss, NULL) == 0);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  REQUIRE(sigaction(CLOCK_SIGNAL, NULL, &sa) == 0);
  profiler = sa.sa_sigaction;
  sa.sa_sigaction = handler;
  REQUIRE(sigaction(CLOCK_SIGNAL, &sa, NULL) == 0);
  session_run(L, 500);
  sa.sa_sigaction = profiler;
  REQUIRE(sigaction(CLOCK_SIGNAL, &sa, NULL) == 0);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  REQUIRE(frame > (uintptr_t)area && frame < (uintptr_t)area + AREA);
  while (untouched < AREA && area[untouched] == PAINT) untouched++;
  kernel = (uintptr_t)area + AREA - frame;
  taken = AREA - kernel - untouched;
  printf("the handler took %zu bytes; the kernel saved %zu, at most %zu\n", taken, kernel,
	 kernel_max);
  CHECK(taken <= SMALL_STACK_HANDLER);
  CHECK(kernel <= kernel_max);
  lua_close(L);
  return check_status();
}
