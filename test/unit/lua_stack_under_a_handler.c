/* TIMEOUT: 600
** A handler of the program interrupts the VM, and our signal interrupts that handler: the
** walk gives the same Lua stack as a signal at the VM's own instruction would, from the
** registers that the program's handler returns to. At each instruction of the interpreter,
** of compiled code and of trace exits.
*/

#include "lua_stepper.h"
#include "regs_of.h"

#define PROGRAM \
  "local function add(a, b) return a + b end\n" \
  "local function variadic(...) return select('#', ...), ... end\n" \
  "local meta = setmetatable({}, { __index = function(t, k) return k end })\n" \
  "local function inlined(n) if n % 5 == 0 then return variadic(n, n) end return add(n, 1) end\n" \
  "function run()\n" \
  "  local s = 0\n" \
  "  for i = 1, 60 do s = s + inlined(i) + meta[i] end\n" \
  "  local co = coroutine.wrap(function(a) local b = coroutine.yield(a) return add(a, b) end)\n" \
  "  s = s + co(1) + co(2) + #tostring(s) + (pcall(error, 'x') and 1 or 0)\n" \
  "  local t = { 3, 1, 2 }\n" \
  "  table.sort(t, function(a, b) return a < b end)\n" \
  "  return s\n" \
  "end"

/* The walk below the program's handler. */
static struct {
  SafeLoad pk;
  FuncTab funcs;
  HostWalk hs;
  LuaWalk ls;
  FrameList host_frames, frames;
} inner;

static long nsame, ninterp, nexit, ntrace, nwrong;

static void on_inner(int sig, siginfo_t *info, void *context)
{
  ucontext_t *uc = (ucontext_t *)context;
  (void)sig;
  (void)info;
  lj_safeload_reset(&inner.pk);
  lj_framelist_reset(&inner.host_frames);
  lj_hostwalk_walk(&inner.hs, regs_of(uc));
  inner.ls.in.moving = lstep.ls.in.moving;
  inner.ls.in.moving_from = lstep.ls.in.moving_from;
  lj_luawalk_walk(&inner.ls, regs_of(uc));
  lj_framelist_finish(&inner.frames);
}

/* Both tables number the functions in their own way. */
static int is_same(FrameWord a, FrameWord b)
{
  if (frame_kind(a) != SPF_FRAME_LFUNC || frame_kind(b) != SPF_FRAME_LFUNC) return a == b;
  return frame_aux(a) == frame_aux(b) &&
	 lj_functab_entry(&lstep.funcs, frame_payload_lo(a))->pt ==
	   lj_functab_entry(&inner.funcs, frame_payload_lo(b))->pt;
}

static int is_same_stack(void)
{
  const FrameList *a = &lstep.frames, *b = &inner.frames;
  uint32_t i;
  if (a->len != b->len || lstep.ls.broken != inner.ls.broken ||
      lstep.ls.nbounds != inner.ls.nbounds || lstep.hs.nvm != inner.hs.nvm ||
      lstep.hs.leaf != inner.hs.leaf)
    return 0;
  for (i = 0; i < a->len; i++)
    if (!is_same(a->list[i], b->list[i])) return 0;
  return 1;
}

/* The handler of SIGTRAP is the program's: it is interrupted here. */
static void look(const ucontext_t *uc)
{
  VMPlace place = lstep.hs.vm[0].place;
  if (lstep.hs.leaf != LEAF_VM && place == VMF_INTERP) return; /* C code. */
  raise(SIGUSR2);
  if (place == VMF_EXIT) nexit++;
  else if (place == VMF_TRACE) ntrace++;
  else ninterp++;
  if (is_same_stack()) {
    nsame++;
  } else if (++nwrong <= 10) {
    printf("  wrong at 0x%llx, place %d, VM state %d: leaf %d and %d, broken %d and %d, "
	   "%u and %u frames\n",
	   (unsigned long long)uc->uc_mcontext.gregs[REG_RIP], (int)place,
	   (int)G(lstep.L)->vmstate, (int)lstep.hs.leaf, (int)inner.hs.leaf,
	   lstep.ls.broken, inner.ls.broken, lstep.frames.len, inner.frames.len);
  }
}

static void run(const char *what)
{
  nsame = ninterp = nexit = ntrace = nwrong = 0;
  lstep_run("run", look);
  printf("%s: %ld steps in the interpreter, %ld in exits, %ld in traces, %ld the same\n",
	 what, ninterp, nexit, ntrace, nsame);
  CHECK_EQ(nwrong, 0);
}

int main(void)
{
  struct sigaction sa;
  if (!lstep_open()) return 77;
  memset(&sa, 0, sizeof(sa));
  sa.sa_sigaction = on_inner;
  sa.sa_flags = SA_SIGINFO;
  REQUIRE(sigaction(SIGUSR2, &sa, NULL) == 0);
  inner.hs.pk = inner.ls.in.pk = &inner.pk;
  inner.hs.g = inner.ls.in.g = G(lstep.L);
  inner.hs.frames = &inner.host_frames;
  inner.ls.in.hs = &inner.hs;
  inner.ls.funcs = &inner.funcs;
  inner.ls.frames = &inner.frames;
  lstep_do(PROGRAM);
  lstep_do("jit.off()");
  run("interpreter");
  CHECK(ninterp > 1000);
  lstep_do("jit.on() jit.opt.start('hotexit=10000')"); /* Exits stay exits. */
  lstep_do("for i = 1, 50 do run() end");
  run("compiled code");
  CHECK(ntrace > 100 && nexit > 100 && ninterp > 100);
  lua_close(lstep.L);
  return check_status();
}
