/* TIMEOUT: 600
** The Lua walk on damaged stacks. The test builds a deep stack of all kinds of frames.
** Then it replaces each word of the stack, of the VM's C frames, and of the walk's
** starting point by several kinds of garbage. The walk never crashes. Its result is the
** true stack, is marked as broken, or does not fit the host side (which the session marks
** as broken). The same for the walk of a sleeping thread, which knows less and only copies.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "lj_obj.h"
#include "lj_frame.h"
#include "lj_vm.h"
#include "profile/lua/lj_luasleep.h"
#include "profile/lua/lj_luawalk.h"
#include "check.h"
#include "walks_alike.h"
#include "regs_of.h"

#define PAGE 4096

static SafeLoad pk;
static HostWalk hs;
static FrameList host_frames, frames, true_frames;
static FuncTab funcs;
static LuaWalk ls;
static uintptr_t gone, guarded, filled; /* Pages: unmapped, PROT_NONE, 0xff. */
static uintptr_t lookalike;             /* A function with a wild prototype. */
static int nwalks, nbroken, nmisfit;

/* Of a thread that sleeps. */
static SafeLoad sleep_pk;
static SafeCopies copies;
static HostWalk sleep_hs;
static FrameList sleep_host, sleep_frames;
static LuaSleep sleeper;
static int nsleep_broken, nsleep_misfit;

/* Walk from another thread: only stack pointer and PC are known. */
static void walk_sleeper(const ucontext_t *uc)
{
  WalkRegs regs = *regs_of(uc);
  uint32_t i;
  regs.valid = 1u << WALKREG_SP | 1u << WALKREG_PC;
  sleep_pk.more = &copies;
  sleep_hs.pk = sleeper.pk = &sleep_pk;
  sleep_hs.g = sleeper.g = hs.g;
  sleep_hs.frames = &sleep_host;
  sleep_hs.is_remote = sleep_hs.cross_thread = 1;
  sleeper.hs = &sleep_hs;
  sleeper.frames = &sleep_frames;
  lj_safeload_reset(&sleep_pk);
  lj_framelist_reset(&sleep_host);
  lj_framelist_reset(&sleep_frames);
  lj_hostwalk_walk(&sleep_hs, &regs);
  lj_luasleep_walk(&sleeper);
  lj_framelist_finish(&sleep_frames);
  for (i = 0; i < sleep_frames.len; i++) {
    FrameWord w = sleep_frames.list[i];
    if (frame_kind(w) == SPF_FRAME_LFUNC) {
      const SleepFunc *fn = &sleeper.func[frame_payload_lo(w)];
      FuncEntry *fe = lj_functab_get(&funcs, fn->pt, fn->key);
      sleep_frames.list[i] = frame_word2(SPF_FRAME_LFUNC, fe->fid, frame_aux(w));
    }
  }
}

static void walk(const ucontext_t *uc)
{
  walk_sleeper(uc);
  lj_safeload_reset(&pk);
  lj_framelist_reset(&host_frames);
  lj_hostwalk_walk(&hs, regs_of(uc));
  lj_luawalk_walk(&ls, regs_of(uc));
  walks_compare(&ls, uc);
  nwalks++;
}

/* Is it the true frame? A line may be unknown, but not wrong. */
static int is_frame(FrameWord w, FrameWord truth)
{
  return w == truth || (frame_kind(w) == SPF_FRAME_LFUNC && frame_aux(w) == 0 &&
			(uint32_t)w == (uint32_t)truth);
}

/* Are the frames the true ones, except the innermost? */
static int is_suffix(const FrameList *a, const FrameList *b)
{
  uint32_t n = a->len < b->len ? a->len : b->len;
  if (a->len > b->len) return 0;
  for (; n > 1; n--)
    if (!is_frame(a->list[a->len - n + 1], b->list[b->len - n + 1])) return 0;
  return 1;
}

static int is_same(const FrameList *a, const FrameList *b)
{
  uint32_t i;
  for (i = 0; i < a->len && i < b->len; i++)
    if (!is_frame(a->list[i], b->list[i])) return 0;
  return a->len == b->len;
}

static int garbage(int i, uint64_t old, uint64_t *v)
{
  const uint64_t func = (uint64_t)LJ_TFUNC << 47;
  const uint64_t thread = (uint64_t)LJ_TTHREAD << 47;
  switch (i) {
  case 0: *v = 0; break;
  case 1: *v = ~(uint64_t)0; break;
  case 2: *v = U64x(41414141, 41414141); break;
  case 3: *v = gone; break;
  case 4: *v = gone | func; break;
  case 5: *v = gone | thread; break;
  case 6: *v = guarded + PAGE - 8; break;
  case 7: *v = (guarded - 8) | func; break; /* Cut by the page's end. */
  case 8: *v = filled | func; break;
  case 9: *v = lookalike | func; break;
  case 10: *v = func; break;
  case 11: *v = U64x(ffffffff, ff600000); break;
  case 12: *v = U64x(00008000, 00000000); break;
  case 13: *v = old ^ 1; break;
  case 14: *v = old ^ 2; break;
  case 15: *v = old ^ 3; break;
  case 16: *v = old + ((uint64_t)1 << 40); break;
  case 17: *v = old ^ ((uint64_t)1 << 63); break;
  case 18: *v = old ^ ((uint64_t)1 << 46); break;
  case 19: *v = (uint64_t)0 - old; break;
  default: return 0;
  }
  return 1;
}

static void judge_sleeper(const char *what, long at, int kind, int exact)
{
  int good = exact ? is_same(&sleep_frames, &true_frames)
		   : is_suffix(&sleep_frames, &true_frames);
  if (sleeper.res.broken >= 0) nsleep_broken++;
  else if (!good && (sleep_hs.broken >= 0 || sleeper.res.nbounds != sleep_hs.nvm))
    nsleep_misfit++;
  else if (!good && ++check_failures <= 20)
    printf("FAILED: sleeper: %s %ld, garbage %d: wrong stack of %u frames, not %u\n", what,
	   at, kind, sleep_frames.len, true_frames.len);
}

/* Judge a walk over damage. */
static void judge(const char *what, long at, int kind, int exact)
{
  int good = exact ? is_same(&frames, &true_frames) : is_suffix(&frames, &true_frames);
  judge_sleeper(what, at, kind, exact);
  if (ls.broken >= 0) {
    nbroken++;
    CHECK(ls.broken < SPF_BROKEN__MAX);
  } else if (!good && ls.nbounds != hs.nvm) {
    nmisfit++;
  } else if (!good) {
    if (++check_failures > 20) return; /* Enough for a diagnosis. */
    printf("FAILED: %s %ld, garbage %d: wrong stack of %u frames, not %u\n", what, at, kind,
	   frames.len, true_frames.len);
  }
}

/* keep_low: the lowest bits are flags, which any value of is plausible. */
static void damage(const char *what, volatile uint64_t *words, long n, int keep_low,
		   const ucontext_t *uc)
{
  uint64_t old, v;
  long at;
  int k;
  for (at = 0; at < n; at++) {
    old = words[at];
    for (k = 0; garbage(k, old, &v); k++) {
      if (keep_low) v = (v & ~(uint64_t)3) | (old & 3);
      words[at] = v;
      walk(uc);
      words[at] = old;
      judge(what, at, k, 1);
    }
  }
}

/* As if interrupted inside the interpreter, with wild registers. */
static void damage_registers(lua_State *L, const ucontext_t *uc)
{
  const uintptr_t bot = (uintptr_t)tvref(L->stack);
  const uintptr_t cf = hs.vm[0].cf, pc0 = hs.vm[0].pc;
  ucontext_t u = *uc;
  greg_t *r = u.uc_mcontext.gregs;
  uintptr_t base;
  uint64_t v;
  int k, j;
  r[REG_RIP] = (greg_t)((uintptr_t)(void *)lj_vm_asm_begin + 64);
  r[REG_RSP] = (greg_t)cf;
  for (k = -1; k < 0 || garbage(k, (uintptr_t)L->base, &v); k++) {
    r[REG_RDX] = (greg_t)(k < 0 ? (uintptr_t)L->base : v);
    for (j = -1; j < 0 || garbage(j, pc0, &v); j++) {
      r[REG_RBX] = (greg_t)(j < 0 ? pc0 : v);
      walk(&u);
      judge("registers", k, j, 0);
    }
  }
  for (base = bot - 64; base < (uintptr_t)(L->top + 32); base += 8)
    for (j = 0; j < 3; j++) {
      r[REG_RDX] = (greg_t)base;
      r[REG_RBX] = (greg_t)(j == 0 ? pc0 : j == 1 ? gone : base);
      walk(&u);
      judge("base", (long)(base - bot), j, 0);
    }
  for (k = 0; garbage(k, cf, &v); k++) {
    r[REG_RDX] = (greg_t)(uintptr_t)L->base;
    r[REG_RBX] = (greg_t)pc0;
    r[REG_RSP] = (greg_t)v;
    walk(&u);
    judge("stack pointer", k, 0, 0);
    r[REG_RSP] = (greg_t)cf;
    r[REG_RIP] = (greg_t)v;
    walk(&u);
    judge("instruction pointer", k, 0, 0);
    r[REG_RIP] = (greg_t)((uintptr_t)(void *)lj_vm_asm_begin + 64);
  }
}

static int probe(lua_State *L)
{
  static ucontext_t uc;
  static HostWalk good;
  TValue *base = L->base;
  uint64_t v;
  uint32_t i;
  int k;
  getcontext(&uc);
  walk(&uc);
  CHECK(ls.broken < 0);
  CHECK_EQ(ls.nbounds, hs.nvm);
  CHECK(frames.len > 60);
  CHECK_EQ(ls.top, TOP_C);
  true_frames = frames;
  good = hs;
  CHECK(sleeper.res.broken < 0);
  CHECK(is_same(&sleep_frames, &true_frames));

  damage("stack slot", (volatile uint64_t *)tvref(L->stack),
	 (long)(L->top - tvref(L->stack)), 0, &uc);
  for (i = 0; i < good.nvm && i < HOSTWALK_VMFRAMES; i++) /* Locals only. */
    damage("VM frame", (volatile uint64_t *)good.vm[i].cf, CFRAME_SIZE / 8 - 5, 1, &uc);
  for (k = 0; garbage(k, (uintptr_t)base, &v); k++) {
    L->base = (TValue *)(uintptr_t)v;
    walk(&uc);
    L->base = base;
    judge("L->base", 0, k, 0);
  }
  walk(&uc);
  damage_registers(L, &uc);
  walk(&uc);
  CHECK(ls.broken < 0 && is_same(&frames, &true_frames)); /* Nothing is left. */
  return 0;
}

static const char script[] =
  "local probe = ...\n"
  "local function deep(n, ...)\n"
  "  if n == 0 then probe() return 1 end\n"
  "  local r = deep(n - 1, n, ...)\n"
  "  return r + 1\n"
  "end\n"
  "local mt = { __index = function(t, k) return (deep(50)) end,\n"
  "	       __add = function(a, b) return (a.x) end,\n"
  "	       __concat = function(a, b) return a + b end,\n"
  "	       __lt = function(a, b) return a .. b end }\n"
  "local function meta()\n"
  "  local t = setmetatable({}, mt)\n"
  "  local less = t < t\n"
  "  return less\n"
  "end\n"
  "local function co()\n"
  "  local ok = pcall(meta)\n"
  "  return ok\n"
  "end\n"
  "local function wrapped() local f = coroutine.wrap(co) local r = f() return r end\n"
  "local function cb() local r = wrapped() return nil end\n"
  "local function sub() local r = string.gsub('x', 'x', cb) return r end\n"
  "local function handler(e) return e end\n"
  "for _ = 1, 1 do\n"
  "  local ok = xpcall(sub, handler)\n"
  "  table.sort({ 1, 2 }, function(a, b) if sub then local s = sub sub = nil s() end return a < b end)\n"
  "end\n";

int main(void)
{
#ifdef __SANITIZE_ADDRESS__
  puts("skipped: AddressSanitizer objects to the reading of strange addresses");
  return 77;
#endif
  lua_State *L = luaL_newstate();
  uint8_t *m = mmap(NULL, 6 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
  GCfuncL *fn;
  REQUIRE(L != NULL && m != MAP_FAILED);
  luaL_openlibs(L);
  REQUIRE(luaL_dostring(L, "jit.off()") == 0);
  gone = (uintptr_t)m;
  guarded = (uintptr_t)m + 2 * PAGE;
  filled = (uintptr_t)m + 3 * PAGE;
  memset((void *)filled, 0xff, PAGE);
  lookalike = (uintptr_t)m + 4 * PAGE;
  fn = (GCfuncL *)lookalike;
  fn->gct = (uint8_t)~LJ_TFUNC;
  fn->ffid = FF_LUA;
  setmref(fn->pc, (char *)gone + sizeof(GCproto));
  REQUIRE(munmap(m, PAGE) == 0);
  REQUIRE(mprotect(m + 2 * PAGE, PAGE, PROT_NONE) == 0);
  REQUIRE(lj_hostwalk_warmup());
  hs.pk = ls.in.pk = &pk;
  hs.g = ls.in.g = G(L);
  hs.frames = &host_frames;
  ls.in.hs = &hs;
  ls.funcs = &funcs;
  ls.frames = &frames;
  REQUIRE(luaL_loadbuffer(L, script, sizeof(script) - 1, "@script") == 0);
  lua_pushcfunction(L, probe);
  if (lua_pcall(L, 1, 0, 0) != 0) {
    printf("FAILED: %s\n", lua_tostring(L, -1));
    return 1;
  }
  printf("%d walks, %d broken, %d misfits; sleeper: %d broken, %d misfits\n", nwalks,
	 nbroken, nmisfit, nsleep_broken, nsleep_misfit);
  walks_report();
  CHECK(nwalks > 10000);
  CHECK(nbroken > 500);
  CHECK(nsleep_broken > 500);
  lua_close(L);
  return check_status();
}
