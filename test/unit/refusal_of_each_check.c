/*
** Each check that refuses a stack has its own code. The test damages one word of a valid
** stack so that one check must fail, for each check of both walks. Then it compares the
** code and its group.
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
#include "profile/lua/lj_luawalk.h"
#include "check.h"
#include "regs_of.h"

#define PAGE 4096
typedef uint64_t __attribute__((may_alias)) AnyWord;
#define WORD(p) (*(volatile AnyWord *)(uintptr_t)(p))

static SafeLoad pk;
static HostWalk hs, host; /* Of the Lua walks; of the damaged host walks. */
static FrameList host_frames, frames;
static FuncTab funcs;
static LuaWalk ls;
static uintptr_t gone;          /* An unmapped page, behind a mapped one. */
static uintptr_t far_frame[16]; /* Memory that looks like VM frames. */
static uint8_t provoked[SPF_REFUSED__MAX];
static ucontext_t uc;

static void expect(const char *what, int broken, int refused, int group, int code)
{
  if (broken == group && refused == code) {
    provoked[code] = 1;
    return;
  }
  check_failures++;
  printf("FAILED: %s: group %d and code %d, expected %d and %d\n", what, broken, refused,
	 group, code);
}

static void walk(void)
{
  lj_safeload_reset(&pk);
  ls.refused = -1;
  lj_luawalk_walk(&ls, regs_of(&uc));
}

/* The walk with another word must be refused with this code. */
#define LUA_GROUP(addr, value, group, code) \
  do { \
    uint64_t word_ = WORD(addr); \
    WORD(addr) = (uint64_t)(value); \
    walk(); \
    WORD(addr) = word_; \
    expect(#code, ls.broken, ls.refused, SPF_BROKEN_##group, SPF_REFUSED_##code); \
  } while (0)
#define LUA(addr, value, code) LUA_GROUP(addr, value, CHAIN, code)

/* -- Damaged Lua stacks -------------------------------------------------------- */

/* Innermost frame with a link of this type, by its link slot. */
static uintptr_t find_frame(lua_State *L, int type)
{
  TValue *f = L->base - 1;
  for (; f > tvref(L->stack) + LJ_FR2; f = frame_prev(f))
    if (frame_typep(f) == type || (type == FRAME_LUA && frame_islua(f)))
      return (uintptr_t)f;
  printf("FAILED, giving up: no frame of type %d\n", type);
  exit(1);
}

static uint64_t as_func(const void *fn)
{
  return ((uint64_t)LJ_TFUNC << 47) | (uintptr_t)fn;
}

static void damage_slots(lua_State *L, lua_State *main_L)
{
  static struct {
    GCproto pt;
    BCIns bc[4];
  } proto;
  static GCfuncL fake;
  uintptr_t top = (uintptr_t)(L->base - 1), bot = (uintptr_t)(tvref(L->stack) + LJ_FR2);
  uintptr_t lua_frame = find_frame(L, FRAME_LUA);
  uintptr_t caller = (uintptr_t)frame_prev((TValue *)lua_frame);
  uintptr_t cont = find_frame(L, FRAME_CONT), varg = find_frame(L, FRAME_VARG);
  uintptr_t pcall = find_frame(L, FRAME_PCALL), delta;
  uint64_t cfunc = WORD(top - 8), luafunc = WORD(varg - 8);
  LUA_GROUP(&L->stack, 0, NO_BASE, NO_STACK);
  LUA(&L->base, bot + (uintptr_t)L->stacksize * 8 + 64, FRAME_OUTSIDE);
  {
    uint64_t base = WORD(&L->base);
    WORD(&L->base) = gone + 256;
    LUA(&L->stack, gone, FRAME_UNREADABLE);
    WORD(&L->base) = base;
  }
  LUA(top - 8, 0, SLOT_NOT_FUNCTION);
  LUA(top - 8, ((uint64_t)LJ_TTHREAD << 47) | (uintptr_t)main_L, SLOT_NOT_THREAD);
  LUA(top - 8, as_func((void *)gone), FUNC_INVALID);
  fake.gct = (uint8_t)~LJ_TFUNC;
  fake.ffid = FF_LUA;
  setmref(fake.pc, (char *)gone + sizeof(GCproto));
  LUA(top - 8, as_func(&fake), PROTO_INVALID);
  proto.pt.gct = (uint8_t)~LJ_TPROTO;
  proto.pt.sizebc = 4;
  setgcrefp(proto.pt.chunkname, gone);
  setmref(fake.pc, proto.bc);
  LUA(top - 8, as_func(&fake), NO_ID);
  fake.ffid = FF_C;
  LUA(top - 8, as_func(&fake), CFUNC_INVALID);
  LUA(lua_frame, gone + 8, PC_UNREADABLE);
  proto.bc[0] = BCINS_AD(BC_CALL, 255, 0);
  LUA(lua_frame, &proto.bc[1], CALLER_OUTSIDE);
  LUA(caller - 8, 0, CALLER_INVALID);
  LUA(caller - 8, cfunc, CALLER_NOT_LUA);
  LUA(caller - 8, luafunc, PC_NOT_IN_CALLER);
  LUA(top, FRAME_PCALL, LINK_ZERO);
  LUA(top, ((uint64_t)1 << 40) | FRAME_PCALL, LINK_OUTSIDE);
  {
    uint64_t base = WORD(&L->base), slot = WORD(bot + 8);
    WORD(&L->base) = bot + 24;
    WORD(bot + 8) = cfunc;
    LUA(bot + 16, 8 | FRAME_CONT, CONT_OUTSIDE);
    WORD(&L->base) = base;
    WORD(bot + 8) = slot;
  }
  delta = WORD(cont) & ~(uint64_t)FRAME_TYPEP;
  LUA(cont - delta - 8, 0, CONT_CALLER);
  LUA(cont - 24, gone, CONT_NOT_VM);
  LUA(cont - 16, gone, CONT_PC);
  delta = WORD(varg) & ~(uint64_t)FRAME_TYPEP;
  LUA(varg - delta - 8, WORD(caller - 8), VARARG_DIFFERS);
  delta = WORD(pcall) & ~(uint64_t)FRAME_TYPEP;
  LUA(pcall - delta - 8, cfunc, PCALL_DIFFERS);
}

static void damage_chain(lua_State *L, lua_State *main_L)
{
  uintptr_t first = (uintptr_t)cframe_raw(L->cframe);
  uintptr_t prev = first + CFRAME_OFS_PREV, *fake = far_frame;
  uintptr_t at_end = gone - CFRAME_SIZE + 8; /* Its return address is unreadable. */
  uintptr_t cont = find_frame(L, FRAME_CONT);
  uint64_t word;
  LUA(&L->cframe, 0, CALL_NO_CFRAME);
  word = WORD(cont - 24);
  WORD(cont - 24) = LJ_CONT_FFI_CALLBACK;
  LUA(&L->cframe, 0, CALLBACK_NO_CFRAME);
  WORD(cont - 24) = word;
  LUA(&L->cframe, gone, CFRAME_UNREADABLE);
  /* Two more VM frames than runs: one may be without a Lua frame. */
  memset(fake, 0, sizeof(far_frame));
  WORD((uintptr_t)fake + CFRAME_OFS_PREV) = (uintptr_t)fake + 8;
  REQUIRE(CFRAME_OFS_PREV % 8 == 0 && CFRAME_OFS_PREV / 8 + 2 < 16);
  WORD((uintptr_t)fake + 8 + CFRAME_OFS_PREV) = WORD(&L->cframe);
  LUA(&L->cframe, fake, CFRAME_LEFT);
  LUA(&main_L->stack, 0, RESUMER_NO_STACK);
  LUA_GROUP(&main_L->cframe, 0, NO_CFI, RESUMER_UNLINKED);
  word = WORD(at_end + CFRAME_OFS_PREV);
  WORD(at_end + CFRAME_OFS_PREV) = 0;
  LUA_GROUP(prev, at_end | CFRAME_RESUME, NO_CFI, RESUMER_UNREADABLE);
  WORD(at_end + CFRAME_OFS_PREV) = word;
}

/* The host called the last VM frame. Its stack does not show where. */
static void damage_resumer(lua_State *L)
{
  uintptr_t first = (uintptr_t)cframe_raw(L->cframe);
  HostWalk good = hs;
  uintptr_t page = gone - PAGE;
  uint32_t i;
  memset((void *)page, 0, PAGE);
  for (i = 0; i < hs.nvm && i < HOSTWALK_VMFRAMES; i++) hs.vm[i].cf = 0;
  hs.broken = SPF_BROKEN_NO_CFI;
  LUA_GROUP(first + CFRAME_OFS_PREV, page | CFRAME_RESUME, NO_CFI, RESUMER_UNKNOWN);
  hs = good;
  hs.vm[0].L = (lua_State *)gone;
  walk();
  hs = good;
  expect("NO_THREAD", ls.broken, ls.refused, SPF_BROKEN_NO_BASE, SPF_REFUSED_NO_THREAD);
}

/* Candidates that no damage of memory makes. */
static void odd_candidates(lua_State *L)
{
  LuaTop top;
  lua_State *walked;
  LuaArea a;
  uint64_t cframe = WORD(&L->cframe);
  memset(&top, 0, sizeof(top));
  top.n = 1;
  lj_safeload_reset(&pk);
  REQUIRE(lj_luawalk_begin(&ls, &walked, &a) && walked == L);
  top.c[0].frame = (uintptr_t)(L->base - 1);
  WORD(&L->cframe) = 0;
  CHECK_EQ(lj_luawalk_try(&ls, L, &top, 0, 1), 0);
  WORD(&L->cframe) = cframe;
  expect("ENTRY_NO_CFRAME", SPF_BROKEN_CHAIN, ls.refused, SPF_BROKEN_CHAIN,
	 SPF_REFUSED_ENTRY_NO_CFRAME);
#if LJ_HASJIT
  {
    static TraceNode node;
    static TraceBlock block;
    static TraceSeg seg;
    top.ts.runs = 1;
    top.ts.at.block = NULL;
    REQUIRE(lj_luawalk_begin(&ls, &walked, &a));
    CHECK_EQ(lj_luawalk_try(&ls, L, &top, 0, 0), 1);
    expect("NO_POSITION", ls.broken, ls.refused, SPF_BROKEN_TRACE, SPF_REFUSED_NO_POSITION);
    node.pt = (GCproto *)gone;
    node.parent = TRACENODE_NONE;
    block.nnode = 1;
    block.node = &node;
    top.ts.at.block = &block;
    top.ts.at.seg = &seg;
    REQUIRE(lj_luawalk_begin(&ls, &walked, &a));
    CHECK_EQ(lj_luawalk_try(&ls, L, &top, 0, 0), 0);
    expect("INLINED_INVALID", SPF_BROKEN_CHAIN, ls.refused, SPF_BROKEN_CHAIN,
	   SPF_REFUSED_INLINED_INVALID);
  }
#endif
}

/* Of candidates that fail, the one that came the furthest gives the code. */
static void furthest_counts(lua_State *L)
{
  uintptr_t pcall = find_frame(L, FRAME_PCALL);
  uintptr_t delta = WORD(pcall) & ~(uint64_t)FRAME_TYPEP;
  uint64_t word = WORD(pcall - delta - 8);
  LuaTop top;
  lua_State *walked;
  LuaArea a;
  int order;
  memset(&top, 0, sizeof(top));
  top.n = 2;
  WORD(pcall - delta - 8) = 0;
  for (order = 0; order < 2; order++) {
    lj_safeload_reset(&pk);
    REQUIRE(lj_luawalk_begin(&ls, &walked, &a));
    top.c[order].frame = (uintptr_t)(L->base - 1);
    top.c[!order].frame = (uintptr_t)tvref(L->maxstack) + 4096 * 8;
    CHECK_EQ(lj_luawalk_try(&ls, L, &top, 0, 0), 0);
    CHECK_EQ(lj_luawalk_try(&ls, L, &top, 1, 0), 0);
    CHECK_EQ(ls.refused, SPF_REFUSED_PCALL_DIFFERS);
    CHECK(ls.furthest > 4);
  }
  WORD(pcall - delta - 8) = word;
}

static int probe(lua_State *L)
{
  lua_State *main_L = mainthread(G(L));
  getcontext(&uc);
  lj_safeload_reset(&pk);
  lj_framelist_reset(&host_frames);
  lj_hostwalk_walk(&hs, regs_of(&uc));
  walk();
  CHECK(ls.broken < 0);
  CHECK_EQ(ls.nbounds, hs.nvm);
  REQUIRE(L != main_L);
  damage_slots(L, main_L);
  damage_chain(L, main_L);
  damage_resumer(L);
  odd_candidates(L);
  furthest_counts(L);
  walk();
  CHECK(ls.broken < 0);
  return 0;
}

/* -- Damaged host stacks -------------------------------------------------------- */

static void walk_host(const ucontext_t *from)
{
  lj_safeload_reset(&pk);
  lj_framelist_reset(&host_frames);
  host.refused = -1;
  lj_hostwalk_walk(&host, regs_of(from));
}

static void host_at(uintptr_t pc, uintptr_t sp, int group, int code, const char *what)
{
  ucontext_t u = uc;
  u.uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
  u.uc_mcontext.gregs[REG_RSP] = (greg_t)sp;
  walk_host(&u);
  expect(what, host.broken, host.refused, group, code);
}
#define HOST(pc, sp, group, code) \
  host_at((uintptr_t)(pc), (uintptr_t)(sp), SPF_BROKEN_##group, SPF_REFUSED_HOST_##code, \
	  "HOST_" #code)

__attribute__((noinline)) static int deep(int n)
{
  ucontext_t here;
  int r;
  if (n == 0) {
    getcontext(&here);
    walk_host(&here);
    expect("HOST_STEPS_MAX", host.broken, host.refused, SPF_BROKEN_NO_CFI,
	   SPF_REFUSED_HOST_STEPS_MAX);
    return 0;
  }
  r = deep(n - 1);
  __asm__ volatile("" : : : "memory");
  return r + 1;
}

static void damage_host(void)
{
  static uintptr_t stack[32];
  uintptr_t pc = (uintptr_t)(void *)lj_vm_asm_begin;
  const uint8_t *saved;
  stack[0] = pc + 65;
  HOST(gone, stack, NO_CFI, NO_OBJECT);
  HOST(stack, stack, NO_CFI, NO_RULE);
  HOST(damage_host, gone + 64, FAULT, SAVED);
  HOST(pc + 64, gone + 64, FAULT, RETURN);
  HOST(damage_host, stack, NO_CFI, NO_CFRAME);
  while (lj_vmcode_part(pc) == VMCODE_NONE || lj_vmcode_partial(pc, &saved) < 0) pc++;
  HOST(pc, gone + 64, FAULT, PARTIAL);
  deep(HOSTWALK_STEPS + 100);
}

static const char script[] =
  "local probe = ...\n"
  "local function deep(n)\n"
  "  if n == 0 then probe() return 1 end\n"
  "  local r = deep(n - 1)\n"
  "  return r + 1\n"
  "end\n"
  "local t = setmetatable({}, { __add = function() local r = deep(2) return r end })\n"
  "local function many(...) local r = t + t return r, ... end\n"
  "local function body() local r = many(1, 2) return nil end\n"
  "local function called() local ok = pcall(body) return nil end\n"
  "local function co() local r = string.gsub('x', 'x', called) return r end\n"
  "local r = coroutine.wrap(co)()\n";

int main(void)
{
  /* Set by lj_sample.c, which compares both sides and knows the thread; and a chain of
  ** coroutines that is longer than 1000.
  */
  static const uint8_t others[] = {
    SPF_REFUSED_THREADS_MAX,
    SPF_REFUSED_MOVE_NO_COPY,
    SPF_REFUSED_MOVE_INVALID,
    SPF_REFUSED_MOVE_OTHER,
    SPF_REFUSED_VM_CHANGES,
    SPF_REFUSED_VM_WAITED,
    SPF_REFUSED_VM_OUTSIDE,
    SPF_REFUSED_LUA_FEWER,
    SPF_REFUSED_HOST_FEWER,
    SPF_REFUSED_HOST_UNLOADED,
#if !LJ_HASJIT
    SPF_REFUSED_INLINED_INVALID,
    SPF_REFUSED_NO_POSITION
#endif
  };
  lua_State *L = luaL_newstate();
  uint8_t *m = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
  size_t i;
#ifdef __SANITIZE_ADDRESS__
  puts("skipped: AddressSanitizer objects to the reading of strange addresses");
  return 77;
#endif
  REQUIRE(L != NULL && m != MAP_FAILED);
  luaL_openlibs(L);
  gone = (uintptr_t)m + PAGE;
  REQUIRE(munmap((void *)gone, PAGE) == 0);
  REQUIRE(lj_hostwalk_warmup());
  host.pk = hs.pk = ls.in.pk = &pk;
  host.g = hs.g = ls.in.g = G(L);
  host.frames = hs.frames = &host_frames;
  ls.in.hs = &hs;
  ls.funcs = &funcs;
  ls.frames = &frames;
  ls.memo.least = ~(uint32_t)0;
  getcontext(&uc);
  damage_host();
  if (LJ_HASJIT) REQUIRE(luaL_dostring(L, "jit.off()") == 0);
  REQUIRE(luaL_loadbuffer(L, script, sizeof(script) - 1, "@script") == 0);
  lua_pushcfunction(L, probe);
  if (lua_pcall(L, 1, 0, 0) != 0) {
    printf("FAILED: %s\n", lua_tostring(L, -1));
    return 1;
  }
  for (i = 0; i < sizeof(others); i++) {
    CHECK(!provoked[others[i]]);
    provoked[others[i]] = 1;
  }
  for (i = 0; i < SPF_REFUSED__MAX; i++) {
    if (!provoked[i]) printf("code %d was not provoked\n", (int)i);
    CHECK(provoked[i]);
  }
  lua_close(L);
  return check_status();
}
