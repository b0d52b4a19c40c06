/* TIMEOUT: 600
** LONG: 23
** The Lua stack at every machine instruction of compiled programs. Each program first
** runs in the interpreter, with a hook that notes the stack before each bytecode. Then it
** runs compiled, one machine instruction after the other by the trap flag. The walk's
** stacks must come in the order of the first run.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>
#include <ucontext.h>

#include "traces.h"
#include "profile/lua/lj_luawalk.h"
#include "walks_alike.h"
#include "regs_of.h"

#define TRAP_FLAG    0x100
#define STACKS_MAX   8192  /* Different stacks. */
#define ORDER_MAX    50000 /* Changes of the stack in a run. */
#define FRAMES_SEEN  128
#define AHEAD        2000 /* Changes that compiled code may not show. */
#define AHEAD_INTERP 5    /* Those that the interpreter may not. */
#define BACK_AT_EXIT 13   /* Changes that an exit may take back: an inlined call has 12. */

/* Properties of a program. In a recursion, the frames that an exit has rebuilt look like
** those below. There the test does not check the number of frames in lj_trace_exit, and
** the walk may mark the place as unknown.
*/
#define RECURSIVE   1
#define INTERPRETED 2 /* Is run in single steps without the JIT, too. */

/* -- Stacks ------------------------------------------------------------------- */

/* Lua functions with their lines, leaf first; of a function the line where it is
** defined.
*/
typedef struct Stack {
  int n;
  struct {
    int defined, line;
  } f[FRAMES_SEEN];
} Stack;

static Stack stacks[STACKS_MAX];
static uint32_t nstacks;
static uint16_t stack_index[STACKS_MAX * 2]; /* Hash table over them, plus 1. */

/* Number of a stack, or -1 if it is new and not to be added. */
static int stack_id(const Stack *s, int add)
{
  size_t sz = offsetof(Stack, f) + (size_t)s->n * sizeof(s->f[0]), i;
  uint32_t h = 0;
  for (i = 0; i < sz; i += 4)
    h = (h ^ *(const uint32_t *)((const char *)s + i)) * 0x9e3779b1u;
  for (h >>= 16;; h++) {
    uint32_t id = stack_index[h % (STACKS_MAX * 2)];
    if (id == 0) break;
    if (memcmp(&stacks[id - 1], s, sz) == 0) return (int)id - 1;
  }
  if (!add) return -1;
  REQUIRE(nstacks < STACKS_MAX);
  stacks[nstacks] = *s;
  stack_index[h % (STACKS_MAX * 2)] = (uint16_t)++nstacks;
  return (int)nstacks - 1;
}

static void stack_print(const char *what, const Stack *s)
{
  int i;
  printf("    %s:", what);
  for (i = 0; i < s->n && i < 10; i++) printf(" %d:%d", s->f[i].defined, s->f[i].line);
  printf(i < s->n ? " ... (%d frames)\n" : "\n", s->n);
}

/* -- The first run ------------------------------------------------------------ */

static int order[ORDER_MAX];        /* Stacks, */
static int order_noline[ORDER_MAX]; /* and without the leaf's line. */
static int norder;

static void order_add(const Stack *s)
{
  Stack t = *s;
  int id = stack_id(s, 1);
  if (norder > 0 && order[norder - 1] == id) return;
  REQUIRE(norder < ORDER_MAX);
  t.f[0].line = 0;
  order_noline[norder] = stack_id(&t, 1);
  order[norder++] = id;
}

/* Called before each bytecode and at each call. */
static void on_hook(lua_State *L, lua_Debug *ar)
{
  Stack s, last;
  int i, is_call = (ar->event != LUA_HOOKCOUNT);
  s.n = 0;
  for (i = 0; lua_getstack(L, i, ar); i++) {
    lua_getinfo(L, "Sl", ar);
    if (ar->what[0] == 'C') {
      if (i == 0) return;
      continue;
    }
    REQUIRE(s.n < FRAMES_SEEN);
    s.f[s.n].defined = ar->linedefined;
    s.f[s.n++].line = i == 0 && is_call ? ar->linedefined : ar->currentline;
  }
  last.n = 0;
  if (norder > 0) last = stacks[order[norder - 1]];
  /* On a return, or a tail call, the caller is at the call for a while. */
  while (last.n > s.n || (last.n == s.n && is_call && last.n > 1)) {
    last.n--;
    memmove(&last.f[0], &last.f[1], (size_t)last.n * sizeof(last.f[0]));
    order_add(&last);
  }
  order_add(&s);
}

/* -- The run in single steps -------------------------------------------------- */

static lua_State *VL;
static SafeLoad pk;
static FrameList host_frames, frames;
static HostWalk hs;
static FuncTab funcs;
static LuaWalk ls;
static volatile int stepping;
static int flags; /* Of the program. */
static int ahead;
static int at;         /* Where in order. */
static int last_state; /* VM state of the last step. */
static int goes_on;    /* Code goes on after an exit, and the stack has not changed. */
static long nplace[3]; /* Walks by place, */
static long total[3];  /* and of all programs. */
static int nwrong;
static volatile long nsteps;

/* The Lua functions of the walked frames. */
static void frames_stack(Stack *s)
{
  uint32_t i, k;
  s->n = 0;
  for (i = 0; i < frames.len && s->n < FRAMES_SEEN; i++) {
    FrameWord w = frames.list[i];
    if (frame_kind(w) != SPF_FRAME_LFUNC) continue;
    for (k = 0; k < FUNCTAB_FUNCS; k++)
      if (funcs.func[k].fid == frame_payload_lo(w)) break;
    s->f[s->n].defined = (int)funcs.func[k].pt->firstline;
    s->f[s->n++].line = (int)frame_aux(w);
  }
}

/* Go on to a stack in the order. An exit may go back a bit: it goes on with the
** bytecode of its snapshot, and those that emitted no code run again. So does a side trace.
*/
static int order_goto(int id, const int *in, int is_exit)
{
  int i;
  if (goes_on && in[at] != id) {
    goes_on = 0;
    for (i = 1; i < BACK_AT_EXIT && i <= at; i++)
      if (in[at - i] == id) {
	at -= i;
	return 1;
      }
  }
  for (i = 0; is_exit && i < BACK_AT_EXIT; i++)
    if ((at + i < norder && in[at + i] == id) || (i <= at && in[at - i] == id)) {
      at += at + i < norder && in[at + i] == id ? i : -i;
      return 1;
    }
  for (i = 0; i < ahead && at + i < norder; i++)
    if (in[at + i] == id) {
      at += i;
      return 1;
    }
  return 0;
}

static void report(const ucontext_t *uc, const Stack *s)
{
  uintptr_t pc = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
  TraceNo no;
  check_failures++;
  if (++nwrong > 5) return; /* Enough for a diagnosis. */
  printf("  wrong at step %ld, VM state %d, place %d", nsteps, (int)G(VL)->vmstate,
	 (int)hs.vm[0].place);
  for (no = 1; no < L2J(VL)->sizetrace; no++) {
    const GCtrace *T = traces_get(VL, no);
    if (T && pc - (uintptr_t)T->mcode < T->szmcode)
      printf(", trace %d+0x%x", (int)no, (int)(pc - (uintptr_t)T->mcode));
  }
  if (lj_hostwalk_isvm(pc))
    printf(", lj_vm_asm_begin+0x%x", (int)(pc - (uintptr_t)(void *)lj_vm_asm_begin));
  printf(", broken %d\n", ls.broken);
  stack_print("found ", s);
  stack_print("before", &stacks[order[at]]);
  if (at + 1 < norder) stack_print("after ", &stacks[order[at + 1]]);
}

static void look(const ucontext_t *uc)
{
  Stack s;
  int id, is_exit, noline, state = G(VL)->vmstate;
  if (state > 0 && last_state > 0 && state != last_state) goes_on = 1;
  last_state = state;
  switch (~G(VL)->vmstate) {
  case LJ_VMST_RECORD:
  case LJ_VMST_OPT:
  case LJ_VMST_ASM: return;
  default: break;
  }
  lj_safeload_reset(&pk);
  if (lj_hostwalk_isvm((uintptr_t)uc->uc_mcontext.gregs[REG_RIP]) &&
      ahead != AHEAD_INTERP && !tvref(G(VL)->jit_base) && G(VL)->vmstate != ~LJ_VMST_EXIT)
    return; /* The interpreter has its own run. */
  lj_framelist_reset(&host_frames);
  lj_hostwalk_walk(&hs, regs_of(uc));
  if (hs.nvm == 0) return;
  lj_luawalk_walk(&ls, regs_of(uc));
  walks_compare(&ls, uc);
  nplace[hs.vm[0].place]++;
  frames_stack(&s);
  /* No Lua function runs on the way into the VM and out of it. */
  if (s.n == 0 && ls.broken < 0 && hs.vm[0].place == VMF_INTERP) return;
  is_exit = G(VL)->vmstate == ~LJ_VMST_EXIT || hs.vm[0].place == VMF_EXIT;
  if (is_exit) goes_on = 1;
  if ((flags & RECURSIVE) && is_exit && !tvref(G(VL)->jit_base)) {
    if (ls.broken >= 0 && ls.broken != SPF_BROKEN_TRACE) report(uc, &s);
    return;
  }
  /* The line may be unknown in the interpreter, but not in compiled code. */
  noline = hs.vm[0].place == VMF_INTERP && s.n > 0 && s.f[0].line == 0;
  id = stack_id(&s, 0);
  if (ls.broken >= 0 || s.n == 0 || id < 0 ||
      !order_goto(id, noline ? order_noline : order, is_exit))
    report(uc, &s);
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
  ucontext_t *uc = (ucontext_t *)context;
  (void)sig;
  (void)info;
  if (stepping) {
    uc->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
    nsteps++;
    look(uc);
  } else {
    uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
  }
}

static void call_run(lua_State *L)
{
  lua_getglobal(L, "run");
  if (lua_pcall(L, 0, 0, 0) != 0) {
    printf("FAILED: %s\n", lua_tostring(L, -1));
    exit(1);
  }
}

static void run_stepped(lua_State *L)
{
  stepping = 1;
  raise(SIGTRAP);
  call_run(L);
  stepping = 0;
  raise(SIGTRAP);
}

static void vm_open(void)
{
  VL = traces_vm();
  memset(&ls, 0, sizeof(ls));
  walks_reset();
  hs.pk = ls.in.pk = &pk;
  hs.g = ls.in.g = G(VL);
  hs.frames = &host_frames;
  ls.in.hs = &hs;
  ls.funcs = &funcs;
  ls.frames = &frames;
  memset(&funcs, 0, sizeof(funcs));
  memset(stack_index, 0, sizeof(stack_index));
  nstacks = 0;
  norder = at = nwrong = last_state = goes_on = 0;
  nsteps = 0;
  memset(nplace, 0, sizeof(nplace));
  lj_safeload_reset(&pk);
}

/* jit: options of the compiler, or NULL for the interpreter. */
static void step_program(const char *name, const char *code, const char *jit)
{
  int i;
  vm_open();
  ahead = jit ? AHEAD : AHEAD_INTERP;
  traces_run(VL, code);
  traces_run(VL, "jit.off()");
  lua_sethook(VL, on_hook, LUA_MASKCOUNT | LUA_MASKCALL, 1);
  call_run(VL);
  lua_sethook(VL, NULL, 0, 0);
  if (jit) traces_run(VL, jit);
  for (i = 0; i < 10; i++) call_run(VL);
  lua_settop(VL, 0);
  run_stepped(VL);
  printf("%s%s%s: %ld steps; in the interpreter %ld, traces %ld, exits %ld; "
	 "%d wrong\n",
	 name, jit ? ", " : ", interpreted", jit ? jit : "", nsteps, nplace[VMF_INTERP],
	 nplace[VMF_TRACE], nplace[VMF_EXIT], nwrong);
  fflush(stdout);
  for (i = 0; i < 3; i++) total[i] += nplace[i];
  lua_close(VL);
}

static const struct {
  const char *name;
  int flags;
  const char *code;
} programs[] = { { "inlined functions", 0,
		   "local function square(x)\n"
		   "  local y = x * x\n"
		   "  return y\n"
		   "end\n"
		   "local function norm(x, y)\n"
		   "  local a = square(x)\n"
		   "  local b = square(y)\n"
		   "  return a + b\n"
		   "end\n"
		   "function run()\n"
		   "  local sum = 0\n"
		   "  for i = 1, 40 do\n"
		   "    sum = sum + norm(i, 3) % 7\n"
		   "    sum = sum + square(i)\n"
		   "  end\n"
		   "  return sum\n"
		   "end\n" },
		 { "side traces", INTERPRETED,
		   "local function small(t, i)\n"
		   "  t.x = t.x + i\n"
		   "  return i\n"
		   "end\n"
		   "local function pick(t, i)\n"
		   "  if i % 3 == 0 then\n"
		   "    return small(t, i) + 1\n"
		   "  end\n"
		   "  if i % 5 == 0 then\n"
		   "    local v = small(t, 2)\n"
		   "    return v\n"
		   "  end\n"
		   "  if i % 40 == 7 then\n"
		   "    t.y = i\n"
		   "  end\n"
		   "  return i\n"
		   "end\n"
		   "function run()\n"
		   "  local t = { x = 1 }\n"
		   "  for i = 1, 90 do\n"
		   "    local v = pick(t, i)\n"
		   "    t.x = t.x + v\n"
		   "  end\n"
		   "  return t.x\n"
		   "end\n" },
		 { "up-recursion", RECURSIVE,
		   "local function up(n)\n"
		   "  if n == 0 then\n"
		   "    return 0\n"
		   "  end\n"
		   "  local v = up(n - 1)\n"
		   "  return v + 1\n"
		   "end\n"
		   "function run()\n"
		   "  local sum = 0\n"
		   "  for i = 1, 4 do\n"
		   "    sum = sum + up(60)\n"
		   "  end\n"
		   "  return sum\n"
		   "end\n" },
		 { "recursion with a table", RECURSIVE | INTERPRETED,
		   "local function depth(t, n)\n"
		   "  if n == 0 then return t end\n"
		   "  local r = depth(t, n - 1)\n"
		   "  r.x = r.x + n\n"
		   "  return r\n"
		   "end\n"
		   "function run()\n"
		   "  local t = { x = 0 }\n"
		   "  for i = 1, 4 do\n"
		   "    depth(t, 50)\n"
		   "  end\n"
		   "  return t.x\n"
		   "end\n" },
		 { "recursion tree", RECURSIVE,
		   "local function fib(n)\n"
		   "  if n < 2 then\n"
		   "    return n\n"
		   "  end\n"
		   "  local a = fib(n - 1)\n"
		   "  local b = fib(n - 2)\n"
		   "  return a + b\n"
		   "end\n"
		   "function run()\n"
		   "  return fib(12)\n"
		   "end\n" },
		 { "mutual recursion and tail calls", RECURSIVE,
		   "local even, odd\n"
		   "function even(n)\n"
		   "  if n == 0 then return 1 end\n"
		   "  return odd(n - 1)\n"
		   "end\n"
		   "function odd(n)\n"
		   "  if n == 0 then return 0 end\n"
		   "  local r = even(n - 1)\n"
		   "  return r + 1\n"
		   "end\n"
		   "local function loop(n, acc)\n"
		   "  if n == 0 then return acc end\n"
		   "  return loop(n - 1, acc + 1)\n"
		   "end\n"
		   "function run()\n"
		   "  local sum = 0\n"
		   "  for i = 1, 6 do\n"
		   "    sum = sum + even(30)\n"
		   "    sum = sum + loop(30, 0)\n"
		   "  end\n"
		   "  return sum\n"
		   "end\n" },
		 { "returns below the start", 0,
		   "local function inner(t, i)\n"
		   "  local n = 0\n"
		   "  for k = 1, 12 do\n"
		   "    n = n + t[k]\n"
		   "  end\n"
		   "  return n + i\n"
		   "end\n"
		   "local function middle(t, i)\n"
		   "  local v = inner(t, i)\n"
		   "  return v + 1\n"
		   "end\n"
		   "function run()\n"
		   "  local t, sum = {}, 0\n"
		   "  for i = 1, 12 do t[i] = i end\n"
		   "  for i = 1, 20 do\n"
		   "    local v = middle(t, i)\n"
		   "    sum = sum + v\n"
		   "  end\n"
		   "  return sum\n"
		   "end\n" },
		 { "pcall, varargs, metamethods", INTERPRETED,
		   "local mt = {}\n"
		   "mt.__index = function(t, k)\n"
		   "  return #k\n"
		   "end\n"
		   "mt.__add = function(a, b)\n"
		   "  local v = rawget(a, 'v')\n"
		   "  return v + b\n"
		   "end\n"
		   "local function risky(i, ...)\n"
		   "  local a, b = ...\n"
		   "  return i + a + b\n"
		   "end\n"
		   "local function pass(...)\n"
		   "  local v = risky(...)\n"
		   "  return v\n"
		   "end\n"
		   "function run()\n"
		   "  local t = setmetatable({ v = 3 }, mt)\n"
		   "  local sum = 0\n"
		   "  for i = 1, 14 do\n"
		   "    local ok, v = pcall(risky, i, 2, 3)\n"
		   "    sum = sum + v\n"
		   "    sum = sum + t.other\n"
		   "    sum = sum + (t + i)\n"
		   "    sum = sum + pass(i, 1, 2)\n"
		   "  end\n"
		   "  return sum\n"
		   "end\n" },
		 { "stitched traces", 0,
		   "local function touch(i)\n"
		   "  local s = debug.traceback('x', 50)\n"
		   "  return #s + i\n"
		   "end\n"
		   "function run()\n"
		   "  local sum = 0\n"
		   "  for i = 1, 10 do\n"
		   "    local v = touch(i)\n"
		   "    sum = sum + v\n"
		   "  end\n"
		   "  return sum\n"
		   "end\n" },
		 { "calls of C functions and allocation", 0,
		   "local function name(i)\n"
		   "  local s = 'n' .. i\n"
		   "  return s\n"
		   "end\n"
		   "local function pair(a, b)\n"
		   "  return { a, b }\n"
		   "end\n"
		   "function run()\n"
		   "  local t, sum = {}, 0\n"
		   "  for i = 1, 20 do\n"
		   "    t[i] = pair(name(i), i)\n"
		   "    sum = sum + #t[i][1] + math.floor(i / 3)\n"
		   "    t[i][3] = math.sin(i)\n"
		   "    if i % 9 == 0 then t.x = name(i) end\n"
		   "  end\n"
		   "  return sum\n"
		   "end\n" },
		 { "values in memory", 0,
		   "local function mix(x, y)\n"
		   "  return (x + y) % 1009\n"
		   "end\n"
		   "function run()\n"
		   "  local a, b, c, d, e, f, g, h = 1, 2, 3, 4, 5, 6, 7, 8\n"
		   "  local p, q, r, s, t, u, v, w = 1, 2, 3, 4, 5, 6, 7, 8\n"
		   "  for i = 1, 40 do\n"
		   "    a, b, c, d = mix(a, b), mix(b, c), mix(c, d), mix(d, e)\n"
		   "    e, f, g, h = mix(e, f), mix(f, g), mix(g, h), mix(h, a)\n"
		   "    p, q, r, s = mix(p, q), mix(q, r), mix(r, s), mix(s, t)\n"
		   "    t, u, v, w = mix(t, u), mix(u, v), mix(v, w), mix(w, p)\n"
		   "    if i % 9 == 0 then\n"
		   "      a, p = p, a\n"
		   "    end\n"
		   "  end\n"
		   "  return a + p + w + h\n"
		   "end\n" } };

int main(void)
{
  struct sigaction sa;
  size_t i;
  REQUIRE(lj_hostwalk_warmup());
  memset(&sa, 0, sizeof(sa));
  sa.sa_sigaction = on_trap;
  sa.sa_flags = SA_SIGINFO;
  REQUIRE(sigaction(SIGTRAP, &sa, NULL) == 0);
  for (i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
    const char *p = programs[i].code, *name = programs[i].name;
    flags = programs[i].flags;
    /* Side traces, then exits to the interpreter instead. */
    step_program(name, p, "jit.on() jit.opt.start('hotloop=4', 'hotexit=2')");
    step_program(name, p, "jit.on() jit.opt.start('hotloop=4', 'hotexit=200')");
    if (flags & INTERPRETED) step_program(name, p, NULL);
  }
  CHECK(total[VMF_INTERP] > 20000 && total[VMF_TRACE] > 20000 && total[VMF_EXIT] > 2000);
  walks_report();
  return check_status();
}
