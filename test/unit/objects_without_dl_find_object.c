/* A C library before 2.35 has no _dl_find_object. Then a table of our own describes the loaded
** objects as the C library would. It is late, so code that has taken the place of an object is
** unknown until the next renewal. The load map keeps the names of a library that it knows while
** the library's bytes are there, and not longer.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "lua.h"
#include "lauxlib.h"
#include "lj_obj.h"
#include "profile/base/lj_osloaded.h"
#include "profile/base/lj_osobjects.h"
#include "profile/host/lj_ehframe.h"
#include "profile/host/lj_hostwalk.h"
#include "profile/symbols/lj_loadmap.h"
#include "check.h"
#include "def_sink.h"

/* Distance from a library to an address in no object, for each library another page. */
#define FAR(which) (((uintptr_t)1 << 30) + (uintptr_t)(which)[0] * SAFELOAD_PAGE)

static SafeLoad pk;
static FrameList frames, no_frames;
static LoadMap lm;
static int nobjects;

/* Search as a new sample does. */
static int find(uintptr_t addr, struct dl_find_object *found)
{
  lj_safeload_reset(&pk);
  return osloaded_find(&pk, addr, found);
}

static CfiResult find_index(uintptr_t addr)
{
  EhObject obj;
  lj_safeload_reset(&pk);
  return lj_ehframe_object(&pk, addr, &obj);
}

static int compare_object(struct dl_phdr_info *info, size_t sz, void *arg)
{
  struct dl_find_object ours, libcs;
  uintptr_t start, end;
  (void)sz;
  (void)arg;
  if (!lj_osobjects_range(info, &start, &end)) return 0;
  nobjects++;
  CHECK_EQ(find(start, &ours), 0);
  CHECK_EQ(find(end - 1, &ours), 0);
  if (_dl_find_object((void *)start, &libcs) != 0) return 0; /* The C library is older. */
  CHECK(ours.dlfo_map_start == libcs.dlfo_map_start);
  CHECK(ours.dlfo_map_end == libcs.dlfo_map_end);
  CHECK(ours.dlfo_link_map == libcs.dlfo_link_map);
  CHECK(ours.dlfo_eh_frame == libcs.dlfo_eh_frame);
  return 0;
}

/* Is an address in an object that a sample adds? */
static int is_added(uintptr_t addr)
{
  lj_safeload_reset(&pk);
  lm.sample++;
  lj_framelist_reset(&frames);
  lj_framelist_push(&frames, frame_word(SPF_FRAME_HOST, addr));
  lj_framelist_finish(&frames);
  return lj_loadmap_sample(&lm, &no_frames, &frames, &def_sink);
}

/* Load a library that the test builds. */
static void *load(const char *which, uintptr_t *addr)
{
  char path[1024];
  void *lib;
  snprintf(path, sizeof(path), "%s/test/replaced_%s.so", getenv("SYSPROF_BUILD"), which);
  REQUIRE((lib = dlopen(path, RTLD_NOW)) != NULL);
  *addr = (uintptr_t)dlsym(lib, "replaced_call");
  REQUIRE(*addr != 0);
  return lib;
}

/* A library comes, goes, and code of nobody takes its place. */
static void check_library(const char *which)
{
  struct dl_find_object found;
  uintptr_t addr, start, end;
  void *lib = load(which, &addr);
  CHECK_EQ(find(addr, &found), -1); /* The table is late. */
  CHECK_EQ(find_index(addr), CFI_NO_OBJECT);
  CHECK(lj_osloaded_miss(addr));
  CHECK(!lj_osloaded_miss(addr)); /* Once. */
  lj_osloaded_renew();
  CHECK(lj_osloaded_miss(addr)); /* Again, since the table has changed. */
  lj_osloaded_renew();
  CHECK(!lj_osloaded_miss(addr)); /* Now it has not. */
  nobjects = 0;
  dl_iterate_phdr(compare_object, NULL);
  CHECK_EQ(find_index(addr), CFI_STEP);
  REQUIRE(find(addr, &found) == 0);
  start = (uintptr_t)found.dlfo_map_start;
  end = ((uintptr_t)found.dlfo_map_end + SAFELOAD_PAGE - 1) &
	~(uintptr_t)(SAFELOAD_PAGE - 1);
  lj_loadmap_note(&lm, &def_sink);
  CHECK(!is_added(addr)); /* The library is known, */
  CHECK(!is_added(addr)); /* and remains. */
  REQUIRE(dlclose(lib) == 0);
  CHECK_EQ(osloaded_find(NULL, addr, &found),
	   0); /* The table is late, but the memory tells. */
  CHECK_EQ(find(addr, &found), -1);
  REQUIRE(mmap((void *)start, end - start, PROT_READ | PROT_EXEC,
	       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == (void *)start);
  CHECK_EQ(find(addr, &found), -1);
  CHECK_EQ(find_index(addr), CFI_NO_OBJECT);
  CHECK(is_added(addr)); /* Now as nobody's. */
  CHECK(!is_added(addr));
  REQUIRE(munmap((void *)start, end - start) == 0);
  CHECK(is_added(addr + FAR(which)));      /* Unknown code gets a place, */
  CHECK(!is_added(addr + FAR(which)));     /* once, */
  CHECK(!is_added(addr + FAR(which) + 1)); /* with its page. */
  lj_osloaded_renew();
  CHECK_EQ(osloaded_find(NULL, addr, &found), -1);
  CHECK(!is_added(addr));
  lib = load(which, &addr); /* It comes again, maybe elsewhere. */
  lj_loadmap_note(&lm, &def_sink);
  CHECK(!is_added(addr));
  REQUIRE(dlclose(lib) == 0);
  CHECK(is_added(addr));
}

/* Another library takes the place. If the first one has no build-id, the second one may have the same
** index and the same place of its description: then the answer is right.
*/
static void check_replaced(const char *first, const char *second)
{
  struct dl_find_object found, libcs;
  struct link_map *map;
  uintptr_t addr, there;
  void *lib = load(first, &addr);
  lj_osloaded_renew();
  REQUIRE(find(addr, &found) == 0);
  REQUIRE(dlclose(lib) == 0);
  lib = load(second, &there);
  REQUIRE(dlinfo(lib, RTLD_DI_LINKMAP, &map) == 0);
  if ((uintptr_t)found.dlfo_map_start != map->l_addr) {
    printf("%s is not in the place of %s\n", second, first);
  } else if (find(there, &found) == 0) {
    CHECK(strcmp(first, "c") == 0);
    CHECK(found.dlfo_link_map == map);
  } else {
    CHECK_EQ(find_index(there), CFI_NO_OBJECT);
  }
  lj_osloaded_renew();
  CHECK(find(there, &found) == 0 && found.dlfo_link_map == map);
  if (_dl_find_object((void *)there, &libcs) == 0) /* The C library is newer. */
    CHECK(found.dlfo_map_end == libcs.dlfo_map_end &&
	  found.dlfo_eh_frame == libcs.dlfo_eh_frame);
  REQUIRE(dlclose(lib) == 0);
}

/* -- Searches beside renewals -------------------------------------------------- */

#define RENEWALS 3000

static volatile int done;

static void *search(void *arg)
{
  const struct dl_find_object *all = (const struct dl_find_object *)arg;
  struct dl_find_object found;
  uint64_t n = 0;
  while (!done) {
    const struct dl_find_object *o = &all[n++ % 2];
    REQUIRE(osloaded_find(NULL, (uintptr_t)o->dlfo_map_start + 1, &found) == 0);
    REQUIRE(memcmp(&found, o, sizeof(found)) == 0);
  }
  printf("%llu searches\n", (unsigned long long)n);
  return NULL;
}

/* The table always has the objects that stay, while others come and go. */
static void check_renewals(void)
{
  struct dl_find_object all[2];
  pthread_t thread;
  uintptr_t addr;
  int i;
  REQUIRE(find((uintptr_t)(void *)&search, &all[0]) == 0);
  REQUIRE(find((uintptr_t)(void *)&memcpy, &all[1]) == 0);
  REQUIRE(pthread_create(&thread, NULL, search, all) == 0);
  for (i = 0; i < RENEWALS; i++) {
    void *lib = load(i % 2 ? "a" : "c", &addr);
    lj_osloaded_renew();
    REQUIRE(dlclose(lib) == 0);
    lj_osloaded_renew();
  }
  done = 1;
  REQUIRE(pthread_join(thread, NULL) == 0);
}

int main(void)
{
  REQUIRE(getenv("SYSPROF_BUILD") != NULL);
  lj_osloaded_use(&_r_debug);
  REQUIRE(lj_hostwalk_warmup());
  dl_iterate_phdr(compare_object, NULL);
  printf("%d objects\n", nobjects);
  CHECK(nobjects >= 5); /* The program, vDSO, libm, libc, the dynamic linker. */
  CHECK_EQ(find_index((uintptr_t)(void *)&main), CFI_STEP);
  CHECK_EQ(find_index((uintptr_t)(void *)&memcpy), CFI_STEP);
  def_sink_begin();
  lj_framelist_reset(&no_frames);
  lj_framelist_finish(&no_frames);
  lm.pk = &pk;
  lj_loadmap_note(&lm, &def_sink);
  CHECK(!is_added((uintptr_t)(void *)&main));
  check_library("a"); /* With a build-id, */
  check_library("c"); /* and without. */
  check_replaced("a", "b");
  check_replaced("c", "d");
  check_replaced("a", "c");
  check_replaced("c", "a");
  check_renewals();
  return check_status();
}
