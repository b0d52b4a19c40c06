/*
** Single-stepper for both stacks: runs a Lua function one machine instruction at a time, by
** the processor's trap flag, and walks both stacks at each instruction. It needs no timer,
** so no result depends on speed.
*/

#ifndef LUA_STEPPER_H
#define LUA_STEPPER_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "lj_obj.h"
#include "lj_dispatch.h"
#include "profile/lua/lj_luastate.h"
#include "profile/lua/lj_luawalk.h"
#include "profile/session/lj_vmprofile.h"
#include "check.h"
#include "regs_of.h"

#define LSTEP_TRAP_FLAG 0x100 /* TF of EFLAGS. */

static struct {
  lua_State *L;
  volatile int on;
  volatile long steps;
  void (*look)(const ucontext_t *uc); /* Called after each walk. */
  SafeLoad pk;
  FuncTab funcs;
  HostWalk hs;
  LuaWalk ls;
  FrameList host_frames, frames;
  long states[TOP_UNKNOWN]; /* Steps whose state needs no walk. */
} lstep;

/* The state without a walk is that of the walk, or unknown. */
static void lstep_state(const ucontext_t *uc)
{
  TopFunc top;
  if (lstep.ls.in.moving || lstep.ls.broken >= 0) return;
  top = lj_luastate_top(&lstep.pk, G(lstep.L), regs_of(uc));
  if (top == TOP_UNKNOWN) return;
  lstep.states[top]++;
  CHECK_EQ(top, lstep.ls.top);
}

static void lstep_handler(int sig, siginfo_t *info, void *context)
{
  ucontext_t *uc = (ucontext_t *)context;
  const Profile *p;
  (void)sig;
  (void)info;
  if (!lstep.on) {
    uc->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)LSTEP_TRAP_FLAG;
    return;
  }
  uc->uc_mcontext.gregs[REG_EFL] |= LSTEP_TRAP_FLAG;
  lstep.steps++;
  if (!lstep.look) return;
  lj_safeload_reset(&lstep.pk);
  lj_framelist_reset(&lstep.host_frames);
  lj_hostwalk_walk(&lstep.hs, regs_of(uc));
  if (lstep.hs.nvm == 0) return;
  p = G2GG(G(lstep.L))->sysprof;
  lstep.ls.in.moving = p ? p->gate.moving : NULL;
  lstep.ls.in.moving_from = p ? p->gate.moving_from : 0;
  lstep.ls.in.unmaps = p ? p->gate.unmaps : 0;
  lj_luawalk_walk(&lstep.ls, regs_of(uc));
  lj_framelist_finish(&lstep.frames);
  lstep_state(uc);
  lstep.look(uc);
}

static inline void lstep_do(const char *code)
{
  if (luaL_dostring(lstep.L, code)) {
    printf("FAILED: %s\n", lua_tostring(lstep.L, -1));
    exit(1);
  }
  lua_settop(lstep.L, 0);
}

/* Open a VM. Returns 0 and prints the reason on a machine without single steps. */
static inline int lstep_open(void)
{
  struct sigaction sa;
  REQUIRE(lj_hostwalk_warmup());
  memset(&sa, 0, sizeof(sa));
  sa.sa_sigaction = lstep_handler;
  sa.sa_flags = SA_SIGINFO;
  REQUIRE(sigaction(SIGTRAP, &sa, NULL) == 0);
  memset(&lstep, 0, sizeof(lstep));
  lstep.on = 1;
  raise(SIGTRAP);
  lstep.on = 0;
  raise(SIGTRAP);
  if (lstep.steps < 5) {
    puts("skipped: no single steps on this machine");
    return 0;
  }
  lstep.L = luaL_newstate();
  REQUIRE(lstep.L != NULL);
  luaL_openlibs(lstep.L);
  lstep.hs.pk = lstep.ls.in.pk = &lstep.pk;
  lstep.hs.g = lstep.ls.in.g = G(lstep.L);
  lstep.hs.frames = &lstep.host_frames;
  lstep.ls.in.hs = &lstep.hs;
  lstep.ls.funcs = &lstep.funcs;
  lstep.ls.frames = &lstep.frames;
  return 1;
}

/* Call the global function of this name step by step. */
static inline void lstep_run(const char *name, void (*look)(const ucontext_t *uc))
{
  lua_State *L = lstep.L;
  int status;
  lua_getglobal(L, name);
  lstep.look = look;
  lstep.steps = 0;
  lstep.on = 1;
  raise(SIGTRAP);
  status = lua_pcall(L, 0, 0, 0);
  lstep.on = 0;
  raise(SIGTRAP);
  if (status) {
    printf("FAILED: %s: %s\n", name, lua_tostring(L, -1));
    exit(1);
  }
}

#endif
