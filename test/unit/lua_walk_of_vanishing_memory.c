/* TIMEOUT: 600
** Another thread maps and unmaps a page all the time, while the Lua walk meets its address:
** as a PC, as nodes of a table that is being resized, and as a Lua stack that the VM moves
** and whose memory it has unmapped. The walk refuses the page or reads it, and nothing
** faults.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "lj_obj.h"
#include "lj_alloc.h"
#include "lj_frame.h"
#include "profile/lua/lj_luawalk.h"
#include "check.h"
#include "regs_of.h"

#define PAGE   4096
#define ENOUGH 2000 /* Walks with each result. */

static SafeLoad pk;
static HostWalk hs;
static FrameList host_frames, frames;
static FuncTab funcs;
static LuaWalk ls;

/* -- The page ----------------------------------------------------------------- */

static char *page;
static int file; /* What it maps. */
static volatile int done;

static void *come_and_go(void *arg)
{
  while (!done) {
    REQUIRE(mmap(page, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_POPULATE, file, 0) ==
	    page);
    REQUIRE(munmap(page, PAGE) == 0);
  }
  return arg;
}

static pthread_t thread;

/* data: the content of the page. */
static void page_begin(const void *data)
{
  REQUIRE(pwrite(file, data, PAGE, 0) == PAGE);
  done = 0;
  REQUIRE(pthread_create(&thread, NULL, come_and_go, NULL) == 0);
}

static void page_end(void)
{
  done = 1;
  REQUIRE(pthread_join(thread, NULL) == 0);
}

/* -- Walks -------------------------------------------------------------------- */

static void walk(const ucontext_t *uc)
{
  lj_safeload_reset(&pk);
  lj_framelist_reset(&host_frames);
  lj_hostwalk_walk(&hs, regs_of(uc));
  lj_luawalk_walk(&ls, regs_of(uc));
}

/* A PC, as a register may hold it. */
static void test_pc(lua_State *L)
{
  const uint32_t codes[PAGE / 4] = { 0 };
  uint32_t n[2] = { 0, 0 };
  LuaArea a;
  REQUIRE(lj_luaframe_area(&a, &ls.in, L));
  page_begin(codes);
  while (n[0] < ENOUGH || n[1] < ENOUGH) {
    FrameFunc ff;
    uintptr_t pc = (uintptr_t)page + 64;
    lj_safeload_reset(&pk);
    CHECK_EQ(lj_luaframe_caller(&a, a.bot, pc, &ff), 0); /* Nothing is below. */
    n[lj_luaframe_caller_refusal(&a, a.bot, pc) == SPF_REFUSED_PC_UNREADABLE]++;
  }
  page_end();
  printf("PC: read %u times, refused %u times\n", n[0], n[1]);
}

/* The nodes of the globals: the search for names reads them. */
static void test_nodes(lua_State *L, const ucontext_t *uc)
{
  GCtab *t = tabref(L->env);
  Node *nodes = noderef(t->node);
  static char data[PAGE];
  uint32_t n[2] = { 0, 0 };
  REQUIRE((t->hmask + 1) * sizeof(Node) <= PAGE);
  memcpy(data, nodes, (t->hmask + 1) * sizeof(Node));
  page_begin(data);
  setmref(t->node, page);
  while (n[0] < 4 * ENOUGH || n[1] < 4 * ENOUGH) {
    uint32_t i, named = 0;
    memset(&funcs, 0, sizeof(funcs));
    memset(&ls.sites, 0, sizeof(ls.sites));
    walk(uc);
    CHECK(ls.broken < 0);
    for (i = 1; i <= funcs.nfid; i++) named |= (funcs.func[i].rank == NAME_CALL);
    n[!named]++;
  }
  setmref(t->node, nodes);
  page_end();
  printf("nodes: read %u times, refused %u times\n", n[0], n[1]);
}

/* A Lua stack: the VM has unmapped its memory, and has not set the new address. */
static void test_stack(lua_State *L, const ucontext_t *uc)
{
  TValue *stack = tvref(L->stack), *base = L->base, *top = L->top;
  size_t size = L->stacksize * sizeof(TValue);
  ptrdiff_t delta = page - (char *)stack;
  static char data[PAGE];
  uint32_t n[2] = { 0, 0 }, i;
  if (G(L)->allocf != lj_alloc_f) {
    puts("stack: the allocator does not announce what it unmaps");
    return;
  }
  memcpy(data, stack, size < PAGE ? size : PAGE);
  REQUIRE((size_t)((char *)top - (char *)stack) < PAGE);
  page_begin(data);
  setmref(L->stack, page);
  L->base = (TValue *)((char *)base + delta);
  L->top = (TValue *)((char *)top + delta);
  ls.in.moving = L;
  ls.in.moving_from = (uintptr_t)page;
  ls.in.unmaps = lj_safeload_unmaps() - 1;
  for (i = 0; i < 4 * ENOUGH; i++) {
    walk(uc);
    n[ls.broken >= 0]++;
  }
  CHECK(n[1] > 0);
  page_end();
  /* It is still mapped, and there was no unmap. */
  REQUIRE(mmap(page, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0) == page);
  ls.in.unmaps = lj_safeload_unmaps();
  walk(uc);
  CHECK(ls.broken < 0);
  REQUIRE(munmap(page, PAGE) == 0);
  ls.in.moving = NULL;
  setmref(L->stack, stack);
  L->base = base;
  L->top = top;
  printf("stack: found %u times, refused %u times\n", n[0], n[1]);
}

static int probe(lua_State *L)
{
  ucontext_t uc;
  getcontext(&uc);
  walk(&uc);
  CHECK(ls.broken < 0);
  test_pc(L);
  test_nodes(L, &uc);
  test_stack(L, &uc);
  walk(&uc);
  CHECK(ls.broken < 0);
  return 0;
}

int main(void)
{
#ifdef __SANITIZE_ADDRESS__
  puts("skipped: AddressSanitizer objects to the reading of strange addresses");
  return 77;
#endif
  lua_State *L = luaL_newstate();
  REQUIRE(L != NULL);
  luaL_openlibs(L);
  file = (int)syscall(SYS_memfd_create, "page", 0);
  REQUIRE(file >= 0 && ftruncate(file, PAGE) == 0);
  page = (char *)mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
  REQUIRE(page != MAP_FAILED);
  REQUIRE(lj_hostwalk_warmup());
  lj_safeload_reset(&pk);
  if (!lj_safeload_word(&pk, (uintptr_t)page, &(uintptr_t){ 0 }) || pk.uncopied) {
    puts("skipped: the kernel refuses process_vm_readv");
    return 77;
  }
  hs.pk = ls.in.pk = &pk;
  hs.g = ls.in.g = G(L);
  hs.frames = &host_frames;
  ls.in.hs = &hs;
  ls.funcs = &funcs;
  ls.frames = &frames;
  lua_register(L, "probe", probe);
  if (luaL_dostring(L, "jit.off()\n"
		       "function f0() probe() return 1 end\n"
		       "for i = 1, 8 do\n"
		       "  local text = 'function f%d() local r = f%d() return r end'\n"
		       "  assert(loadstring(text:format(i, i - 1)))()\n"
		       "end\n"
		       "f8()")) {
    printf("FAILED: %s\n", lua_tostring(L, -1));
    return 1;
  }
  lua_close(L);
  return check_status();
}
