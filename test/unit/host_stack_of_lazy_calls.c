/*
** The host stack is complete at each instruction of a lazily bound call: in the procedure
** linkage table, in the dynamic linker's trampoline, and while it searches the symbol. The
** same holds for the return from a signal handler.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include <sys/auxv.h>

#include "lua.h"
#include "lauxlib.h"
#include "lj_obj.h"
#include "profile/base/lj_osloaded.h"
#include "profile/host/lj_hostwalk.h"
#include "check.h"
#include "regs_of.h"

static SafeLoad pk;
static HostWalk hs;
static FrameList frames, outer;       /* Of a step; of the program around the steps. */
static struct dl_find_object linker;  /* The dynamic linker, */
static struct dl_find_object library; /* and the library. */
static volatile int on;               /* The processor stops at each instruction. */
static int nsteps, nlinker, nlibrary, nreturns, nfaults;

static void walk(const ucontext_t *uc)
{
  lj_safeload_reset(&pk);
  lj_framelist_reset(&frames);
  lj_hostwalk_walk(&hs, regs_of(uc));
  lj_framelist_finish(&frames);
}

static int is_in(const struct dl_find_object *o, uintptr_t pc)
{
  return pc - (uintptr_t)o->dlfo_map_start <
	 (uintptr_t)o->dlfo_map_end - (uintptr_t)o->dlfo_map_start;
}

/* Are these the frames of the program, below others? */
static int is_complete(void)
{
  uint32_t i, n = outer.len;
  if (hs.broken >= 0 || frames.len < n) return 0;
  for (i = 1; i < n; i++) /* All but the innermost one, which goes on. */
    if (frames.list[frames.len - i] != outer.list[n - i]) return 0;
  return 1;
}

#define TRAP_FLAG 0x100 /* TF of EFLAGS. */

/* One instruction more. mov $15, %rax is the beginning of the return from a handler. */
static void on_trap(int sig, siginfo_t *info, void *context)
{
  static const uint8_t ends[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0 };
  ucontext_t *uc = (ucontext_t *)context;
  uintptr_t pc = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
  (void)sig;
  (void)info;
  if (on) uc->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
  else uc->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
  walk(uc);
  nsteps++;
  nlinker += is_in(&linker, pc);
  nlibrary += is_in(&library, pc);
  nreturns += memcmp((const void *)pc, ends, sizeof(ends)) == 0;
  if (!is_complete() && nfaults++ < 5)
    printf("step %d at %#lx: broken %d, refused %d, %u frames of %u\n", nsteps,
	   (unsigned long)pc, hs.broken, hs.refused, frames.len, outer.len);
}

static int (*lazy_call)(const char *text);

static void on_signal(int sig)
{
  (void)sig;
  raise(SIGTRAP); /* The kernel has cleared the flag. */
}

static void call_library(void)
{
  CHECK_EQ(lazy_call("12"), 26);
}

static void call_handler(void)
{
  kill(getpid(), SIGUSR1); /* An old raise blocks the signal of the steps. */
}

__attribute__((noinline)) static void run(void (*call)(void))
{
  ucontext_t uc;
  getcontext(&uc);
  walk(&uc);
  CHECK_EQ(hs.broken, -1);
  outer = frames;
  nsteps = nlinker = nlibrary = nreturns = nfaults = 0;
  on = 1;
  raise(SIGTRAP);
  call();
  on = 0;
  printf("%d steps, %d in the dynamic linker, %d in the library, %d returns, %d faults\n",
	 nsteps, nlinker, nlibrary, nreturns, nfaults);
  CHECK_EQ(nfaults, 0);
}

int main(void)
{
  lua_State *L = luaL_newstate();
  struct sigaction sa;
  char path[1024];
  void *lib, *addr;
  int first;
  REQUIRE(L != NULL && getenv("SYSPROF_BUILD") != NULL);
  snprintf(path, sizeof(path), "%s/test/lazy_calls.so", getenv("SYSPROF_BUILD"));
  hs.pk = &pk;
  hs.g = G(L);
  hs.frames = &frames;
  REQUIRE(lj_hostwalk_warmup());
  REQUIRE(osloaded_find(NULL, (uintptr_t)getauxval(AT_BASE), &linker) == 0);
  memset(&sa, 0, sizeof(sa));
  sa.sa_sigaction = on_trap;
  sa.sa_flags = SA_SIGINFO;
  REQUIRE(sigaction(SIGTRAP, &sa, NULL) == 0);
  sa.sa_flags = 0;
  sa.sa_handler = on_signal;
  REQUIRE(sigaction(SIGUSR1, &sa, NULL) == 0);

  lib = dlopen(path, RTLD_LAZY);
  if (!lib) printf("%s\n", dlerror());
  REQUIRE(lib != NULL && (addr = dlsym(lib, "lazy_call")) != NULL);
  memcpy(&lazy_call, &addr, sizeof(addr));
  lj_osloaded_renew();
  REQUIRE(osloaded_find(NULL, (uintptr_t)addr, &library) == 0);
  run(call_library);
  first = nlinker;
  CHECK(nlibrary > 20);
  run(call_library); /* Bound already. */
  if (first > 0) CHECK_EQ(nlinker, 0);
  run(call_handler);
  CHECK_EQ(nreturns, 1);
  lua_close(L);
  if (check_failures == 0 && first < 300) {
    puts("skipped: the dynamic linker binds all calls at once, as LD_BIND_NOW says");
    return 77;
  }
  return check_status();
}
