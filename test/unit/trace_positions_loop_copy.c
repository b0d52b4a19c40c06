/*
** Positions of loops that LuaJIT has unrolled once. The repeated part has the same
** bytecodes in the same order as the part before, except for invariant ones. Each
** instruction has the same position as there.
*/

#include "traces.h"

static lua_State *L;
static int nloops, nsides, nleft;

static const TraceSeg *seg_at(const TraceBlock *b, IRRef ref)
{
  uint32_t i;
  for (i = b->nseg; b->seg[--i].ref > ref;) REQUIRE(i > 0);
  return &b->seg[i];
}

/* Does an instruction do something that the copy has to do again? */
static int is_side(const IRIns *ir)
{
  switch (ir->o) {
  case IR_ASTORE:
  case IR_HSTORE:
  case IR_USTORE:
  case IR_FSTORE:
  case IR_XSTORE:
  case IR_CALLS:
  case IR_CALLXS:
  case IR_TNEW:
  case IR_TDUP: return 1;
  default: return 0;
  }
}

/* The next instruction like that with the same opcode, or 0. */
static IRRef next_side(const GCtrace *T, IRRef ref, IRRef end, int op)
{
  for (; ref < end; ref++)
    if (is_side(&T->ir[ref]) && (op < 0 || T->ir[ref].o == op)) return ref;
  return 0;
}

static void check_loop(const GCtrace *T, const TraceBlock *b, IRRef loop)
{
  uint32_t i, k, first;
  IRRef ref;
  int op;
  for (first = 0; first < b->nseg && b->seg[first].ref <= loop; first++)
    ;
  CHECK(first > 0 && first < b->nseg);
  /* In the same order. */
  for (i = first, k = 0; i < b->nseg; i++, k++) {
    while (k < first &&
	   (b->seg[k].pos != b->seg[i].pos || b->seg[k].node != b->seg[i].node)) {
      nleft++;
      k++;
    }
    CHECK(k < first);
  }
  /* All that has an effect, at the same places. */
  for (op = 0; op < IR__MAX; op++) {
    IRRef copy = loop;
    int before = 0, after = 0;
    for (ref = REF_FIRST; (ref = next_side(T, ref, loop, op)) != 0; ref++) before++;
    for (ref = loop; (ref = next_side(T, ref, T->nins, op)) != 0; ref++) after++;
    if (before != after) continue; /* Some was found to be superfluous. */
    for (ref = REF_FIRST; (ref = next_side(T, ref, loop, op)) != 0; ref++) {
      const TraceSeg *s1 = seg_at(b, ref), *s2;
      copy = next_side(T, copy + 1, T->nins, op);
      s2 = seg_at(b, copy);
      CHECK_EQ(s2->pos, s1->pos);
      CHECK_EQ(s2->node, s1->node);
      nsides++;
    }
  }
  nloops++;
}

int main(void)
{
  TraceNo no;
  L = traces_vm();
  traces_run(L, TRACES_PROGRAMS);
  traces_run(L, "local function put(t, k, v) t[k] = v end\n"
		"local function both(t, i)\n"
		"  put(t, 'a', i)\n"
		"  put(t, 'b', i + 1)\n"
		"end\n"
		"local t, u = { a = 1, b = 2, list = {} }, {}\n"
		"for i = 1, 300 do\n"
		"  both(t, i)\n"
		"  t.list[i] = t.a\n"
		"  put(u, i, t.b)\n"
		"end\n");
  /* The types of a and b change in turn: the copy fails, is taken back and repeated. */
  traces_run(L, "local t, u, a, b = {}, {}, 1, 'x'\n"
		"for i = 1, 300 do\n"
		"  t.a = b\n"
		"  t.c = i\n"
		"  t.b = a\n"
		"  a, b = b, a\n"
		"end\n"
		"for i = 1, 300 do\n"
		"  a, b = b, a\n"
		"  t.a = b\n"
		"  u[i] = a\n"
		"  t.b = a\n"
		"end\n");
  for (no = 1; no < L2J(L)->sizetrace; no++) {
    GCtrace *T = traces_get(L, no);
    JitFind ta;
    IRRef ref;
    if (!T) continue;
    REQUIRE(lj_jitfind_code(G(L), (uintptr_t)T->mcode, &ta) && ta.block);
    for (ref = REF_FIRST; ref < T->nins; ref++)
      if (T->ir[ref].o == IR_LOOP) {
	check_loop(T, ta.block, ref);
	break;
      }
  }
  printf("%d loops, %d effects at their places, %d segments only before\n", nloops, nsides,
	 nleft);
  CHECK(nloops >= 10 && nsides >= 10);
  lua_close(L);
  return check_status();
}
