/* Control by a signal that lands on another thread than the VM's, or comes while VMs are
** opened and closed. Where the program has a handler for the signal, the handler gets it.
*/

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "lmisclib.h"
#include "check.h"

#define PATIENCE_S 200
#define ROUNDS     200

/* Runs Lua until the profile runs (1) or not (0): then its time stands still. */
static const char wait_code[] = "jit.off() " /* Compiled code may run on for ever. */
				"local wanted, s, deadline = ..., 0, os.time() + 200 "
				"repeat "
				"  local before = misc.sysprof.report().wall_s "
				"  for i = 1, 1000 do s = s + #tostring(i) end "
				"  assert(os.time() < deadline, 'not in time') "
				"until (misc.sysprof.report().wall_s ~= before) == wanted";

static int phase; /* Set by the VM's thread, */
static int sent;  /* and by the one that sends. */
static int over;

static lua_State *vm_new(void)
{
  lua_State *L = luaL_newstate();
  REQUIRE(L != NULL);
  luaL_openlibs(L);
  return L;
}

static void vm_wait(lua_State *L, int wanted)
{
  REQUIRE(luaL_loadstring(L, wait_code) == 0);
  lua_pushboolean(L, wanted);
  if (lua_pcall(L, 1, 0, 0) != 0) {
    puts(lua_tostring(L, -1));
    lua_pop(L, 1);
    CHECK(0);
  }
}

static void set(int *flag, int value)
{
  __atomic_store_n(flag, value, __ATOMIC_RELEASE);
}

static int pause_until(int *flag, int value)
{
  static const struct timespec ms = { 0, 1000000 };
  time_t deadline = time(NULL) + PATIENCE_S;
  while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) < value && time(NULL) < deadline)
    nanosleep(&ms, NULL);
  return __atomic_load_n(flag, __ATOMIC_ACQUIRE) >= value;
}

static int exists(const char *path)
{
  return access(path, F_OK) == 0;
}

/* The VM's thread. */
static void *runs_vm(void *arg)
{
  lua_State *L = vm_new();
  (void)arg;
  set(&phase, 1);
  vm_wait(L, 1);
  set(&phase, 2);
  vm_wait(L, 0);
  set(&phase, 3);
  CHECK(pause_until(&sent, 3));
  lua_close(L);
  return NULL;
}

static void another_thread(void)
{
  pthread_t thread;
  remove("r1.bin");
  remove("r2.bin");
  REQUIRE(pthread_create(&thread, NULL, runs_vm, NULL) == 0);
  CHECK(pause_until(&phase, 1));
  CHECK_EQ(raise(SIGUSR2), 0); /* On this thread. */
  CHECK(pause_until(&phase, 2));
  CHECK(exists("r1.bin"));
  CHECK_EQ(raise(SIGUSR2), 0);
  CHECK(pause_until(&phase, 3));
  CHECK(!exists("r2.bin"));
  set(&sent, 3);
  REQUIRE(pthread_join(thread, NULL) == 0);
}

static void *opens_and_closes(void *arg)
{
  int i;
  (void)arg;
  for (i = 0; i < ROUNDS; i++) {
    lua_State *L = vm_new();
    CHECK_EQ(luaL_dostring(L, "local s = 0 for i = 1, 2000 do s = s + #tostring(i) end"),
	     0);
    lua_close(L);
  }
  set(&over, 1);
  return NULL;
}

/* Send signals all the time, also without a VM. */
static void while_vms_come_and_go(void)
{
  pthread_t thread;
  lua_State *mine = vm_new();
  struct sigaction ours, sa;
  REQUIRE(pthread_create(&thread, NULL, opens_and_closes, NULL) == 0);
  while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
    raise(SIGUSR2);
    CHECK_EQ(luaL_dostring(mine, "local s = 0 for i = 1, 200 do s = s + #tostring(i) end"),
	     0);
  }
  REQUIRE(pthread_join(thread, NULL) == 0);
  REQUIRE(sigaction(SIGUSR2, NULL, &ours) == 0);
  CHECK(ours.sa_flags & SA_SIGINFO);
  lua_close(mine);
  REQUIRE(sigaction(SIGUSR2, NULL, &sa) == 0);
  CHECK(sa.sa_handler == SIG_DFL); /* As it was before. */
}

static volatile sig_atomic_t handled;

static void program_handler(int signo)
{
  (void)signo;
  handled++;
}

static void handler_of_program(void)
{
  struct sigaction sa, now;
  char text[1024];
  lua_State *L;
  ssize_t n;
  int fd = open("messages", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600), keep = dup(2);
  REQUIRE(fd >= 0 && keep >= 0 && dup2(fd, 2) == 2);
  memset(&sa, 0, sizeof(sa));
  sa.sa_handler = program_handler;
  REQUIRE(sigaction(SIGUSR2, &sa, NULL) == 0);
  L = vm_new();
  REQUIRE(dup2(keep, 2) == 2);
  n = pread(fd, text, sizeof(text) - 1, 0);
  REQUIRE(n >= 0);
  text[n] = '\0';
  CHECK(strstr(text, "control=SIGUSR2: the program has a handler for this signal") != NULL);
  CHECK(strchr(text, '\n') == text + n - 1);
  raise(SIGUSR2);
  CHECK_EQ(handled, 1);
  lua_close(L);
  REQUIRE(sigaction(SIGUSR2, NULL, &now) == 0);
  CHECK(now.sa_handler == program_handler);
  close(fd);
  close(keep);
}

int main(void)
{
  REQUIRE(setenv("LUAJIT_SYSPROF", "control=SIGUSR2,paused,path=r%r.bin", 1) == 0);
  another_thread();
  REQUIRE(setenv("LUAJIT_SYSPROF", "control=SIGUSR2,paused,path=many-%n-%r.bin", 1) == 0);
  while_vms_come_and_go();
  CHECK_EQ(system("rm -f many-*.bin"), 0);
  handler_of_program();
  return check_status();
}
