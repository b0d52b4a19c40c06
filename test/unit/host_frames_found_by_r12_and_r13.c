/* TIMEOUT: 600
** C functions that find their frames by R12 or R13 call compiled Lua code, which uses
** these registers for itself. The walk takes their values from the place where the way
** into the trace has saved them.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <sys/time.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "lj_obj.h"
#include "profile/host/lj_hostwalk.h"
#include "check.h"
#include "regs_of.h"

#define ENOUGH 50 /* Samples while the trace uses the register. */

/* Calls a Lua function as lua_call does. The end of its code is in name_end. */
#define VIA(name, reg) \
  int name(lua_State *L, TValue *base, int nres1); \
  extern const char name##_end[]; \
  __asm__("	.text\n" \
	  "	.type " #name ", @function\n" #name ":\n" \
	  "	.cfi_startproc\n" \
	  "	push %" reg "\n" \
	  "	.cfi_adjust_cfa_offset 8\n" \
	  "	.cfi_offset %" reg ", -16\n" \
	  "	mov %rsp, %" reg "\n" \
	  "	.cfi_def_cfa_register %" reg "\n" \
	  "	mov %rsp, via_sp(%rip)\n" \
	  "	call lj_vm_call\n" \
	  "	pop %" reg "\n" \
	  "	.cfi_def_cfa %rsp, 8\n" \
	  "	ret\n" \
	  "	.cfi_endproc\n" #name "_end:\n" \
	  "	.size " #name ", .-" #name "\n")
VIA(via_r12, "r12");
VIA(via_r13, "r13");

uintptr_t via_sp; /* Written by these: what the register holds. */

static SafeLoad pk;
static HostWalk hs;
static FrameList frames;
static struct {
  uintptr_t begin, end; /* Of the function. */
  int reg;              /* In the context. */
  int in_trace, used, found, other;
} scene;

static void handler(int sig, siginfo_t *info, void *context)
{
  ucontext_t *uc = (ucontext_t *)context;
  uint32_t i;
  int found = 0;
  (void)sig;
  (void)info;
  lj_safeload_reset(&pk);
  lj_framelist_reset(&frames);
  lj_hostwalk_walk(&hs, regs_of(uc));
  lj_framelist_finish(&frames);
  if (hs.nvm == 0 || hs.vm[0].place != VMF_TRACE) return;
  scene.in_trace++;
  scene.used += (uintptr_t)uc->uc_mcontext.gregs[scene.reg] != via_sp;
  for (i = 0; i < frames.len; i++)
    found += frame_kind(frames.list[i]) == SPF_FRAME_HOST &&
	     (uintptr_t)frame_payload(frames.list[i]) - scene.begin <
	       scene.end - scene.begin;
  if (hs.broken < 0 && found == 1) scene.found++;
  else scene.other++;
}

static void call(lua_State *L, int (*via)(lua_State *, TValue *, int))
{
  TValue *o;
  lua_getglobal(L, "work");
  o = L->top++;
  setnilV(o);
  via(L, o + 1, 1); /* No results. */
}

static void test_function(lua_State *L, int (*via)(lua_State *, TValue *, int),
			  const char *end, int reg, const char *name)
{
  time_t deadline = time(NULL) + 200;
  struct itimerval tick, none;
  memset(&scene, 0, sizeof(scene));
  memcpy(&scene.begin, &via, sizeof(via));
  scene.end = (uintptr_t)end;
  scene.reg = reg;
  memset(&none, 0, sizeof(none));
  memset(&tick, 0, sizeof(tick));
  tick.it_value.tv_usec = tick.it_interval.tv_usec = 1000;
  REQUIRE(setitimer(ITIMER_PROF, &tick, NULL) == 0);
  while (scene.used < ENOUGH && time(NULL) < deadline) call(L, via);
  REQUIRE(setitimer(ITIMER_PROF, &none, NULL) == 0);
  printf("%s: %d samples in the trace, %d while it uses the register; %d found, %d not\n",
	 name, scene.in_trace, scene.used, scene.found, scene.other);
  CHECK(scene.used >= ENOUGH);
  CHECK_EQ(scene.other, 0);
}

/* More values than there are registers. */
static const char script[] =
  "local bxor, rol = bit.bxor, bit.rol\n"
  "function work()\n"
  "  local a, b, c, d, e, f, g = 1, 2, 3, 4, 5, 6, 7\n"
  "  local h, i, j, k, l, m, n = 8, 9, 10, 11, 12, 13, 14\n"
  "  for x = 1, 100000 do\n"
  "    a = bxor(rol(a, 1), b) b = bxor(rol(b, 2), c) c = bxor(rol(c, 3), d)\n"
  "    d = bxor(rol(d, 4), e) e = bxor(rol(e, 5), f) f = bxor(rol(f, 6), g)\n"
  "    g = bxor(rol(g, 7), h) h = bxor(rol(h, 8), i) i = bxor(rol(i, 9), j)\n"
  "    j = bxor(rol(j, 1), k) k = bxor(rol(k, 2), l) l = bxor(rol(l, 3), m)\n"
  "    m = bxor(rol(m, 4), n) n = bxor(rol(n, 5), a)\n"
  "  end\n"
  "end\n"
  "for x = 1, 3 do work() end\n";

int main(void)
{
  lua_State *L = luaL_newstate();
  struct sigaction sa;
  if (!LJ_HASJIT) {
    puts("skipped: no compiler");
    return 77;
  }
  REQUIRE(L != NULL);
  luaL_openlibs(L);
  REQUIRE(luaL_dostring(L, script) == 0);
  hs.pk = &pk;
  hs.g = G(L);
  hs.frames = &frames;
  REQUIRE(lj_hostwalk_warmup());
  memset(&sa, 0, sizeof(sa));
  sa.sa_sigaction = handler;
  sa.sa_flags = SA_SIGINFO | SA_RESTART;
  REQUIRE(sigaction(SIGPROF, &sa, NULL) == 0);
  test_function(L, via_r12, via_r12_end, REG_R12, "R12");
  test_function(L, via_r13, via_r13_end, REG_R13, "R13");
  lua_close(L);
  return check_status();
}
