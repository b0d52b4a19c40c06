/*
** Host program whose libraries come and go during a profile:
**
**   plugin_host FILE END LIBRARY...
**
** Runs each library until it has SAMPLES samples, then unloads it. Prints its load
** address. LIBRARY is a path or:
**   keep:PATH    stays loaded
**   gone:PATH    stays loaded; its file and the program's own are deleted
**   move:PATH    replaces the file before it, and is loaded by that file's path
**   thread:PATH  the last one: another thread loads and unloads it while they run
** END is stop, exit (without a stop), kill, or cycles: does all CYCLES times at a high
** rate, with a few samples for each library. The environment variable LIBUNWIND selects the
** backtracer libunwind: then these libraries are loaded at the start, too, because the profiler
** reads the files of later ones only now and then.
*/

#define _GNU_SOURCE /* For dlinfo. */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
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

#define SAMPLES     60
#define SECONDS_MAX 200
#define CYCLES      100

static uint8_t buffer[LUAM_SYSPROF_BUF_MIN];
static int fd;
static unsigned long samples_each = SAMPLES, enough_samples;
static volatile int writes, enough_writes;
static volatile int in_library, done;
static time_t deadline;

static size_t write_stream(const void **data, size_t len, void *ctx)
{
  (void)ctx;
  writes++;
  return write(fd, *data, len) == (ssize_t)len ? len : 0;
}

static int close_stream(void *ctx, uint8_t *buf)
{
  (void)ctx;
  (void)buf;
  return close(fd);
}

static unsigned long samples(void)
{
  struct luam_Sysprof_Counters c;
  luaM_sysprof_report(&c);
  return (unsigned long)c.samples;
}

static int enough(lua_State *L)
{
  if (time(NULL) > deadline) luaL_error(L, "too few samples in time");
  lua_pushboolean(L, samples() >= enough_samples && writes >= enough_writes);
  return 1;
}

static void fail(const char *what)
{
  printf("FAILED: %s\n", what ? what : "?");
  exit(1);
}

/* Run a library. written: until the samples are in the file. */
static void run(lua_State *L, const char *path, int keep, int written)
{
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *f;
  struct link_map *map;
  if (!library) fail(dlerror());
  f = dlsym(library, "plugin_run");
  if (!f || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) fail(dlerror());
  printf("%s %p\n", path, (void *)map->l_addr);
  enough_samples = samples() + samples_each;
  enough_writes = written ? writes + 2 : 0;
  deadline = time(NULL) + SECONDS_MAX;
  lua_pushcfunction(L, (lua_CFunction)f);
  lua_setglobal(L, "plugin_run");
  in_library = 1;
  if (luaL_dostring(L, "plugin_run(callback, enough) plugin_run = nil"))
    fail(lua_tostring(L, -1));
  in_library = 0;
  if (keep) { /* From here on, its function has another name. */
    lua_pushcfunction(L, (lua_CFunction)f);
    lua_setglobal(L, "kept_run");
    return;
  }
  dlclose(library);
  if (dlopen(path, RTLD_NOW | RTLD_NOLOAD)) fail("not unloaded");
}

/* Load and unload a library while another one runs: then nobody waits long for the
** dynamic linker.
*/
static void *load_and_unload(void *path)
{
  while (!done) {
    void *library;
    if (!in_library) {
      sched_yield();
      continue;
    }
    library = dlopen((const char *)path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail(dlerror());
    dlclose(library);
  }
  return NULL;
}

static void start(lua_State *L, const struct luam_Sysprof_Options *opt)
{
  if (luaM_sysprof_set_writer(write_stream) != PROFILE_SUCCESS ||
      luaM_sysprof_set_on_stop(close_stream) != PROFILE_SUCCESS ||
      luaM_sysprof_set_backtracer(NULL) != PROFILE_SUCCESS ||
      luaM_sysprof_start(L, opt) != PROFILE_SUCCESS)
    fail("start");
}

/* Start while the libraries of the arguments are loaded, from one on. */
static void start_beside(lua_State *L, const struct luam_Sysprof_Options *opt, char **path)
{
  void *library = *path && **path == '.' ? dlopen(*path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (library) start_beside(L, opt, path + 1);
  else start(L, opt);
  if (library) dlclose(library);
}

int main(int argc, char **argv)
{
  struct luam_Sysprof_Options opt;
  lua_State *L = luaL_newstate();
  const char *path = NULL;
  pthread_t thread;
  int i, cycle, cycles = 1, kills = argc > 2 && strcmp(argv[2], "kill") == 0;
  if (argc < 4 || !L) return 2;
  luaL_openlibs(L);
  lua_register(L, "enough", enough);
  if (luaL_dostring(L, "function callback() local x = 0"
		       " for i = 1, 100 do x = x + i % 3 end return x end"))
    fail(lua_tostring(L, -1));
  if (strcmp(argv[2], "cycles") == 0) {
    samples_each = 3;
    cycles = CYCLES;
  }
  fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0666);
  memset(&opt, 0, sizeof(opt));
  opt.mode = LUAM_SYSPROF_CALLGRAPH;
  opt.clocks = "wall-signal";
  opt.interval_ns = cycles > 1 ? 100000 : 1000000;
  opt.backtracer = getenv("LIBUNWIND") ? LUAM_SYSPROF_BACKTRACER_LIBUNWIND
				       : LUAM_SYSPROF_BACKTRACER_OWN;
  opt.buf = buffer;
  opt.len = sizeof(buffer);
  if (fd < 0) fail("open");
  if (cycles > 1 && getenv("LIBUNWIND")) start_beside(L, &opt, argv + 3);
  else start(L, &opt);
  if (strncmp(argv[argc - 1], "thread:", 7) == 0) {
    argc--;
    if (pthread_create(&thread, NULL, load_and_unload, argv[argc] + 7) != 0)
      fail("pthread_create");
  } else {
    done = 1;
  }
  for (cycle = 0; cycle < cycles; cycle++)
    for (i = 3; i < argc; i++) {
      if (strncmp(argv[i], "move:", 5) == 0) {
	if (rename(argv[i] + 5, path) != 0) fail("rename");
	run(L, path, 0, kills);
      } else {
	int gone = strncmp(argv[i], "gone:", 5) == 0;
	int keep = strncmp(argv[i], "keep:", 5) == 0 || gone;
	path = argv[i] + (keep ? 5 : 0);
	run(L, path, keep, kills);
	if (gone && (unlink(path) != 0 || unlink(argv[0]) != 0)) fail("unlink");
      }
    }
  if (!done) {
    done = 1;
    pthread_join(thread, NULL);
  }
  fflush(stdout);
  if (kills) raise(SIGKILL);
  if (strcmp(argv[2], "exit") != 0 && luaM_sysprof_stop(L) != PROFILE_SUCCESS) fail("stop");
  return 0;
}
