/*
** Builtins in assembler put results into their own frame, some before they call C or
** while C runs: ipairs' iterator, next, math.modf. At each instruction the walk finds the
** Lua function that called them. While C runs for an iterator, the walk finds the
** iterator on top.
*/

#include "lua_stepper.h"
#include "lj_vm.h"

/* A list in the hash part of a table, where eight have room. The name "next" in a loop
** would be compiled to a bytecode of its own.
*/
#define PROGRAM \
  "local list = { a = 1, b = 2, c = 3, d = 4, e = 5 }\n" \
  "list[1], list[2], list[3] = 1, 2, 3\n" \
  "local iterator, each = ipairs(list), next\n" \
  "function in_ipairs()\n" \
  "  local n = 0\n" \
  "  for turn = 1, 4 do\n" \
  "    for i, v in ipairs(list) do n = n + v end\n" \
  "  end\n" \
  "end\n" \
  "function in_next()\n" \
  "  local n = 0\n" \
  "  for turn = 1, 4 do\n" \
  "    for k, v in each, list do n = n + v end\n" \
  "  end\n" \
  "end\n" \
  "function in_calls()\n" \
  "  local a, b = math.modf(2.5)\n" \
  "  a, b = math.frexp(8)\n" \
  "  a, b = iterator(list, 3)\n" \
  "  a, b = next(list)\n" \
  "  a, b = pcall(iterator, list, 3)\n" \
  "  a, b = pcall(next, list)\n" \
  "  a, b = pcall(math.modf, 2.5)\n" \
  "end\n" \
  "function run()\n" \
  "  begin()\n" \
  "  program()\n" \
  "  finish()\n" \
  "end\n" \
  "jit.off(run)\n" \
  "ipairs_iterator = iterator"

#define ALONE_MAX 200 /* Instructions of run around the call, at most. */

static volatile int judged;   /* Between begin and finish. */
static const GCproto *caller; /* The function that calls builtins. */
static uint32_t ffid;         /* Builtin that all C code runs for, or 0. */
static long nwalks, nalone, nin_c, nwrong;

static int begin(lua_State *L)
{
  (void)L;
  judged = 1;
  return 0;
}

static int finish(lua_State *L)
{
  (void)L;
  judged = 0;
  return 0;
}

static int is_caller(FrameWord w)
{
  uint32_t k;
  for (k = 0; k < FUNCTAB_FUNCS; k++)
    if (lstep.funcs.func[k].fid == frame_payload_lo(w))
      return lstep.funcs.func[k].pt == caller;
  return 0;
}

static void look(const ucontext_t *uc)
{
  const FrameList *fr = &lstep.frames;
  uint32_t i, nlua = 0, ncaller = 0, first = 0;
  int32_t state = G(lstep.L)->vmstate;
  int wrong;
  if (!judged || state == ~LJ_VMST_C) return;
  nwalks++;
  while (first < fr->len && frame_kind(fr->list[first]) == SPF_FRAME_WORK) first++;
  for (i = first; i < fr->len; i++) {
    if (frame_kind(fr->list[i]) != SPF_FRAME_LFUNC) continue;
    nlua++;
    ncaller += (uint32_t)is_caller(fr->list[i]);
  }
  wrong = lstep.ls.broken >= 0 || lstep.ls.nbounds != lstep.hs.nvm || nlua < 1 ||
	  nlua != ncaller + 1;
  nalone += ncaller == 0;
  if (ffid && ncaller && lstep.hs.leaf == LEAF_HOST) {
    nin_c++;
    wrong |= fr->len == 0 || frame_kind(fr->list[0]) != SPF_FRAME_FFUNC ||
	     frame_payload_lo(fr->list[0]) != ffid;
  }
  if (!wrong || ++nwrong > 10) return; /* Enough for a diagnosis. */
  printf("  wrong at step %ld, VM state %d, ", lstep.steps, (int)state);
  if (lstep.hs.leaf == LEAF_VM)
    printf("lj_vm_asm_begin+0x%lx",
	   (long)uc->uc_mcontext.gregs[REG_RIP] - (long)(uintptr_t)(void *)lj_vm_asm_begin);
  printf(": broken %d, %u frames, %u Lua functions, %u of them the caller\n",
	 lstep.ls.broken, fr->len, nlua, ncaller);
}

/* All C code that the function of this name leads to is of that builtin; NULL: not. */
static void run(const char *name, const char *builtin)
{
  lua_State *L = lstep.L;
  lua_getglobal(L, name);
  caller = funcproto(funcV(L->top - 1));
  lua_setglobal(L, "program");
  ffid = 0;
  if (builtin) {
    lua_getglobal(L, builtin);
    ffid = funcV(L->top - 1)->c.ffid;
  }
  lua_settop(L, 0);
  nwalks = nalone = nin_c = nwrong = 0;
  lstep_run("run", look);
  printf("%s: %ld walks, %ld of them before and after it, %ld in C code of a builtin, "
	 "%ld wrong\n",
	 name, nwalks, nalone, nin_c, nwrong);
  CHECK(nwalks - nalone > 500);
  CHECK_EQ(nwrong, 0);
}

int main(void)
{
  if (!lstep_open()) return 77;
  lua_register(lstep.L, "begin", begin);
  lua_register(lstep.L, "finish", finish);
  lstep_do(PROGRAM);
  lstep_do("jit.off()");
  run("in_ipairs", "ipairs_iterator");
  CHECK(nin_c > 20 && nalone < ALONE_MAX);
  run("in_next", "next");
  CHECK(nin_c > 20 && nalone < ALONE_MAX);
  run("in_calls", NULL);
  CHECK(nalone < ALONE_MAX);
  if (LJ_HASJIT) { /* The interpreter also runs the code that the compiler records. */
    lstep_do("jit.on() jit.opt.start('hotloop=1')");
    run("in_ipairs", NULL);
    lstep_do("jit.flush()");
    run("in_next", NULL);
  }
  lua_close(lstep.L);
  printf(
    "states without a walk: %ld of Lua functions, %ld of builtins, %ld of C functions\n",
    lstep.states[TOP_LUA], lstep.states[TOP_FAST], lstep.states[TOP_C]);
  CHECK(lstep.states[TOP_LUA] > 500);
  CHECK(lstep.states[TOP_FAST] + lstep.states[TOP_C] > 20);
  return check_status();
}
