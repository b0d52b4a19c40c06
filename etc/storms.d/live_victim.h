/*
** The program of storm requests: it is live, profiles itself, forks, and closes and opens VMs.
*/

#ifndef LIVE_VICTIM_H
#define LIVE_VICTIM_H

#include <malloc.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "storm.h"

#define CHILDREN 4 /* Of the program, at a time. */

enum { ATTACK, WORK, REST, END }; /* Phases. At WORK, the program only runs its VM. */

/* Of all processes. */
static struct {
  _Atomic int phase;
  _Atomic int main_rests, other_rests;
  _Atomic uint64_t programs, profiles, samples, vms, forks, bytes;
  _Atomic int child[CHILDREN];
} * all;

/* Other VMs and forks exclude each other: LuaJIT takes a lock of libgcc for machine code, and a fork
** meanwhile gives the child a lock that nobody frees. Its next error would wait for ever.
*/
static pthread_mutex_t of_other_vm = PTHREAD_MUTEX_INITIALIZER;

extern size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static uint64_t allocated(void)
{
  if (__sanitizer_get_current_allocated_bytes)
    return __sanitizer_get_current_allocated_bytes();
  return mallinfo2().uordblks;
}

static lua_State *vm_open(void)
{
  lua_State *L = luaL_newstate();
  REQUIRE(L != NULL);
  luaL_openlibs(L);
  storm_do(L, "storm = require('storm') storm.live()");
  all->vms++;
  return L;
}

/* A profile of the program's own, unless a client records the VM. */
static void profile_itself(lua_State *L, uint32_t *x)
{
  static const char *const options[] = { "clock = 'task-clock', threads = 'all'",
					 "clock = 'ctimer,alloc'", "clock = 'wall-signal'",
					 "clock = 'wall', threads = 'all'" };
  char code[300];
  int i, n = 1 + (int)(storm_random(x) % 8);
  snprintf(code, sizeof(code), "return storm.try { path = 'own.bin', %s } == true",
	   options[storm_random(x) % 4]);
  storm_do(L, code);
  i = lua_toboolean(L, -1);
  lua_settop(L, 0);
  if (!i) return;
  for (i = 0; i < n; i++) storm_round(L);
  storm_do(L, "assert(misc.sysprof.stop())");
  all->samples += storm_count(L, "storm.read('own.bin')");
  all->profiles++;
}

/* A child stays long enough to have a socket of its own. */
static void fork_child(lua_State *L, uint32_t *x)
{
  double length = storm_random(x) % 600 * 1e-3;
  int i, by_close = (int)(storm_random(x) & 1);
  pid_t pid;
  for (i = 0; i < CHILDREN && all->child[i]; i++)
    ;
  if (i == CHILDREN) return;
  fflush(stdout);
  pthread_mutex_lock(&of_other_vm);
  pid = fork();
  pthread_mutex_unlock(&of_other_vm);
  REQUIRE(pid >= 0);
  if (pid == 0) {
    double end = storm_now() + length;
    alarm(STORM_STUCK_S);
    do {
      storm_round(L);
      storm_nap(0.05);
    } while (storm_now() < end);
    if (by_close) lua_close(L);
    fflush(stdout);
    _exit(check_status());
  }
  all->child[i] = pid;
  all->forks++;
}

static void reap_children(int flags)
{
  int i, status;
  for (i = 0; i < CHILDREN; i++) {
    if (!all->child[i] || waitpid(all->child[i], &status, flags) == 0) continue;
    if (status != 0) storm_fail("a child of fork(): status 0x%x", (unsigned)status);
    all->child[i] = 0;
  }
}

static lua_State *rest(lua_State *L)
{
  lua_close(L);
  reap_children(0);
  L = vm_open();
  while (all->phase == REST) {
    all->bytes = allocated();
    all->main_rests = 1;
    storm_vm->count++;
    storm_nap(0.01);
  }
  all->main_rests = 0;
  return L;
}

/* VMs that live for a moment, on another thread. */
static void *others_come_and_go(void *arg)
{
  StormActor *self = (StormActor *)arg;
  while (all->phase != END) {
    self->count++;
    if (all->phase == ATTACK) {
      lua_State *L;
      pthread_mutex_lock(&of_other_vm);
      L = luaL_newstate();
      REQUIRE(L != NULL);
      luaL_openlibs(L);
      storm_do(L,
	       "assert(misc.sysprof.live()) local s = 0\n"
	       "for i = 1, 5e5 do s = s + #tostring(i % 100) end assert(s == 950000, s)");
      lua_close(L);
      pthread_mutex_unlock(&of_other_vm);
      all->vms++;
    }
    all->other_rests = (all->phase == REST);
    storm_nap(0.01);
  }
  return NULL;
}

static int program(void)
{
  uint32_t x = (uint32_t)getpid() | 1;
  lua_State *L;
  pthread_t other;
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  storm_vm = storm_actor("the VM");
  L = vm_open();
  storm_thread(storm_watch, NULL, 1);
  other = storm_thread(others_come_and_go, storm_actor("other VMs"), 0);
  while (all->phase != END) {
    if (all->phase == REST) {
      L = rest(L);
    } else if (all->phase == ATTACK) {
      switch (storm_random(&x) % 24) {
      case 0:
	if (storm_random(&x) & 1) break; /* A VM begins by all programs. */
	lua_close(L);
	storm_nap(storm_random(&x) % 50 * 1e-3);
	L = vm_open();
	break;
      case 1:
      case 2:
      case 3: fork_child(L, &x); break;
      case 4: profile_itself(L, &x); break;
      default: break;
      }
    }
    reap_children(WNOHANG);
    storm_round(L);
    storm_vm->count++;
    all->programs++;
  }
  pthread_join(other, NULL);
  reap_children(0);
  lua_close(L);
  return check_status();
}

#endif
