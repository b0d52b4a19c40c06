/*
** Host program that loads libluajit, profiles a VM, and closes the library while the
** profile is running:
**
**   unload_host LIBRARY FILE close|keep|late
**
** close: closes the VM first. keep: leaves the VM open. Both run three times, into
** FILE.1 to FILE.3, and work for some ticks in between and at the end. late: runs once,
** into FILE.1. Then another thread, which has blocked all signals, unblocks them.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS      3
#define WORK_CLOCKS (CLOCKS_PER_SEC / 10)

typedef struct lua_State lua_State;

static void *symbol(void *library, const char *name)
{
  void *p = dlsym(library, name);
  if (!p) {
    printf("FAILED: no %s\n", name);
    exit(1);
  }
  return p;
}

/* Start a profile, and work until it has some samples. */
static const char *const script =
  "local path, clock = ...\n"
  "assert(misc.sysprof.start{ mode = 'C', interval = 1, clock = clock, path = path,\n"
  "  threads = path:find('late') and 'all' or nil })\n"
  "local start, x = os.time(), 0\n"
  "repeat for i = 1, 1e5 do x = x + i % 7 end\n"
  "until misc.sysprof.report().samples >= 30 or os.time() - start > 200\n"
  "assert(misc.sysprof.report().samples >= 30)\n";

static void round_trip(const char *path, const char *file, const char *clock, int closes)
{
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  lua_State *(*newstate)(void);
  void (*openlibs)(lua_State *), (*closestate)(lua_State *);
  int (*loadstring)(lua_State *, const char *);
  int (*pcall)(lua_State *, int, int, int);
  const char *(*pushstring)(lua_State *, const char *);
  const char *(*tolstring)(lua_State *, int, size_t *);
  lua_State *L;
  if (!library) {
    printf("FAILED: %s\n", dlerror());
    exit(1);
  }
  *(void **)&newstate = symbol(library, "luaL_newstate");
  *(void **)&openlibs = symbol(library, "luaL_openlibs");
  *(void **)&closestate = symbol(library, "lua_close");
  *(void **)&loadstring = symbol(library, "luaL_loadstring");
  *(void **)&pcall = symbol(library, "lua_pcall");
  *(void **)&pushstring = symbol(library, "lua_pushstring");
  *(void **)&tolstring = symbol(library, "lua_tolstring");
  L = newstate();
  openlibs(L);
  loadstring(L, script);
  pushstring(L, file);
  pushstring(L, clock);
  if (pcall(L, 2, 0, 0) != 0) {
    printf("FAILED: %s\n", tolstring(L, -1, NULL));
    exit(1);
  }
  if (closes) closestate(L);
  dlclose(library);
  library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (!library) {
    puts("FAILED: the library is unloaded: a late signal would find no handler");
    exit(1);
  }
  dlclose(library);
}

static volatile int unblock;

/* Collects pending signals of ours: blocks them during its profile, and uses CPU time. */
static void *blocked_thread(void *arg)
{
  struct sigaction now;
  sigset_t all;
  clock_t end;
  do sigaction(SIGURG, NULL, &now);
  while (now.sa_handler == SIG_DFL);
  for (end = clock() + WORK_CLOCKS / 10; clock() < end;)
    ;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  while (!unblock)
    ;
  pthread_sigmask(SIG_UNBLOCK, &all, NULL);
  return arg;
}

/* A thread unblocks our signals after the program has closed the library. */
static void late_signals(const char *path, const char *file)
{
  pthread_t t;
  if (pthread_create(&t, NULL, blocked_thread, NULL) != 0) exit(2);
  round_trip(path, file, "wall-signal", 1);
  unblock = 1;
  pthread_join(t, NULL);
}

int main(int argc, char **argv)
{
  volatile unsigned x = 1;
  char file[512];
  int i;
  if (argc != 4) return 2;
  if (strcmp(argv[3], "late") == 0) {
    snprintf(file, sizeof(file), "%s.1", argv[2]);
    late_signals(argv[1], file);
    return 0;
  }
  for (i = 1; i <= ROUNDS; i++) {
    clock_t end;
    snprintf(file, sizeof(file), "%s.%d", argv[2], i);
    round_trip(argv[1], file, i == 2 ? "cpu" : "wall-signal",
	       strcmp(argv[3], "close") == 0);
    for (end = clock() + WORK_CLOCKS; clock() < end;) x = x * 31 + 7;
  }
  return 0;
}
