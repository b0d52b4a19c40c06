/* A C library before 2.35 has no _dl_find_object. Then the walk knows the objects that nobody
** can unload, as the C library would describe them. Code of other libraries is a gap. The load
** map keeps the names of such a library while its bytes are there, and not longer.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "lua.h"
#include "lauxlib.h"
#include "lj_obj.h"
#include "profile/base/lj_osobjects.h"
#include "profile/host/lj_ehframe.h"
#include "profile/host/lj_hostwalk.h"
#include "profile/symbols/lj_loadmap.h"
#include "check.h"

/* The profiler's objects call this one. */
__attribute__((visibility("hidden"))) int _dl_find_object(void *pc,
							  struct dl_find_object *found)
{
  return lj_osobjects_find((uintptr_t)pc, found);
}

typedef int FindObject(void *pc, struct dl_find_object *found);

static FindObject *libc_find;
static SafeLoad pk;
static FrameList frames, no_frames;
static LoadMap lm;
static uint8_t buf[65536];
static WBuf wb;
static int nobjects;

static int commit(void *ctx)
{
  WBuf *w = (WBuf *)ctx;
  w->pos = w->done; /* Forget the record. */
  w->overflow = 0;
  return 1;
}

static const DefSink sink = { &wb, commit, &wb };

static size_t no_writer(const void **data, size_t len, void *ctx)
{
  (void)data;
  (void)ctx;
  return len;
}

static int compare_object(struct dl_phdr_info *info, size_t sz, void *arg)
{
  struct dl_find_object ours, libcs;
  uintptr_t start, end;
  (void)sz;
  (void)arg;
  if (!lj_osobjects_range(info, &start, &end) || !lj_osobjects_stay(start)) return 0;
  REQUIRE(libc_find((void *)start, &libcs) == 0);
  CHECK_EQ(lj_osobjects_find(start, &ours), 0);
  CHECK(ours.dlfo_map_start == libcs.dlfo_map_start);
  CHECK(ours.dlfo_map_end == libcs.dlfo_map_end);
  CHECK(ours.dlfo_link_map == libcs.dlfo_link_map);
  CHECK(ours.dlfo_eh_frame == libcs.dlfo_eh_frame);
  CHECK_EQ(lj_osobjects_find(end - 1, &ours), 0);
  nobjects++;
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
  return lj_loadmap_sample(&lm, &no_frames, &frames, &sink);
}

/* Path of a library that the test builds. */
static const char *library(const char *which)
{
  static char path[1024];
  snprintf(path, sizeof(path), "%s/test/replaced_%s.so", getenv("SYSPROF_BUILD"), which);
  return path;
}

/* A library goes, and code of nobody takes its place. */
static void check_library(const char *which)
{
  struct dl_find_object found;
  void *lib = dlopen(library(which), RTLD_NOW);
  uintptr_t addr, start, end;
  EhObject obj;
  REQUIRE(lib != NULL);
  addr = (uintptr_t)dlsym(lib, "replaced_call");
  REQUIRE(addr != 0 && libc_find((void *)addr, &found) == 0);
  start = (uintptr_t)found.dlfo_map_start;
  end = ((uintptr_t)found.dlfo_map_end + SAFELOAD_PAGE - 1) &
	~(uintptr_t)(SAFELOAD_PAGE - 1);
  CHECK_EQ(lj_osobjects_find(addr, &found), -1);
  CHECK_EQ(lj_ehframe_object(addr, &obj), CFI_NO_OBJECT);
  lj_loadmap_note(&lm, &sink);
  CHECK(!is_added(addr)); /* The library is known, */
  CHECK(!is_added(addr)); /* and remains. */
  REQUIRE(dlclose(lib) == 0);
  REQUIRE(mmap((void *)start, end - start, PROT_READ | PROT_EXEC,
	       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == (void *)start);
  CHECK(is_added(addr)); /* Now as nobody's. */
  CHECK(!is_added(addr));
  REQUIRE(munmap((void *)start, end - start) == 0);
  CHECK(!is_added(addr));
  /* It comes again, maybe elsewhere. */
  REQUIRE((lib = dlopen(library(which), RTLD_NOW)) != NULL);
  lj_loadmap_note(&lm, &sink);
  addr = (uintptr_t)dlsym(lib, "replaced_call");
  CHECK(!is_added(addr));
  REQUIRE(dlclose(lib) == 0);
  CHECK(is_added(addr));
}

int main(void)
{
  EhObject obj;
  libc_find = (FindObject *)dlsym(RTLD_NEXT, "_dl_find_object");
  REQUIRE(libc_find != NULL && getenv("SYSPROF_BUILD") != NULL);
  REQUIRE(lj_hostwalk_warmup());
  dl_iterate_phdr(compare_object, NULL);
  printf("%d objects\n", nobjects);
  CHECK(nobjects >= 5); /* The program, vDSO, libm, libc, the dynamic linker. */
  CHECK_EQ(lj_ehframe_object((uintptr_t)(void *)&main, &obj), CFI_STEP);
  CHECK_EQ(lj_ehframe_object((uintptr_t)(void *)&memcpy, &obj), CFI_STEP);
  lj_wbuf_init(&wb, buf, sizeof(buf), 0, no_writer, NULL);
  lj_framelist_reset(&no_frames);
  lj_framelist_finish(&no_frames);
  lm.pk = &pk;
  lj_loadmap_note(&lm, &sink);
  CHECK(!is_added((uintptr_t)(void *)&main));
  check_library("a"); /* With a build-id, */
  check_library("c"); /* and without. */
  return check_status();
}
