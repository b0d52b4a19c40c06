/*
** Objects that the dynamic linker loads at the program's start stay: those that the program
** needs, and those of LD_PRELOAD. The handler reads them without a copy. Libraries that
** the program loads itself do not stay, whatever their names are.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <link.h>
#include <math.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include <sys/auxv.h>

#include "lua.h"
#include "lauxlib.h"
#include "lj_obj.h"
#include "profile/base/lj_osobjects.h"
#include "profile/host/lj_hostwalk.h"
#include "profile/symbols/lj_loadmap.h"
#include "check.h"
#include "def_sink.h"
#include "regs_of.h"

int nameless_one(void); /* In a library that only its file names. */

static SafeLoad pk;
static HostWalk hs;
static FrameList frames, no_frames;
static LoadMap lm;
static uintptr_t stack[64]; /* Its only return address is 0, behind some room. */

/* Load a library of the build, and return the address of its function. */
static uintptr_t load(const char *path)
{
  void *lib = dlopen(path, RTLD_NOW);
  uintptr_t addr;
  if (!lib) printf("%s\n", dlerror());
  REQUIRE(lib != NULL);
  addr = (uintptr_t)dlsym(lib, "replaced_call");
  REQUIRE(addr != 0);
  return addr;
}

static char built[1024];

static const char *library(const char *which)
{
  snprintf(built, sizeof(built), "%s/test/replaced_%s.so", getenv("SYSPROF_BUILD"), which);
  return built;
}

/* The same library in a file with the name of one that the program needs. */
static uintptr_t load_namesake(void)
{
  char folder[] = "/tmp/objects_XXXXXX", path[64], data[8192];
  FILE *from = fopen(library("c"), "rb"), *to;
  uintptr_t addr;
  size_t n;
  REQUIRE(from && mkdtemp(folder));
  snprintf(path, sizeof(path), "%s/libm.so.6", folder);
  REQUIRE((to = fopen(path, "wb")) != NULL);
  while ((n = fread(data, 1, sizeof(data), from)) > 0) REQUIRE(fwrite(data, 1, n, to) == n);
  fclose(from);
  REQUIRE(fclose(to) == 0);
  addr = load(path);
  unlink(path);
  rmdir(folder);
  return addr;
}

/* Copies of a sample at an address, in the walk and by the load map. */
static uint32_t copies_at(uintptr_t pc)
{
  ucontext_t uc;
  uint32_t copies;
  memset(&uc, 0, sizeof(uc));
  uc.uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
  uc.uc_mcontext.gregs[REG_RSP] = (greg_t)stack;
  lj_safeload_reset(&pk);
  hs.stack_lo = (uintptr_t)stack;
  hs.stack_hi = (uintptr_t)(stack + 64);
  lj_framelist_reset(&frames);
  lj_hostwalk_walk(&hs, regs_of(&uc));
  lj_framelist_finish(&frames);
  CHECK_EQ(frames.len, 1);
  CHECK_EQ(hs.broken, -1);
  copies = pk.copies;
  lj_loadmap_sample(&lm, &no_frames, &frames, &def_sink);
  return copies + pk.copies;
}

static uintptr_t address_of(const char *name)
{
  uintptr_t addr = (uintptr_t)dlsym(RTLD_DEFAULT, name);
  if (!addr) printf("%s: %s\n", name, dlerror());
  REQUIRE(addr != 0);
  return addr;
}

typedef struct Count {
  int objects, staying;
} Count;

static int count_object(struct dl_phdr_info *info, size_t sz, void *arg)
{
  Count *count = (Count *)arg;
  uintptr_t start, end;
  (void)sz;
  if (!lj_osobjects_range(info, &start, &end)) return 0;
  count->objects++;
  if (!lj_osobjects_stay(start)) return 0;
  count->staying++;
  CHECK(lj_osobjects_stay(end - 1));
  if (end % SAFELOAD_PAGE != 0) CHECK(!lj_osobjects_stay(end)); /* No other one begins. */
  return 0;
}

/* With LD_PRELOAD, the preloaded library is the one that dlsym finds. */
static int check_objects(int is_preloaded)
{
  Count count = { 0, 0 };
  uintptr_t other, namesake;
  uint32_t copies;
  volatile double x = 1;
  CHECK(sin(x) > 0); /* The program needs libm. */
  CHECK_EQ(nameless_one(), 1);
  dl_iterate_phdr(count_object, &count);
  CHECK_EQ(count.staying, 0); /* Nothing is known yet. */
  other = load(library("a"));
  namesake = load_namesake();
  REQUIRE(lj_hostwalk_warmup());
  count.objects = 0;
  dl_iterate_phdr(count_object, &count);
  printf("%d of %d objects stay\n", count.staying, count.objects);
  CHECK_EQ(count.staying, count.objects - 2);
  CHECK(lj_osobjects_stay((uintptr_t)&check_objects));
  CHECK(lj_osobjects_stay(address_of("malloc")));
  CHECK(lj_osobjects_stay(address_of("sin")));
  CHECK(lj_osobjects_stay(address_of("nameless_one")));
  CHECK(lj_osobjects_stay((uintptr_t)getauxval(AT_BASE)));
  CHECK(lj_osobjects_stay((uintptr_t)getauxval(AT_SYSINFO_EHDR)));
  CHECK(!lj_osobjects_stay(other));
  CHECK(!lj_osobjects_stay(namesake));
  CHECK(!lj_osobjects_stay((uintptr_t)&namesake));
  CHECK(!lj_osobjects_stay(0) && !lj_osobjects_stay(~(uintptr_t)0));

  lm.pk = &pk;
  lj_loadmap_note(&lm, &def_sink);
  copies = copies_at((uintptr_t)&check_objects); /* Of the coroutine only. */
  CHECK_EQ(copies_at(address_of("sin")), copies);
  CHECK_EQ(copies_at(address_of("malloc")), copies);
  CHECK(copies_at(other) > copies);
  CHECK(copies_at(namesake) > copies);
  if (is_preloaded) {
    uintptr_t preloaded = address_of("replaced_call");
    CHECK(lj_osobjects_stay(preloaded));
    CHECK_EQ(copies_at(preloaded), copies);
  }
  return check_status();
}

int main(int argc, char **argv)
{
  lua_State *L = luaL_newstate();
  int status;
  REQUIRE(L != NULL && getenv("SYSPROF_BUILD") != NULL);
  def_sink_begin();
  lj_framelist_reset(&no_frames);
  lj_framelist_finish(&no_frames);
  hs.pk = &pk;
  hs.g = G(L);
  hs.frames = &frames;
  status = check_objects(argc > 1);
  lua_close(L);
  if (status != 0 || argc > 1) return status;
  setenv("LD_PRELOAD", library("b"), 1);
  execl("/proc/self/exe", argv[0], "preloaded", NULL);
  REQUIRE(!"execl");
  return 1;
}
