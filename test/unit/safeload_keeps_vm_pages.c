/* The handler probes pages of the VM's memory once, and again after the VM's allocator
** has unmapped them. It neither probes nor copies the part of the stack that is in use.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <string.h>
#include <sys/mman.h>

#include "lua.h"
#include "lauxlib.h"
#include "lj_obj.h"
#include "profile/base/lj_safeload.h"
#include "check.h"

#define PAGE  4096
#define PAGES 3000 /* More than are remembered. */

static SafeLoad pk;
static uint8_t *m;

static int vm_ok(int page)
{
  return lj_safeload_vm(&pk, m + page * PAGE + 100, 16);
}

static void keep(int page)
{
  pk.keeping = 1;
  CHECK(vm_ok(page));
  pk.keeping = 0;
}

/* Unmap pages as the allocator does. */
static void unmap(int page, int n)
{
  lj_safeload_unmap(m + page * PAGE, (size_t)n * PAGE);
  REQUIRE(munmap(m + page * PAGE, (size_t)n * PAGE) == 0);
  lj_safeload_unmapped();
}

/* Nothing has to be probed for a page in the next sample. */
static int is_kept(int page)
{
  lj_safeload_reset(&pk);
  return vm_ok(page) && pk.probes == 0 && pk.fresh == 0;
}

static void test_kept(void)
{
  int i, bit;
  lj_safeload_reset(&pk);
  CHECK(vm_ok(0));
  CHECK(!is_kept(0));
  CHECK_EQ(pk.probes, 1);
  keep(0);
  keep(1);
  keep(2);
  CHECK(is_kept(0));
  CHECK(is_kept(1));
  CHECK(lj_safeload_ok(&pk, m, 8));
  CHECK_EQ(pk.probes, 0);
  for (bit = 47; bit < 64; bit++)
    CHECK(!lj_safeload_vm(&pk, (void *)((uintptr_t)m | (uintptr_t)1 << bit), 8));
  unmap(1, 1);
  CHECK(is_kept(0));
  CHECK(!vm_ok(1));
  CHECK(is_kept(2));
  CHECK(!lj_safeload_vm(&pk, m + 3 * PAGE - 8, 16) || pk.probes == 1);

  /* While it is being unmapped, nothing kept is believed. */
  keep(3);
  lj_safeload_unmap(m + 3 * PAGE, PAGE);
  REQUIRE(munmap(m + 3 * PAGE, PAGE) == 0);
  lj_safeload_reset(&pk);
  CHECK(!vm_ok(3));
  CHECK(vm_ok(0));
  CHECK_EQ(pk.probes, 2);
  lj_safeload_unmapped();
  lj_safeload_reset(&pk);
  CHECK(!vm_ok(3));

  /* More than are remembered, and a larger one than the table. */
  lj_safeload_reset(&pk);
  keep(4);
  keep(5);
  unmap(4, 1);
  for (i = 0; i < 100; i++) {
    lj_safeload_unmap(m + 700 * PAGE, PAGE);
    lj_safeload_unmapped();
  }
  lj_safeload_reset(&pk);
  CHECK(!vm_ok(4));
  CHECK(!is_kept(5));
  keep(5);
  keep(899);
  CHECK(is_kept(5));
  unmap(6, 900);
  CHECK(is_kept(5));
  CHECK(!vm_ok(899));

  lj_safeload_forget(&pk);
  lj_safeload_reset(&pk);
  CHECK(!is_kept(5));
}

/* Two pages with the same first slot do not push each other out; whatever slot they
** are in, they are forgotten with their memory.
*/
static void test_two_slots(void)
{
  int i, round;
  for (round = 0; round < 3; round++) {
    int n = 0, a = 2300 + round * 60;
    lj_safeload_forget(&pk);
    for (i = 0; i < 50; i++) {
      lj_safeload_reset(&pk);
      keep(a + i);
      lj_safeload_reset(&pk);
      keep(a + i - SAFELOAD_SLOTS);
      n += is_kept(a + i) && is_kept(a + i - SAFELOAD_SLOTS);
    }
    printf("%d of 50 pairs\n", n);
    CHECK(n >= 25); /* Of a hundred pages, few find both of their slots used. */
    unmap(a + 20, 30);
    for (i = 0; i < 50; i++) {
      lj_safeload_reset(&pk);
      CHECK_EQ(vm_ok(a + i), i < 20);
      CHECK(vm_ok(a + i - SAFELOAD_SLOTS));
    }
  }
}

/* Two words in the page of the last ones. */
static void test_near(void)
{
  uintptr_t at = (uintptr_t)m + 1100 * PAGE;
  lj_safeload_reset(&pk);
  CHECK(lj_safeload_near(&pk, at) && lj_safeload_near(&pk, at + 16));
  CHECK_EQ(pk.fresh, 2); /* Not kept: asked each time. */
  keep(1100);
  CHECK(lj_safeload_near(&pk, at));
  CHECK_EQ(pk.near, at);
  CHECK_EQ(pk.near_size, PAGE - 16 + 1); /* Two words lie in the page. */
  CHECK(lj_safeload_near(&pk, at + PAGE - 16));
  CHECK_EQ(pk.probes, 1);
  CHECK(lj_safeload_near(&pk, at + PAGE - 8));
  CHECK_EQ(pk.probes, 2);
  CHECK(lj_safeload_near(&pk, at - 8));
  CHECK_EQ(pk.probes, 3);
  unmap(1101, 1);
  unmap(1099, 1);
  lj_safeload_reset(&pk);
  CHECK(lj_safeload_near(&pk, at));
  CHECK(!lj_safeload_near(&pk, at + PAGE - 8));
  CHECK(!lj_safeload_near(&pk, at - 8));
  CHECK(!lj_safeload_near(&pk, at + PAGE));
  unmap(1100, 1);
  CHECK(lj_safeload_near(&pk, at)); /* Until the next sample. */
  lj_safeload_reset(&pk);
  CHECK(!lj_safeload_near(&pk, at));
  CHECK(!lj_safeload_near(&pk, 0) && !lj_safeload_near(&pk, ~(uintptr_t)0 - 15));
}

#ifndef __SANITIZE_ADDRESS__
/* The real allocator. */
static void test_allocator(void)
{
  static SafeLoad other;
  lua_State *L = luaL_newstate();
  void *p;
  REQUIRE(L != NULL);
  p = lua_newuserdata(L, 8 * 1024 * 1024); /* A mapping of its own. */
  lj_safeload_reset(&pk);
  pk.keeping = 1;
  CHECK(lj_safeload_vm(&pk, p, 16));
  lj_safeload_reset(&pk);
  CHECK(lj_safeload_vm(&pk, p, 16));
  CHECK_EQ(pk.probes, 0);
  lua_settop(L, 0);
  lua_gc(L, LUA_GCCOLLECT, 0);
  lua_gc(L, LUA_GCCOLLECT, 0);
  lj_safeload_reset(&pk);
  lj_safeload_reset(&other);
  CHECK_EQ(lj_safeload_vm(&pk, p, 16), lj_safeload_vm(&other, p, 16));
  CHECK_EQ(pk.probes, 1);
  lua_close(L);
}
#endif

static void test_stack(void)
{
  uintptr_t lo = (uintptr_t)m + 1000 * PAGE, hi = lo + 10 * PAGE, w;
  lj_safeload_reset(&pk);
  lj_safeload_stack(&pk, lo, hi, lo + 2 * PAGE + 4);
  CHECK(lj_safeload_word(&pk, lo + 2 * PAGE + 8, &w));
  CHECK(lj_safeload_word(&pk, hi - 8, &w));
  CHECK(!lj_safeload_word(&pk, hi - 4, &w));
  CHECK_EQ(pk.probes + pk.copies, 0);
  lj_safeload_stack(&pk, lo, hi, lo + 2 * PAGE + 64);
  CHECK(lj_safeload_word(&pk, lo + 2 * PAGE, &w)); /* Below, in the same page. */
  CHECK_EQ(pk.probes + pk.copies, 0);
  CHECK(lj_safeload_word(&pk, lo + 2 * PAGE - 8, &w));
  CHECK(lj_safeload_word(&pk, hi, &w));
  CHECK_EQ(pk.copies, 2);
  /* On another stack, or not known. */
  lj_safeload_stack(&pk, lo, hi, hi + 8);
  CHECK_EQ(pk.stack_size, 0);
  lj_safeload_stack(&pk, lo, hi, lo - 8);
  CHECK_EQ(pk.stack_size, 0);
  lj_safeload_stack(&pk, 0, 0, lo);
  CHECK_EQ(pk.stack_size, 0);
  lj_safeload_stack(&pk, lo, hi, lo);
  lj_safeload_reset(&pk);
  CHECK_EQ(pk.stack_size, 0);
}

int main(void)
{
  lj_safeload_warmup();
  m = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(m != MAP_FAILED);
  test_kept();
  test_stack();
  test_near();
  test_two_slots();
#ifndef __SANITIZE_ADDRESS__ /* LuaJIT's own allocator is not used then. */
  test_allocator();
#endif
  return check_status();
}
