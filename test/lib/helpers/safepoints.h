/*
** Safe points on demand: a signal handler requests them at a steady rate of real time.
*/

#ifndef SAFEPOINTS_H
#define SAFEPOINTS_H

#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "lauxlib.h"
#include "lualib.h"
#include "lj_obj.h"
#include "lj_dispatch.h"
#include "lj_vm.h"
#include "profile/vm/lj_safepoint.h"
#include "check.h"
#include "signal_cost.h"

static global_State *safepoints_vm;
static volatile unsigned int safepoints_asked, safepoints_served;

static void safepoints_handler(int sig)
{
  (void)sig;
  if (G2GG(safepoints_vm)->safepoint == 0) safepoints_served++;
  safepoints_asked++;
  lj_safepoint_request(safepoints_vm, SAFEPOINT_FLUSH);
}

/* Open a VM with all libraries. The handler will request its safe points. */
static lua_State *safepoints_new(void)
{
  lua_State *L = luaL_newstate();
  REQUIRE(L != NULL);
  luaL_openlibs(L);
  safepoints_vm = G(L);
  signal(SIGALRM, safepoints_handler);
  return L;
}

static void safepoints_timer(int us)
{
  struct itimerval tm;
  memset(&tm, 0, sizeof(tm));
  tm.it_interval.tv_usec = tm.it_value.tv_usec = us;
  REQUIRE(setitimer(ITIMER_REAL, &tm, NULL) == 0);
}

/* Begin to request a safe point each us microseconds, or as often as the program keeps
** half of its time.
*/
static void safepoints_begin(int us)
{
  static int interval_us;
  if (!interval_us) interval_us = (int)(signal_interval_ns((uint64_t)us * 1000, 1) / 1000);
  safepoints_asked = safepoints_served = 0;
  safepoints_timer(interval_us);
}

/* End the requests. Some safe points must have come. After the VM has run, no request is
** pending.
*/
static void safepoints_end(lua_State *L, const char *what)
{
  safepoints_timer(0);
  printf("%s: %u signals, %u safe points\n", what, safepoints_asked, safepoints_served);
  CHECK(safepoints_asked > 0);
  CHECK(safepoints_served > 0);
  REQUIRE(luaL_dostring(L, "jit.off(true, true) local s = 0 "
			   "for i = 1, 9 do s = s + i end") == 0);
  CHECK_EQ(G2GG(safepoints_vm)->safepoint, 0);
  CHECK_EQ(safepoints_vm->hookmask & HOOK_PROFILE, 0);
  CHECK(G2GG(safepoints_vm)->dispatch[0] != (ASMFunction)lj_vm_profhook);
}

#endif
