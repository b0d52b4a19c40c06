/*
** Positions of compiled code when memory is short: allocation N fails, for N = 1, 2, ...,
** alone or with all after it. The program has its results, and LuaJIT compiles the same
** code. Positions may be missing, but are never wrong.
*/

#include "count_malloc.h"
#include "traces.h"

#define TAIL_MAX  (7 + 5) /* add rsp, imm32; jmp rel32 */
#define STEP_FROM 40      /* Up to here each allocation fails once, */
#define STEP      9       /* then every ninth. */

static int nmissing, nwith;

static void check_traces(lua_State *L)
{
  TraceNo no;
  for (no = 1; no < L2J(L)->sizetrace; no++) {
    const GCtrace *T = traces_get(L, no);
    JitFind ta;
    uint32_t ofs;
    if (!T) continue;
    if (!lj_jitfind_code(G(L), (uintptr_t)T->mcode, &ta) || !ta.block) {
      CHECK(!lj_jitfind_exit(G(L), no, 0, &ta) || !ta.block);
      nmissing++;
      continue;
    }
    nwith++;
    CHECK_EQ(ta.number, no);
    for (ofs = 0; ofs < T->szmcode; ofs += 16) {
      if (!lj_jitfind_code(G(L), (uintptr_t)T->mcode + ofs, &ta) || !ta.block) {
	/* The jump to a trace without positions. */
	CHECK(T->link != 0 && ofs + TAIL_MAX >= T->szmcode);
	continue;
      }
      CHECK(ta.seg >= ta.block->seg && ta.seg < ta.block->seg + ta.block->nseg);
      CHECK(ta.seg->node < ta.block->nnode);
    }
  }
}

/* Returns whether there was such an allocation. */
static int run(const char *expected, long n, int all)
{
  lua_State *L = traces_vm();
  const char *result;
  long base;
  traces_run(L, "require 'trace_programs'");
  base = malloc_live;
  malloc_calls = 0;
  malloc_fail_all = all;
  malloc_fail_at = n;
  result = traces_run(L, TRACES_PROGRAMS);
  if (strcmp(result, expected) != 0) {
    CHECK(!"other results");
    printf("allocation %ld: %s\n", n, result);
  }
  check_traces(L);
  lua_close(L);
  malloc_fail_at = 0;
  CHECK_EQ(malloc_live, base);
  return malloc_calls >= n;
}

int main(void)
{
  lua_State *L;
  const char *expected;
  int all;
  if (!COUNT_MALLOC) {
    printf("skipped: the sanitizer has its own malloc\n");
    return 77;
  }
  L = traces_vm();
  traces_run(L, "jit.off()");
  expected = traces_run(L, TRACES_PROGRAMS);
  for (all = 0; all <= 1; all++) {
    long n = 1;
    nmissing = nwith = 0;
    while (run(expected, n, all)) n += n < STEP_FROM ? 1 : STEP;
    printf("up to allocation %ld: %d traces without positions, %d with\n", n, nmissing,
	   nwith);
    CHECK(n > STEP_FROM && nmissing > 0 && nwith > 0);
  }
  lua_close(L);
  return check_status();
}
