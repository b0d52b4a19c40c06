/* TIMEOUT: 600
** A thousand starts and stops leave no descriptor, timer or memory behind.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "count_kept.h"
#include "session.h"

#define ROUNDS 3

static long pages(void)
{
  FILE *f = fopen("/proc/self/statm", "r");
  long n = 0;
  REQUIRE(f != NULL);
  REQUIRE(fscanf(f, "%ld", &n) == 1);
  fclose(f);
  return n;
}

static void cycles(lua_State *L, struct luam_Sysprof_Options *opt, int n)
{
  int i;
  for (i = 0; i < n; i++) {
    opt->mode = (uint8_t)(i % 3);
    CHECK_EQ(luaM_sysprof_start(L, opt), PROFILE_SUCCESS);
    if (i % 10 == 0) session_run(L, 2);
    ((Sink *)opt->ctx)->len = 0;
    CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  }
}

static void lua_cycles(lua_State *L)
{
  session_script(L,
		 "for i = 1, 500 do "
		 "assert(misc.sysprof.start{mode = 'C', interval = 1, path = 'cycle.bin'}) "
		 "assert(not misc.sysprof.start{mode = 'C', path = 'cycle.bin'}) "
		 "assert(not misc.sysprof.start{mode = 'C', path = '/'}) "
		 "assert(misc.sysprof.stop()) "
		 "assert(not misc.sysprof.start{mode = 'C', path = '/'}) end");
}

/* A block in each start would be 32 bytes a time. */
static int has_grown(size_t heap, long size)
{
  if (heap_bytes() >= heap + 15000) return 1;
#ifdef __SANITIZE_ADDRESS__ /* It keeps freed memory. */
  (void)size;
  return 0;
#else
  return pages() >= size + 512; /* 2 MB; a session alone takes more than 1. */
#endif
}

int main(void)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_DEFAULT, 65536);
  size_t heap;
  long size;
  int files, timers, rounds = 0;
  cycles(L, &opt, 1000); /* Fills the allocator's caches, too. */
  lua_cycles(L);
  lua_gc(L, LUA_GCCOLLECT, 0);
  files = count_entries("/proc/self/fd");
  timers = count_lines("/proc/self/timers");
  do { /* What leaks grows in each round. A cache may get blocks of another size once. */
    heap = heap_bytes();
    size = pages();
    cycles(L, &opt, 1000);
    lua_cycles(L);
    lua_gc(L, LUA_GCCOLLECT, 0);
    CHECK_EQ(count_entries("/proc/self/fd"), files);
    CHECK_EQ(count_lines("/proc/self/timers"), timers);
  } while (has_grown(heap, size) && ++rounds < ROUNDS);
  CHECK(rounds < ROUNDS);
  lua_close(L);
  return check_status();
}
