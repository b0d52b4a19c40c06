/*
** The exit number of a trace that the VM leaves: an exit of the trace gives its position. A
** number behind the last exit is refused: then the saved PC counts.
*/

#include "traces.h"
#include "profile/lua/lj_luatrace.h"

static lua_State *L;
static SafeLoad pk;

/* Look at an exit in lj_trace_exit, below another VM frame. */
static void look(TraceStack *ts, TraceNo from, ExitNo exitno, uintptr_t base,
		 uintptr_t savedpc)
{
  static uintptr_t cframe[CFRAME_SIZE / sizeof(uintptr_t)];
  global_State *g = G(L);
  VMFrame vf;
  LuaArea a;
  memset(&vf, 0, sizeof(vf));
  memset(&a, 0, sizeof(a));
  memcpy((char *)cframe + CFRAME_OFS_PC, &savedpc, sizeof(savedpc));
  vf.cf = (uintptr_t)cframe;
  vf.L = a.L = L;
  vf.place = VMF_EXIT;
  vf.code = (uintptr_t)(void *)lj_vm_exit_handler;
  a.pk = &pk;
  lj_safeload_reset(&pk);
  G2J(g)->parent = from;
  G2J(g)->exitno = exitno;
  g->vmstate = ~LJ_VMST_EXIT;
  lj_luatrace_look(ts, &a, g, &vf, base, 1, NULL);
  g->vmstate = ~LJ_VMST_C;
}

int main(void)
{
  static BCIns code[2];
  const uintptr_t base = (uintptr_t)&base, savedpc = (uintptr_t)code;
  int ntraces = 0;
  TraceNo no;
  L = traces_vm();
  traces_run(L, TRACES_PROGRAMS);
  for (no = 1; no < L2J(L)->sizetrace; no++) {
    const GCtrace *T = traces_get(L, no);
    TraceStack ts;
    ExitNo i;
    if (!T) continue;
    ntraces++;
    for (i = 0; i < T->nsnap; i++) {
      look(&ts, no, i, base, savedpc);
      CHECK(ts.runs && ts.exits && ts.at.block != NULL);
      CHECK_EQ(ts.at.number, no);
      CHECK_EQ(ts.pc, 0);
    }
    for (; i < (ExitNo)T->nsnap + 2; i++) {
      look(&ts, no, i, base, savedpc);
      CHECK(!ts.runs && ts.exits && ts.at.block == NULL);
      CHECK_EQ(ts.pc, savedpc + sizeof(BCIns));
      CHECK_EQ(ts.base, base);
    }
  }
  CHECK(ntraces >= 50);
  lua_close(L);
  return check_status();
}
