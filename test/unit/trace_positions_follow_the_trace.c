/*
** Positions of compiled code live as long as their trace. Flushed, collected and aborted
** traces and a closed VM leave nothing. A reused trace number has the new trace's
** positions.
*/

#include "count_malloc.h"
#include "traces.h"

#define BUFFERS    4 /* Blocks that a VM keeps for all traces. */
#define TRACES_MAX 1000
/* Turns until a loop is compiled, even if an aborted one has set its counter back. */
#define HOT "1e5"

static lua_State *L;

static int count_traces(void)
{
  TraceNo no;
  int n = 0;
  for (no = 1; no < L2J(L)->sizetrace; no++)
    if (lj_jitfind_trace(G(L), no)) n++;
  return n;
}

/* First line of the function that a trace begins in. */
static int first_line(TraceNo no)
{
  const GCtrace *T = lj_jitfind_trace(G(L), no);
  JitFind ta;
  if (!T) return -1;
  CHECK(traces_get(L, no) == T);
  CHECK(lj_jitfind_code(G(L), (uintptr_t)T->mcode, &ta));
  CHECK_EQ(ta.number, no);
  if (!ta.block) return -1;
  return (int)ta.block->node[0].pt->firstline;
}

static void test_flush(long base)
{
  static uintptr_t code[TRACES_MAX];
  TraceNo no, n;
  JitFind ta;
  int ntraces;
  traces_run(L, TRACES_PROGRAMS);
  lua_settop(L, 0);
  ntraces = count_traces();
  CHECK(ntraces >= 50);
  CHECK(malloc_live - base > ntraces && malloc_live - base <= ntraces + BUFFERS);
  n = L2J(L)->sizetrace;
  REQUIRE(n <= TRACES_MAX);
  for (no = 1; no < n; no++) {
    const GCtrace *T = lj_jitfind_trace(G(L), no);
    CHECK((T != NULL) == (traces_get(L, no) != NULL));
    code[no] = T ? (uintptr_t)T->mcode : 0;
  }
  traces_run(L, "jit.flush()");
  CHECK_EQ(count_traces(), 0);
  for (no = 1; no < n; no++) {
    CHECK(!lj_jitfind_code(G(L), code[no], &ta));
    CHECK(!lj_jitfind_exit(G(L), no, 0, &ta));
  }
  CHECK(malloc_live - base <= BUFFERS);
}

static void test_reuse(void)
{
  const char *second = "\n\n\nlocal s = 0 for i = 1, " HOT " do s = s + i end";
  traces_run(L, "jit.flush() local s = 0 for i = 1, " HOT " do s = s + i end");
  CHECK_EQ(first_line(1), 0); /* The main chunk of that code. */
  traces_run(L, "jit.flush()\n\n"
		"local function f() local s = 0 for i = 1, " HOT " do s = s + i end end\n"
		"f()");
  CHECK_EQ(first_line(1), 3);
  CHECK_EQ(count_traces(), LJ_DUALNUM ? 2 : 1); /* The sum leaves the integers. */
  traces_run(L, "jit.flush()");
  CHECK_EQ(first_line(1), -1);
  traces_run(L, second);
  CHECK_EQ(first_line(1), 0);
}

static void test_collect(void)
{
  long live = malloc_live;
  int before = count_traces();
  traces_run(L,
	     "for i = 1, 20 do\n"
	     "  local f = loadstring('local s = 0 for i = 1, " HOT " do s = s + i end')\n"
	     "  f()\n"
	     "end\n");
  lua_settop(L, 0);
  CHECK(count_traces() >= before + 20);
  CHECK(malloc_live >= live + 20);
  traces_run(L, "collectgarbage() collectgarbage() collectgarbage 'stop'");
  lua_settop(L, 0);
  CHECK(count_traces() <= before);
  CHECK(malloc_live <= live);
}

/* Recording fails at an unknown bytecode, at an error, for too many registers. */
static void test_aborts(void)
{
  long live;
  int before, n;
  traces_run(L, "jit.flush()"
		"naborts = 0\n"
		"jit.attach(function(what)\n"
		"  if what == 'abort' then naborts = naborts + 1 end\n"
		"end, 'trace')\n");
  lua_settop(L, 0);
  live = malloc_live;
  before = count_traces();
  traces_run(L, "local function work()\n"
		"  for i = 1, 100 do local f = function() return i end end\n"
		"  for i = 1, 100 do pcall(error, 'x') end\n"
		"  for i = 1, 100 do pcall(function() local t = nil; return t.x end) end\n"
		"end\n"
		"jit.off(work) for i = 1, 3 do jit.on(work) work() end\n");
  traces_run(L, "return naborts");
  n = (int)lua_tointeger(L, -1);
  lua_settop(L, 0);
  CHECK(n > 0);
  CHECK_EQ(malloc_live - live, count_traces() - before);
}

int main(void)
{
  long base;
  if (!COUNT_MALLOC) {
    printf("skipped: the sanitizer has its own malloc\n");
    return 77;
  }
  printf("blocks before: %ld\n", malloc_live); /* Buffer of stdout. */
  /* Loading the programs may leave blocks of the C library. */
  L = traces_vm();
  traces_run(L, "require 'trace_programs'");
  lua_close(L);
  base = malloc_live;
  L = traces_vm();
  CHECK_EQ(malloc_live, base);
  test_flush(base);
  test_reuse();
  test_collect();
  test_aborts();
  traces_run(L, TRACES_PROGRAMS);
  CHECK(malloc_live > base + BUFFERS);
  lua_close(L);
  CHECK_EQ(malloc_live, base);
  return check_status();
}
