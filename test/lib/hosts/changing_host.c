/*
** Host program of two VMs whose code changes all the time:
**
**   changing_host FLUSH THREADS HZ SAMPLES LIBRARY LIBRARY
**
** The main thread runs functions.lua, which makes, calls and frees Lua functions. Another
** thread runs libraries.lua, which loads, calls and unloads the two libraries in turns. Each
** ends when its profile has SAMPLES samples, or after twice the time that these take and a
** minute. FLUSH is a number, LUAM_SYSPROF_FLUSH_*. THREADS is own, or all: then only the
** first VM has a profile, of both threads, until the second one has also loaded enough.
**
** Writes functions.bin and libraries.bin. Prints how often a library took the other's
** address, and what each profile lost.
*/

#define _GNU_SOURCE /* For dlinfo. */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "lmisclib.h"

#define LOADS_LEAST 1000 /* Of libraries, in a profile of both threads. */
#define BUF_SIZE    (LUAM_SYSPROF_FLUSH_BUFFERS * 16384)

typedef struct Vm {
  const char *program, *path;
  lua_State *L;
  int fd;
  uint8_t buf[BUF_SIZE];
  double begin_us[2]; /* Times before and after the start of the profile. */
  struct luam_Sysprof_SelfReport report;
} Vm;

static Vm functions = { .program = "functions.lua", .path = "functions.bin" };
static Vm libraries = { .program = "libraries.lua", .path = "libraries.bin" };
static uint64_t samples_wanted;
static int flush_how, hz, all_threads;
static _Atomic int functions_ended;
static double length_max_us;
static char **library;
static uintptr_t last_place;
static lua_Integer last_key;
static _Atomic uint64_t loads;
static uint64_t replaced;
static double turn_end_us;

static void fail(const char *what)
{
  printf("FAILED: %s\n", what ? what : "?");
  fflush(stdout);
  _exit(1);
}

static double now_us(void)
{
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

/* -- Profile -------------------------------------------------------------------- */

static size_t write_stream(const void **data, size_t len, void *ctx)
{
  return write(((Vm *)ctx)->fd, *data, len) == (ssize_t)len ? len : 0;
}

static int close_stream(void *ctx, uint8_t *buf)
{
  (void)buf;
  return close(((Vm *)ctx)->fd);
}

static void begin(Vm *vm)
{
  struct luam_Sysprof_Options opt;
  memset(&opt, 0, sizeof(opt));
  opt.mode = LUAM_SYSPROF_CALLGRAPH;
  opt.clocks = "wall-signal";
  opt.interval_ns = (uint64_t)(1000000000 / hz);
  opt.buf = vm->buf;
  opt.len = sizeof(vm->buf);
  opt.ctx = vm;
  opt.flush = (uint8_t)flush_how;
  opt.threads = all_threads ? LUAM_SYSPROF_THREADS_ALL : LUAM_SYSPROF_THREADS_OWN;
  vm->fd = open(vm->path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (vm->fd < 0) fail(vm->path);
  vm->begin_us[0] = now_us();
  if (luaM_sysprof_start(vm->L, &opt) != PROFILE_SUCCESS) fail(luaM_sysprof_error());
  vm->begin_us[1] = now_us();
}

static void end(Vm *vm)
{
  if (luaM_sysprof_stop(vm->L) != PROFILE_SUCCESS ||
      luaM_sysprof_selfreport(vm->L, &vm->report, sizeof(vm->report)) != PROFILE_SUCCESS)
    fail("stop");
}

/* -- Functions for the programs --------------------------------------------------- */

/* Returns whether the profile of the VM has all samples, or no time is left. */
static int enough(lua_State *L)
{
  Vm *vm = (Vm *)lua_touserdata(L, lua_upvalueindex(1));
  if (all_threads && vm == &libraries) {
    lua_pushboolean(L, functions_ended);
    return 1;
  }
  if (luaM_sysprof_selfreport(L, &vm->report, sizeof(vm->report)) != PROFILE_SUCCESS)
    return luaL_error(L, "no report");
  lua_pushboolean(
    L, (vm->report.samples >= samples_wanted && (!all_threads || loads >= LOADS_LEAST)) ||
	 now_us() - vm->begin_us[0] > length_max_us);
  return 1;
}

/* Microseconds since the start, which was up to the second result later. */
static int since_start(lua_State *L)
{
  Vm *vm = (Vm *)lua_touserdata(L, lua_upvalueindex(1));
  lua_pushnumber(L, now_us() - vm->begin_us[0]);
  lua_pushnumber(L, vm->begin_us[1] - vm->begin_us[0]);
  return 2;
}

/* Called by compiled code. */
void turn_begin(double us)
{
  turn_end_us = now_us() + us;
}

int turn_is_over(void)
{
  return now_us() >= turn_end_us;
}

/* Load a library by its number, call its function with the other arguments, unload it. */
static int use(lua_State *L)
{
  lua_Integer key = lua_tointeger(L, 1);
  void *lib = dlopen(library[key - 1], RTLD_NOW | RTLD_LOCAL), *f;
  struct link_map *map;
  if (!lib) fail(dlerror());
  f = dlsym(lib, "plugin_run");
  if (!f || dlinfo(lib, RTLD_DI_LINKMAP, &map) != 0) fail(dlerror());
  loads++;
  replaced += (uintptr_t)map->l_addr == last_place && key != last_key;
  last_place = (uintptr_t)map->l_addr;
  last_key = key;
  lua_pushcfunction(L, (lua_CFunction)f);
  lua_pushvalue(L, 2);
  lua_pushvalue(L, 3);
  lua_call(L, 2, 0);
  dlclose(lib);
  return 0;
}

/* -- VMs ------------------------------------------------------------------------ */

static void vm_open(Vm *vm)
{
  lua_State *L = vm->L = luaL_newstate();
  if (!L) fail("no VM");
  luaL_openlibs(L);
  lua_register(L, "use", use);
  lua_pushlightuserdata(L, vm);
  lua_pushcclosure(L, enough, 1);
  lua_setglobal(L, "enough");
  lua_pushlightuserdata(L, vm);
  lua_pushcclosure(L, since_start, 1);
  lua_setglobal(L, "since_start");
}

static void vm_run(Vm *vm)
{
  if (luaL_dofile(vm->L, vm->program)) fail(lua_tostring(vm->L, -1));
}

static void *run_libraries(void *arg)
{
  if (all_threads)
    memcpy(libraries.begin_us, functions.begin_us, sizeof(libraries.begin_us));
  else begin(&libraries);
  vm_run(&libraries);
  if (!all_threads) end(&libraries);
  return arg;
}

static void vm_report(const Vm *vm)
{
  const struct luam_Sysprof_SelfReport *r = &vm->report;
  printf("%s: %llu samples, %llu lost in the queue, %llu in the buffer, %llu throttled, "
	 "handler %.1f us, signal %.1f us\n",
	 vm->path, (unsigned long long)r->samples, (unsigned long long)r->lost_queue,
	 (unsigned long long)(r->lost_buffer + r->lost_writer),
	 (unsigned long long)r->throttled, (double)r->handler_mean_ns / 1e3,
	 (double)r->signal_mean_ns / 1e3);
}

int main(int argc, char **argv)
{
  pthread_t thread;
  if (argc != 7) return 2;
  flush_how = atoi(argv[1]);
  all_threads = strcmp(argv[2], "all") == 0;
  hz = atoi(argv[3]);
  samples_wanted = strtoull(argv[4], NULL, 10);
  length_max_us = (60 + 2.0 * (double)samples_wanted / hz) * 1e6;
  library = argv + 5;
  if (luaM_sysprof_set_writer(write_stream) != PROFILE_SUCCESS ||
      luaM_sysprof_set_on_stop(close_stream) != PROFILE_SUCCESS ||
      luaM_sysprof_set_backtracer(NULL) != PROFILE_SUCCESS)
    fail("setters");
  vm_open(&functions);
  vm_open(&libraries);
  begin(&functions);
  if (pthread_create(&thread, NULL, run_libraries, NULL) != 0) fail("pthread_create");
  vm_run(&functions);
  functions_ended = 1;
  if (!all_threads) end(&functions);
  if (pthread_join(thread, NULL) != 0) fail("pthread_join");
  if (all_threads) end(&functions);
  lua_close(functions.L);
  lua_close(libraries.L);
  vm_report(&functions);
  if (!all_threads) vm_report(&libraries);
  printf("%llu loads, %llu at the address of the other library\n",
	 (unsigned long long)loads, (unsigned long long)replaced);
  return 0;
}
