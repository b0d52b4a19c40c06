/* The ranges of compiled code that lj_vmcode keeps from call to call give the same answer
** as LuaJIT's own list of areas. The VM compiles and frees code in between, and has more
** areas than the ranges hold.
*/

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "lj_obj.h"
#include "lj_jit.h"
#include "lj_dispatch.h"
#include "profile/host/lj_vmcode.h"
#include "check.h"

#define MADE (4 * VMCODE_RANGES)
#define AREA 65536

#if LJ_HASJIT

static SafeLoad pk;

/* As LuaJIT links them: each begins with the next one and its size. */
typedef struct Area {
  struct Area *next;
  size_t size;
} Area;

static int by_list(const global_State *g, uintptr_t pc)
{
  const Area *a;
  for (a = (const Area *)G2J(g)->mcarea; a; a = a->next)
    if (pc - (uintptr_t)a < a->size) return 1;
  return 0;
}

/* Asks for the borders of all areas. Returns how many there are. */
static int agree(VMCodeAreas *va, const global_State *g)
{
  const Area *a;
  int n = 0;
  lj_safeload_reset(&pk);
  CHECK(!lj_vmcode_isjit(va, &pk, g, 0));
  CHECK(!lj_vmcode_isjit(va, &pk, g, (uintptr_t)&n));
  for (a = (const Area *)G2J(g)->mcarea; a; a = a->next, n++) {
    uintptr_t begin = (uintptr_t)a, end = begin + a->size;
    uintptr_t at[4];
    int i;
    at[0] = begin - 1;
    at[1] = begin;
    at[2] = end - 1;
    at[3] = end;
    for (i = 0; i < 4; i++) CHECK_EQ(lj_vmcode_isjit(va, &pk, g, at[i]), by_list(g, at[i]));
  }
  return n;
}

static void run(lua_State *L, const char *code)
{
  if (luaL_dostring(L, code) != 0) {
    printf("FAILED: %s\n", lua_tostring(L, -1));
    exit(1);
  }
}

/* The VM's own areas: more and more, then none, then new ones. */
static void test_compiled(lua_State *L)
{
  static VMCodeAreas kept;
  const global_State *g = G(L);
  int round, i, most = 0;
  run(L, "jit.opt.start('sizemcode=64', 'maxmcode=4096', 'maxtrace=4000', 'hotloop=2')");
  CHECK_EQ(agree(&kept, g), 0);
  for (round = 0; round < 2; round++) {
    for (i = 0; i < 20; i++) {
      VMCodeAreas fresh;
      int n;
      run(L, "for k = 1, 30 do loadstring('local x = 0 for i = 1, 50 do ' .. "
	     "('x = x + i * N '):rep(400):gsub('N', k) .. 'end')() end");
      n = agree(&kept, g);
      if (n > most) most = n;
      memset(&fresh, 0, sizeof(fresh));
      CHECK_EQ(agree(&fresh, g), n);
      CHECK_EQ(agree(NULL, g), n);
      CHECK_EQ(kept.head, (uintptr_t)G2J(g)->mcarea);
    }
    run(L, "jit.flush()");
    CHECK_EQ(agree(&kept, g), 0);
  }
  printf("%d areas\n", most);
  CHECK(most > 3);
}

/* Made-up areas with gaps, in place of the VM's. */
static void test_made(lua_State *L)
{
  static VMCodeAreas kept;
  global_State *g = G(L);
  jit_State *J = G2J(g), old = *J;
  char *memory = (char *)malloc((2 * MADE + 1) * (size_t)AREA);
  int i, k;
  REQUIRE(memory != NULL);
  for (k = 0; k < 2; k++) { /* Every other, then all. */
    int step = 2 - k;
    J->mcarea = NULL;
    J->szallmcarea = 0;
    lj_vmcode_freed();
    for (i = 0; i < MADE; i++) {
      Area *a = (Area *)(memory + (size_t)(MADE - i) * step * AREA);
      a->next = NULL;
      a->size = 0;
      J->mcarea = (MCode *)a; /* Not linked yet: nothing of it is kept. */
      J->szmcarea = 0;
      agree(&kept, g);
      CHECK(kept.head != (uintptr_t)a || kept.n > VMCODE_RANGES);
      a->next = i ? (Area *)(memory + (size_t)(MADE - i + 1) * step * AREA) : NULL;
      a->size = J->szmcarea = AREA;
      agree(&kept, g);
      CHECK(kept.head != (uintptr_t)a || kept.n > VMCODE_RANGES);
      J->szallmcarea += AREA;
      CHECK_EQ(agree(&kept, g), i + 1);
      CHECK_EQ(kept.head, (uintptr_t)a);
    }
    if (k == 0) CHECK(kept.n > VMCODE_RANGES);
    else CHECK_EQ(kept.n, 1);
  }
  /* Freed; then new areas, the newest at the same address. */
  lj_vmcode_freed();
  ((Area *)J->mcarea)->next = NULL;
  J->szallmcarea = AREA;
  CHECK_EQ(agree(&kept, g), 1);
  CHECK_EQ(kept.n, 1);
  J->mcarea = old.mcarea;
  J->szmcarea = old.szmcarea;
  J->szallmcarea = old.szallmcarea;
  free(memory);
}

/* A list that leads to memory without an area: unreadable, or at an odd address. */
static void test_damaged(lua_State *L)
{
  global_State *g = G(L);
  jit_State *J = G2J(g), old = *J;
  char *memory = (char *)mmap(NULL, 2 * AREA, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Area *a = (Area *)memory;
  int i;
  REQUIRE(memory != MAP_FAILED && mprotect(memory + AREA, AREA, PROT_NONE) == 0);
  a->size = AREA / 2;
  J->mcarea = (MCode *)a;
  J->szmcarea = 0;
  J->szallmcarea = a->size;
  for (i = 0; i < 2; i++) {
    char *wrong = i == 0 ? memory + AREA : memory + AREA / 2 + 4;
    const size_t size = AREA / 4;
    VMCodeAreas fresh;
    a->next = (Area *)wrong;
    if (i == 1) memcpy(wrong + sizeof(a->next), &size, sizeof(size));
    lj_vmcode_freed();
    lj_safeload_reset(&pk);
    memset(&fresh, 0, sizeof(fresh));
    CHECK(lj_vmcode_isjit(&fresh, &pk, g, (uintptr_t)memory));
    CHECK(!lj_vmcode_isjit(&fresh, &pk, g, (uintptr_t)wrong + 16));
    CHECK(lj_vmcode_isjit(NULL, &pk, g, (uintptr_t)memory));
    CHECK(!lj_vmcode_isjit(NULL, &pk, g, (uintptr_t)wrong + 16));
  }
  J->mcarea = old.mcarea;
  J->szmcarea = old.szmcarea;
  J->szallmcarea = old.szallmcarea;
  munmap(memory, 2 * AREA);
}

int main(void)
{
  lua_State *L = luaL_newstate();
  REQUIRE(L != NULL);
  luaL_openlibs(L);
  test_compiled(L);
  test_made(L);
  test_damaged(L);
  lua_close(L);
  return check_status();
}

#else

int main(void)
{
  return check_status();
}

#endif
