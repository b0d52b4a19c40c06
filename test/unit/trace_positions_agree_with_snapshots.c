/*
** The positions of compiled code against two other sources: the bytecodes in the order of
** their recording, from an event of the VM; and the frames that an exit must rebuild,
** from each snapshot.
*/

#include "traces.h"

#define EVENTS_MAX 4096
#define TRACES_MAX 1000

/* A bytecode that was recorded. */
typedef struct Event {
  IRRef ref; /* First instruction it may have emitted. */
  const GCproto *pt;
  BCPos pos;
} Event;

typedef struct Log {
  int n;
  Event e[EVENTS_MAX];
} Log;

static lua_State *L;
static Log current, *logs[TRACES_MAX];
static int ntraces, nsegs, nsnaps, nsame, nbefore, nunknown, njumps, nnext;

/* -- Recording ---------------------------------------------------------------- */

static void log_add(const GCproto *pt, BCPos pos)
{
  Event *e = &current.e[current.n++];
  REQUIRE(current.n < EVENTS_MAX);
  e->ref = L2J(L)->cur.nins;
  e->pt = pt;
  e->pos = pos;
}

/* Called before a bytecode is recorded: trace, function, position, depth. */
static int on_record(lua_State *L1)
{
  const GCfunc *fn = (const GCfunc *)lua_topointer(L1, 2);
  if (isluafunc(fn)) log_add(funcproto(fn), (BCPos)lua_tointeger(L1, 3));
  else log_add(NULL, JITMAP_NONE);
  return 0;
}

/* Called for a trace: what, trace, function, position. */
static int on_trace(lua_State *L1)
{
  const char *what = lua_tostring(L1, 1);
  int no = (int)lua_tointeger(L1, 2);
  if (strcmp(what, "start") == 0) {
    const GCfunc *fn = (const GCfunc *)lua_topointer(L1, 3);
    current.n = 0;
    log_add(funcproto(fn), (BCPos)lua_tointeger(L1, 4));
    current.e[0].ref = REF_FIRST;
  } else if (strcmp(what, "stop") == 0) {
    REQUIRE(no < TRACES_MAX);
    if (!logs[no]) logs[no] = (Log *)malloc(sizeof(Log));
    *logs[no] = current;
  }
  return 0;
}

static void attach(lua_CFunction f, const char *event)
{
  lua_getglobal(L, "jit");
  lua_getfield(L, -1, "attach");
  lua_pushcfunction(L, f);
  lua_pushstring(L, event);
  lua_call(L, 2, 0);
  lua_pop(L, 1);
}

/* -- Segments ------------------------------------------------------------------- */

/* IR_LOOP of a trace, or the end of its instructions. */
static IRRef loop_ref(const GCtrace *T)
{
  IRRef ref;
  for (ref = REF_FIRST; ref < T->nins; ref++)
    if (T->ir[ref].o == IR_LOOP) return ref;
  return T->nins;
}

/* The order of the segments, and what they refer to. */
static void check_segments(const GCtrace *T, const TraceBlock *b)
{
  uint32_t i;
  CHECK(b->nseg > 0);
  CHECK_EQ(b->seg[0].ofs, 0);
  CHECK_EQ(b->seg[0].ref, REF_FIRST);
  for (i = 0; i < b->nnode; i++) {
    const TraceNode *n = &b->node[i];
    CHECK(n->parent == TRACENODE_NONE || n->parent < i);
    CHECK((n->pt != NULL) == (n->ffid == FF_LUA));
    if (n->parent == TRACENODE_NONE) CHECK(n->callpos == JITMAP_NONE);
    else if (n->callpos != JITMAP_NONE) CHECK(n->callpos < b->node[n->parent].pt->sizebc);
  }
  for (i = 0; i < b->nseg; i++) {
    const TraceSeg *s = &b->seg[i];
    const GCproto *pt;
    nsegs++;
    CHECK(s->ofs < T->szmcode || (s->ofs == T->szmcode && i > 0));
    CHECK(s->node < b->nnode);
    if (i > 0) CHECK(s->ofs >= s[-1].ofs && s->ref > s[-1].ref);
    pt = b->node[s->node].pt;
    CHECK(pt ? s->pos < pt->sizebc : s->pos == JITMAP_NONE);
  }
}

/* Offset of the last instructions of a trace that jumps to another trace. There the other
** trace's frames are in place: add rsp, imm (if the trace has moved rsp); jmp.
*/
static uint32_t tail_ofs(const GCtrace *T)
{
  const uint8_t *end = (const uint8_t *)T->mcode + T->szmcode;
  GCtrace *to = T->link ? traces_get(L, T->link) : NULL;
  int32_t dest;
  if (T->szmcode < 16 || end[-5] != 0xe9 || !to) return T->szmcode;
  memcpy(&dest, end - 4, 4);
  if (end + dest != (const uint8_t *)to->mcode) return T->szmcode;
  if (end[-9] == 0x48 && end[-8] == 0x83 && end[-7] == 0xc4) return T->szmcode - 9;
  if (end[-12] == 0x48 && end[-11] == 0x81 && end[-10] == 0xc4) return T->szmcode - 12;
  return T->szmcode - 5;
}

/* Each byte of the machine code has the place of the last segment before. */
static void check_code(const GCtrace *T, const TraceBlock *b)
{
  uint32_t ofs, i = 0, tail = tail_ofs(T);
  for (ofs = 0; ofs < T->szmcode; ofs++) {
    JitFind ta;
    REQUIRE(lj_jitfind_code(G(L), (uintptr_t)T->mcode + ofs, &ta));
    if (ofs >= tail) { /* Jumps to the trace that it is linked to. */
      CHECK_EQ(ta.number, T->link);
      CHECK_EQ(ta.seg->ofs, 0);
      CHECK(!ta.in_loop);
      njumps++;
      continue;
    }
    CHECK_EQ(ta.number, T->traceno);
    CHECK(ta.block == b);
    CHECK_EQ(ta.in_loop, T->mcloop && ofs >= T->mcloop);
    while (i + 1 < b->nseg && b->seg[i + 1].ofs <= ofs) i++;
    CHECK(ta.seg == &b->seg[i]);
  }
}

/* The byte behind the machine code is not of this trace, although it is the current one. Often
** the next trace begins there.
*/
static void check_end(const GCtrace *T)
{
  uintptr_t end = (uintptr_t)T->mcode + T->szmcode;
  const GCtrace *next = NULL;
  TraceNo no;
  JitFind ta;
  for (no = 1; no < L2J(L)->sizetrace; no++) {
    const GCtrace *other = traces_get(L, no);
    if (other && end - (uintptr_t)other->mcode < other->szmcode) next = other;
  }
  G(L)->vmstate = (int32_t)T->traceno;
  CHECK_EQ(lj_jitfind_code(G(L), end, &ta) ? ta.number : 0, next ? next->traceno : 0);
  G(L)->vmstate = ~LJ_VMST_C;
  nnext += (next != NULL);
}

/* Expected part before the loop: the bytecodes in the order of their recording, except
** those that emitted nothing.
*/
static Event want[EVENTS_MAX];
static uint32_t nwant;

static void set_wanted(const Log *log)
{
  int k;
  nwant = 0;
  for (k = 0; k < log->n; k++) {
    while (nwant > 0 && want[nwant - 1].ref >= log->e[k].ref) nwant--;
    want[nwant++] = log->e[k];
  }
}

/* Segment that an event has become, or the next one that emitted something. */
static uint32_t wanted_seg(const Event *e)
{
  uint32_t i;
  for (i = 0; i < nwant && want[i].ref < e->ref; i++)
    ;
  return i;
}

/* The bytecode of each segment. The bytecodes come again in the loop, except those that the
** loop does not repeat.
*/
static uint32_t original[EVENTS_MAX];

static void check_recorded(const GCtrace *T, const TraceBlock *b)
{
  IRRef loop = loop_ref(T);
  uint32_t i, k;
  for (i = 0; i < b->nseg && b->seg[i].ref <= loop; i++) {
    const TraceSeg *s = &b->seg[i];
    REQUIRE(i < nwant);
    CHECK_EQ(s->ref, want[i].ref);
    CHECK_EQ(s->pos, want[i].pos);
    CHECK(b->node[s->node].pt == want[i].pt);
    original[i] = i;
  }
  CHECK_EQ(i, nwant);
  for (k = 0; i < b->nseg; i++, k++) {
    const TraceSeg *s = &b->seg[i];
    while (k < nwant && (b->seg[k].pos != s->pos || b->seg[k].node != s->node)) k++;
    CHECK(k < nwant);
    original[i] = k;
  }
}

/* -- Snapshots -------------------------------------------------------------------- */

/* Jump of an instruction, from behind it. */
static ptrdiff_t ins_jump(BCIns ins)
{
  switch (bc_op(ins)) {
  case BC_JFORL:
  case BC_JITERL:
  case BC_JLOOP: /* A trace in its place. */
    return bc_j(traces_get(L, bc_d(ins))->startins);
  default: return bc_j(ins);
  }
}

/* Is pc where the instruction of an event begins, or where it may go to? */
static int event_leadsto(const Event *e, const Chain *c)
{
  const BCIns *bc;
  BCOp op;
  if (e->pt != c->f[0].pt) return 0;
  if (!e->pt) return 1; /* A builtin. */
  bc = proto_bc(e->pt) + e->pos;
  op = bc_op(*bc);
  if (op == BC_JLOOP) op = bc_op(traces_get(L, bc_d(*bc))->startins);
  if (c->pc == bc || (op == BC_ITERN && c->pc == bc + 1)) return 1;
  if (op <= BC_ISF || op == BC_ITERN) { /* Its jump follows. */
    bc++;
  } else if (op >= BC_FUNCF) {
    return c->pc == bc + 1;
  } else if (!(op >= BC_FORI && op <= BC_JMP)) {
    return 0;
  }
  return c->pc == bc + 1 || c->pc == bc + 1 + ins_jump(*bc);
}

/* A snapshot is taken at a bytecode: at one of those that are noted at its
** place, or that have emitted nothing since the one before.
*/
static int check_snapshot(const TraceBlock *b, const TraceSeg *seg, const Log *log,
			  const Chain *c)
{
  uint32_t i = (uint32_t)(seg - b->seg), last = original[i];
  uint32_t first = i == 0 ? 0 : i == nwant ? 0 : original[i - 1] + 1;
  int k;
  for (k = 0; k < log->n; k++) {
    uint32_t n = wanted_seg(&log->e[k]);
    if (n >= first && n <= last && event_leadsto(&log->e[k], c)) return 1;
  }
  return 0;
}

/* How many frames two chains have in common, from the outermost. */
static int chain_common(const Chain *a, const Chain *b)
{
  int i;
  for (i = 0; i < a->n && i < b->n; i++)
    if (memcmp(&a->f[a->n - 1 - i], &b->f[b->n - 1 - i], sizeof(ChainFrame)) != 0) break;
  return i;
}

static void check_snapshots(const GCtrace *T, const TraceBlock *b, const Log *log)
{
  SnapNo i;
  for (i = 0; i < T->nsnap; i++) {
    const SnapShot *snap = &T->snap[i];
    JitFind ta;
    Chain want, got;
    nsnaps++;
    REQUIRE(lj_jitfind_exit(G(L), T->traceno, i, &ta));
    CHECK(ta.block == b);
    CHECK_EQ(ta.number, T->traceno);
    snap_chain(L, T, snap, &want);
    chain_positions(&want);
    node_chain(b, ta.seg->node, &got);
    if (want.n < 0) {
      nunknown++;
    } else if (!check_snapshot(b, ta.seg, log, &want)) {
      CHECK(!"snapshot at another bytecode");
    } else if (chain_equal(&want, &got)) {
      nsame++;
      continue;
    } else {
      /* Its bytecode has emitted nothing: the next one has been called, or has
      ** been returned to, or both.
      */
      int less = want.n < got.n ? want.n : got.n;
      nbefore++;
      if (chain_common(&want, &got) >= less - 1) continue;
      CHECK(!"snapshot with other frames");
    }
    if (check_failures) {
      printf("trace %d, snapshot %d of %d, link type %d: PC at %d, noted %d\n",
	     (int)T->traceno, (int)i, (int)T->nsnap, (int)T->linktype,
	     want.n > 0 && want.f[0].pt ? (int)proto_bcpos(want.f[0].pt, want.pc) : -1,
	     (int)ta.seg->pos);
      chain_print("snapshot", &want);
      chain_print("position", &got);
    }
  }
}

int main(void)
{
  TraceNo no;
  L = traces_vm();
  attach(on_record, "record");
  attach(on_trace, "trace");
  traces_run(L, TRACES_PROGRAMS);
  for (no = 1; no < L2J(L)->sizetrace; no++) {
    GCtrace *T = traces_get(L, no);
    JitFind ta;
    if (!T) continue;
    ntraces++;
    CHECK(lj_jitfind_trace(G(L), no) == T);
    REQUIRE(lj_jitfind_code(G(L), (uintptr_t)T->mcode, &ta));
    REQUIRE(ta.block != NULL && logs[no] != NULL);
    check_segments(T, ta.block);
    check_code(T, ta.block);
    check_end(T);
    set_wanted(logs[no]);
    check_recorded(T, ta.block);
    check_snapshots(T, ta.block, logs[no]);
  }
  printf("%d traces, %d segments, %d snapshots: %d same, %d before, %d unknown\n", ntraces,
	 nsegs, nsnaps, nsame, nbefore, nunknown);
  /* The test has met the cases that it tests. */
  CHECK(ntraces >= 50 && nsegs >= 500 && njumps > 0 && nnext > 0);
  CHECK(nsame >= nsnaps * 3 / 4 && nunknown <= nsnaps / 20);
  lua_close(L);
  return check_status();
}
