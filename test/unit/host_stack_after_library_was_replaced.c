/* A library is unloaded, and another one is loaded in its place. It has the same
** functions at the same addresses, with other frames. Cached steps of the first one do
** not count for the second. Once with build-ids, once without.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <signal.h>
#include <string.h>

#include "lua.h"
#include "lauxlib.h"
#include "lj_obj.h"
#include "profile/base/lj_osloaded.h"
#include "profile/host/lj_hostwalk.h"
#include "check.h"
#include "regs_of.h"

#define TRIES 20

static SafeLoad pk;
static HostWalk used, fresh;
static FrameList used_frames, fresh_frames;
static volatile int nwalks;

static void walk(HostWalk *hs, FrameList *frames, const ucontext_t *uc)
{
  lj_safeload_reset(&pk);
  lj_framelist_reset(frames);
  lj_hostwalk_walk(hs, regs_of(uc));
  lj_framelist_finish(frames);
}

static void handler(int sig, siginfo_t *info, void *uc)
{
  (void)sig;
  (void)info;
  memset(&fresh.cfi, 0, sizeof(fresh.cfi));
  walk(&used, &used_frames, (ucontext_t *)uc);
  walk(&fresh, &fresh_frames, (ucontext_t *)uc);
  nwalks++;
}

static void inside(void)
{
  raise(SIGUSR1);
}

/* Walk from a function that the library calls. Returns where that is. */
static void *look(char which)
{
  char path[1024];
  void *lib, *addr;
  void (*call)(void (*)(void));
  uint32_t i;
  int in_library = 0;
  snprintf(path, sizeof(path), "%s/test/replaced_%c.so", getenv("SYSPROF_BUILD"), which);
  lib = dlopen(path, RTLD_NOW);
  if (!lib) printf("%s\n", dlerror());
  REQUIRE(lib != NULL);
  addr = dlsym(lib, "replaced_call");
  REQUIRE(addr != NULL);
  memcpy(&call, &addr, sizeof(call));
  lj_osloaded_renew();
  for (i = 0; i < 3; i++) call(inside);
  CHECK(used.broken < 0 && fresh.broken < 0);
  CHECK_EQ(used_frames.len, fresh_frames.len);
  for (i = 0; i < fresh_frames.len; i++) {
    uintptr_t pc = (uintptr_t)frame_payload(fresh_frames.list[i]);
    CHECK(used_frames.list[i] == fresh_frames.list[i]);
    in_library += pc - (uintptr_t)addr < 16;
  }
  CHECK_EQ(in_library, 1);
  dlclose(lib);
  return addr;
}

int main(void)
{
  lua_State *L = luaL_newstate();
  struct sigaction sa;
  void *a, *b;
  int i, replaced = 0;
  REQUIRE(L != NULL && getenv("SYSPROF_BUILD") != NULL);
  used.pk = fresh.pk = &pk;
  used.g = fresh.g = G(L);
  used.frames = &used_frames;
  fresh.frames = &fresh_frames;
  REQUIRE(lj_hostwalk_warmup());
  memset(&sa, 0, sizeof(sa));
  sa.sa_sigaction = handler;
  sa.sa_flags = SA_SIGINFO;
  REQUIRE(sigaction(SIGUSR1, &sa, NULL) == 0);
  for (i = 0; i < TRIES; i++) {
    a = look('a');
    b = look('b');
    replaced += (a == b);
    a = look('c');
    b = look('d');
    replaced += (a == b);
  }
  CHECK_EQ(nwalks, 2 * 2 * 3 * TRIES);
  lua_close(L);
  if (check_failures == 0 && replaced == 0) {
    puts("skipped: the loader did not put the second library where the first was");
    return 77;
  }
  printf("%d of %d times in the place of the other\n", replaced, 2 * TRIES);
  return check_status();
}
