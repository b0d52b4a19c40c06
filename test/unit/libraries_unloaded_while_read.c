/* TIMEOUT: 600
** BASE: none, linker, libraries, C stacks; unit/host_stack_at_each_instruction tries each LuaJIT
** Another thread loads and unloads a library, or maps and unmaps the memory that a
** register points to. Meantime this one walks host stacks and compares objects. The walks
** find the tables, or report the missing one, and nothing faults. So they do with the table of objects
** that stands in for _dl_find_object.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include <sys/mman.h>

#include "lua.h"
#include "lauxlib.h"
#include "lj_obj.h"
#include "profile/base/lj_osloaded.h"
#include "profile/host/lj_hostwalk.h"
#include "profile/symbols/lj_loadmap.h"
#include "check.h"
#include "def_sink.h"
#include "regs_of.h"

#define PAGE   4096
#define ENOUGH 4000 /* Unloads during the walks, and walks with each result. */

static SafeLoad pk;
static HostWalk hs;
static FrameList frames, no_frames;
static LoadMap lm;
static volatile int done;
static volatile uint32_t unloads;
static char path[1024];
static volatile uintptr_t code; /* In the library, which may be gone. */

static void walk(const ucontext_t *uc)
{
  lj_safeload_reset(&pk);
  lj_framelist_reset(&frames);
  lj_hostwalk_walk(&hs, regs_of(uc));
  lj_framelist_finish(&frames);
  if (hs.broken >= 0) lj_osloaded_renew(); /* For the next walk. */
}

/* A stack with one return address, 0, behind some room. */
static uintptr_t stack[64];

/* Registers of a thread interrupted at pc, with its stack from sp on. */
static void interrupt(ucontext_t *uc, uintptr_t pc, uintptr_t sp, uintptr_t bp)
{
  memset(uc, 0, sizeof(*uc));
  uc->uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
  uc->uc_mcontext.gregs[REG_RSP] = (greg_t)sp;
  uc->uc_mcontext.gregs[REG_RBP] = (greg_t)bp;
}

static void *load(void)
{
  void *lib = dlopen(path, RTLD_NOW);
  if (!lib) printf("%s\n", dlerror());
  REQUIRE(lib != NULL);
  code = (uintptr_t)dlsym(lib, "replaced_call");
  REQUIRE(code != 0);
  return lib;
}

/* -- Libraries ---------------------------------------------------------------- */

static void *load_and_unload(void *arg)
{
  while (!done) {
    void *lib = load();
    volatile unsigned i;
    for (i = 0; i < unloads % 64 * 100; i++) /* Differ in how long it is there. */
      ;
    REQUIRE(dlclose(lib) == 0);
    unloads++;
  }
  return arg;
}

static void test_libraries(int anonymous)
{
  pthread_t thread;
  ucontext_t uc;
  uint32_t found = 0, lost = 0, news = 0, from;
  snprintf(path, sizeof(path), "%s/test/replaced_%s.so", getenv("SYSPROF_BUILD"),
	   anonymous ? "c" : "a");
  def_sink_begin();
  memset(&hs.cfi, 0, sizeof(hs.cfi));
  memset(&lm, 0, sizeof(lm));
  lm.pk = &pk;
  done = 0;
  from = unloads;
  REQUIRE(dlclose(load()) == 0);
  REQUIRE(pthread_create(&thread, NULL, load_and_unload, NULL) == 0);
  while (unloads - from < ENOUGH || found < ENOUGH || lost < ENOUGH) {
    interrupt(&uc, code, (uintptr_t)stack, 0);
    if (found % 4) memset(&hs.cfi.row, 0, sizeof(hs.cfi.row)); /* Nothing is cached. */
    walk(&uc);
    if (hs.broken < 0) {
      found++;
      CHECK_EQ(frames.len, 1);
    } else {
      lost++;
      CHECK(hs.refused == SPF_REFUSED_HOST_NO_OBJECT ||
	    hs.refused == SPF_REFUSED_HOST_UNLOADED ||
	    hs.refused == SPF_REFUSED_HOST_NO_RULE);
    }
    news += (uint32_t)lj_loadmap_sample(&lm, &no_frames, &frames, &def_sink);
  }
  done = 1;
  REQUIRE(pthread_join(thread, NULL) == 0);
  CHECK(news > 0);
  printf("%u unloads: found %u times, lost %u times, %u new objects\n", unloads - from,
	 found, lost, news);
}

/* The dynamic linker still lists the object, but a part is not readable. */
static void test_parts(void)
{
  struct dl_find_object dl;
  char *first, *index;
  ucontext_t uc;
  void *lib;
  snprintf(path, sizeof(path), "%s/test/replaced_a.so", getenv("SYSPROF_BUILD"));
  lib = load();
  lj_osloaded_renew();
  REQUIRE(osloaded_find(NULL, code, &dl) == 0 && dl.dlfo_eh_frame);
  first = (char *)dl.dlfo_map_start;
  index = (char *)((uintptr_t)dl.dlfo_eh_frame & ~(uintptr_t)(PAGE - 1));
  REQUIRE(first != index);
  interrupt(&uc, code, (uintptr_t)stack, 0);
  memset(&hs.cfi, 0, sizeof(hs.cfi));
  REQUIRE(mprotect(index, PAGE, PROT_NONE) == 0);
  walk(&uc);
  CHECK_EQ(hs.refused, SPF_REFUSED_HOST_UNLOADED);
  CHECK_EQ(hs.broken, SPF_BROKEN_FAULT);
  REQUIRE(mprotect(index, PAGE, PROT_READ) == 0);
  walk(&uc);
  CHECK_EQ(hs.broken, -1);
  REQUIRE(mprotect(index, PAGE, PROT_NONE) == 0);
  walk(&uc); /* The step is cached, and the object is the same. */
  CHECK_EQ(hs.broken, -1);
  REQUIRE(mprotect(first, PAGE, PROT_NONE) == 0);
  walk(&uc); /* Is it? Our own table reads it, too. */
  CHECK_EQ(hs.refused,
	   lj_osloaded_isown ? SPF_REFUSED_HOST_NO_OBJECT : SPF_REFUSED_HOST_UNLOADED);
  REQUIRE(mprotect(index, PAGE, PROT_READ) == 0);
  REQUIRE(mprotect(first, PAGE, PROT_READ) == 0);
  walk(&uc);
  CHECK_EQ(hs.broken, -1);
  REQUIRE(dlclose(lib) == 0);
}

/* -- Memory ------------------------------------------------------------------- */

/* CFI says that the frame is at RBP, which points anywhere. */
__asm__("	.text\n"
	"	.type bad_frame, @function\n"
	"bad_frame:\n"
	"	.cfi_startproc\n"
	"	.cfi_def_cfa %rbp, 16\n"
	"	.cfi_offset %rbp, -16\n"
	"	nop\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size bad_frame, .-bad_frame\n");
extern char bad_frame[];

static char *page;

static void *map_and_unmap(void *arg)
{
  while (!done) {
    REQUIRE(mmap(page, PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0) == page);
    REQUIRE(munmap(page, PAGE) == 0);
    unloads++;
  }
  return arg;
}

static void test_memory(void)
{
  pthread_t thread;
  ucontext_t uc;
  uint32_t found = 0, lost = 0, from = unloads;
  page = (char *)mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
  REQUIRE(page != MAP_FAILED && (uintptr_t)page > (uintptr_t)stack);
  done = 0;
  REQUIRE(pthread_create(&thread, NULL, map_and_unmap, NULL) == 0);
  interrupt(&uc, (uintptr_t)bad_frame, (uintptr_t)stack, (uintptr_t)page + PAGE / 2);
  while (unloads - from < ENOUGH || found < ENOUGH || lost < ENOUGH) {
    walk(&uc);
    if (hs.broken < 0) {
      found++;
    } else {
      lost++;
      CHECK_EQ(hs.refused, SPF_REFUSED_HOST_SAVED);
    }
  }
  done = 1;
  REQUIRE(pthread_join(thread, NULL) == 0);
  printf("%u unmaps: found %u times, lost %u times\n", unloads - from, found, lost);
}

int main(void)
{
  lua_State *L = luaL_newstate();
  REQUIRE(L != NULL && getenv("SYSPROF_BUILD") != NULL);
  hs.pk = &pk;
  hs.g = G(L);
  hs.frames = &frames;
  REQUIRE(lj_hostwalk_warmup());
  lj_framelist_reset(&no_frames);
  lj_framelist_finish(&no_frames);
  test_parts();
  test_libraries(0);
  test_libraries(1);
  test_memory();
  lj_osloaded_use(&_r_debug);
  REQUIRE(lj_hostwalk_warmup());
  test_libraries(0);
  test_libraries(1);
  lua_close(L);
  return check_status();
}
