/*
** Each state of the VM and each phase of the garbage collector in samples: the counter of
** the state, and the frame for the VM's own work.
*/

#include "hand_ticks.h"
#include "lj_gc.h"

#define NONE (-1)

typedef struct State {
  int32_t vmstate;
  uint8_t gcstate;
  int state, work, phase; /* SPF_VMST_*, SPF_WORK_*, SPF_GC_*. */
} State;

static const State table[] = {
  { ~LJ_VMST_INTERP, GCSpause, SPF_VMST_CFUNC, NONE, 0 },
  { ~LJ_VMST_C, GCSpause, SPF_VMST_CFUNC, NONE, 0 },
  { ~LJ_VMST_C, GCSsweep, SPF_VMST_CFUNC, NONE, 0 },
  { ~LJ_VMST_GC, GCSpause, SPF_VMST_GC, SPF_WORK_GC, SPF_GC_PAUSE },
  { ~LJ_VMST_GC, GCSpropagate, SPF_VMST_GC, SPF_WORK_GC, SPF_GC_PROPAGATE },
  { ~LJ_VMST_GC, GCSatomic, SPF_VMST_GC, SPF_WORK_GC, SPF_GC_ATOMIC },
  { ~LJ_VMST_GC, GCSsweepstring, SPF_VMST_GC, SPF_WORK_GC, SPF_GC_SWEEPSTRING },
  { ~LJ_VMST_GC, GCSsweep, SPF_VMST_GC, SPF_WORK_GC, SPF_GC_SWEEP },
  { ~LJ_VMST_GC, GCSfinalize, SPF_VMST_GC, SPF_WORK_GC, SPF_GC_FINALIZE },
  { ~LJ_VMST_RECORD, GCSpause, SPF_VMST_RECORD, SPF_WORK_RECORD, 0 },
  { ~LJ_VMST_OPT, GCSpause, SPF_VMST_OPT, SPF_WORK_OPT, 0 },
  { ~LJ_VMST_ASM, GCSpause, SPF_VMST_ASM, SPF_WORK_ASM, 0 },
  { ~LJ_VMST_EXIT, GCSpause, SPF_VMST_EXIT, NONE, 0 },
};

static Sampler *sampler;

static void check(const State *t, const uint64_t *before)
{
  const FrameList *fr = &sampler->lua_frames;
  uint32_t i, nwork = 0;
  int state;
  CHECK(sampler->lua.broken < 0);
  for (state = 0; state < SPF_VMST__MAX; state++)
    CHECK_EQ(sampler->counters[state] - before[state], state == t->state);
  if (sampler->opt->mode == LUAM_SYSPROF_DEFAULT) return;
  for (i = 0; i < fr->len; i++) {
    if (frame_kind(fr->list[i]) != SPF_FRAME_WORK) continue;
    nwork++;
    CHECK_EQ(i, 0);
    CHECK_EQ(frame_payload_lo(fr->list[i]), t->work);
    CHECK_EQ(frame_aux(fr->list[i]), t->phase);
  }
  CHECK_EQ(nwork, t->work != NONE);
}

static int take_each(lua_State *L)
{
  global_State *g = G(L);
  int32_t vmstate = g->vmstate;
  uint8_t gcstate = g->gc.state;
  size_t i;
  for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
    uint64_t before[SPF_VMST__MAX];
    memcpy(before, sampler->counters, sizeof(before));
    g->vmstate = table[i].vmstate;
    g->gc.state = table[i].gcstate;
    hand_take(sampler);
    g->vmstate = vmstate;
    g->gc.state = gcstate;
    check(&table[i], before);
  }
  return 0;
}

static void run(lua_State *L, int mode)
{
  static Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, mode, 64 * 1024);
  sampler = hand_start(L, &opt);
  lua_pushcfunction(L, take_each);
  lua_setglobal(L, "take_each");
  session_script(L, "local function f() take_each() return 1 end\n"
		    "local n = f()\n");
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  sink_free(&sink);
}

int main(void)
{
  lua_State *L = session_vm();
  run(L, LUAM_SYSPROF_CALLGRAPH);
  run(L, LUAM_SYSPROF_DEFAULT);
  lua_close(L);
  return check_status();
}
