/*
** Host of test/vm_edits/same_code: LuaJIT compiles the same code in each run of a script.
**
** usage: same_code_host SCRIPT [ARGUMENT...]
**
** LuaJIT's decisions depend on more than the program. The host makes these equal:
** - the random numbers;
** - the addresses of objects: the bytecode's address selects the hot counter;
** - the size of the heap at the start of the script: it sets the collector's pace.
**
** The script gets a function profile(on). With SAME_CODE_PROFILE set, it starts or stops
** the profiler without touching the Lua heap, and returns the number of samples. Else it
** returns 0. SAME_CODE_OPTION is "on", "off" or a parameter of the compiler, like after
** -j and -O of luajit.
*/

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "luajit.h"
#include "lmisclib.h"

/* -- Random numbers ---------------------------------------------------------- */

static long (*libc_syscall)(long number, ...);

/* LuaJIT takes its seed from here: always the same. */
static int fixed_seed(void *buf, size_t len)
{
  memset(buf, 0x5a, len);
  return 0;
}

int getentropy(void *buf, size_t len)
{
  return fixed_seed(buf, len);
}

long syscall(long number, ...)
{
  long a[6];
  va_list args;
  int i;
  va_start(args, number);
  for (i = 0; i < 6; i++) a[i] = va_arg(args, long);
  va_end(args);
  if (number == SYS_getrandom) {
    fixed_seed((void *)a[0], (size_t)a[1]);
    return a[1];
  }
  return libc_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* -- The heap ------------------------------------------------------------------ */

#define ARENA_START ((char *)0x100000000000)
#define ARENA_SIZE  ((size_t)1 << 32)
#define SMALL_MAX   96    /* A function's bytecode is larger. */
#define LARGE_MIN   65536 /* From here on sizes are powers of two. */
#define PAGE        256   /* The address in a page selects the hot counter. */
#define STATE_SIZE  65536 /* Room for the VM's state, which comes first. */

static char *arena_next = ARENA_START;
static void *arena_free[SMALL_MAX / 16 + LARGE_MIN / PAGE + 64];

/* Class of a size, and the bytes of a block of that class. */
static int size_class(size_t size, size_t *block)
{
  if (size < SMALL_MAX) {
    *block = (size + 15) & ~(size_t)15;
    return (int)(*block / 16);
  } else if (size < LARGE_MIN) {
    *block = (size + PAGE - 1) & ~(size_t)(PAGE - 1);
    return (int)(SMALL_MAX / 16 + *block / PAGE);
  } else {
    int bits = 63 - __builtin_clzl(size);
    *block = (size_t)2 << bits;
    return SMALL_MAX / 16 + LARGE_MIN / PAGE + bits;
  }
}

/* Blocks that can hold bytecode begin at a multiple of PAGE. So the counters of a loop do
** not depend on earlier allocations.
*/
static void *arena_alloc(size_t size)
{
  size_t block;
  void **list = &arena_free[size_class(size, &block)];
  char *p = *list;
  if (p) {
    *list = *(void **)p;
    return p;
  }
  if (block >= PAGE) arena_next += -(size_t)arena_next & (PAGE - 1);
  if (block > (size_t)(ARENA_START + ARENA_SIZE - arena_next)) return NULL;
  p = arena_next;
  arena_next += p == ARENA_START ? STATE_SIZE : block;
  return p;
}

/* The allocator of the VM, see lua_Alloc. */
static void *arena(void *ud, void *ptr, size_t osize, size_t nsize)
{
  size_t block;
  void *p = NULL;
  (void)ud;
  if (nsize) {
    p = arena_alloc(nsize);
    if (!p) return NULL;
    if (ptr) memcpy(p, ptr, osize < nsize ? osize : nsize);
  }
  if (ptr && osize) {
    void **list = &arena_free[size_class(osize, &block)];
    *(void **)ptr = *list;
    *list = ptr;
  }
  return p;
}

/* -- The profiler -------------------------------------------------------------- */

#pragma weak luaM_sysprof_start
#pragma weak luaM_sysprof_stop
#pragma weak luaM_sysprof_report
#pragma weak luaM_sysprof_set_writer
#pragma weak luaM_sysprof_set_on_stop
#pragma weak luaM_sysprof_set_backtracer

static size_t discard(const void **data, size_t len, void *ctx)
{
  (void)data;
  (void)ctx;
  return len;
}

static int on_stop(void *ctx, uint8_t *buf)
{
  (void)ctx;
  (void)buf;
  return 0;
}

static int profile(lua_State *L)
{
  static uint8_t buf[65536];
  struct luam_Sysprof_Options opt = { 0 };
  struct luam_Sysprof_Counters counters = { 0 };
  int status = PROFILE_SUCCESS;
  if (!getenv("SAME_CODE_PROFILE")) {
    lua_pushinteger(L, 0);
    return 1;
  }
  if (!luaM_sysprof_start) return luaL_error(L, "this LuaJIT has no profiler");
  if (lua_toboolean(L, 1)) {
    opt.mode = LUAM_SYSPROF_CALLGRAPH;
    opt.buf = buf;
    opt.len = sizeof(buf);
    opt.clocks = "wall-signal";
    opt.interval_ns = 1000000;
    luaM_sysprof_set_writer(discard);
    luaM_sysprof_set_on_stop(on_stop);
    luaM_sysprof_set_backtracer(NULL);
    status = luaM_sysprof_start(L, &opt);
  } else {
    status = luaM_sysprof_stop(L);
  }
  if (status != PROFILE_SUCCESS) return luaL_error(L, "profiler: %d", status);
  luaM_sysprof_report(&counters);
  lua_pushinteger(L, (lua_Integer)counters.samples);
  return 1;
}

/* -- The script ---------------------------------------------------------------- */

/* Like luaL_openlibs, without misc, which plain LuaJIT lacks, and without package, which
** has other default paths there. The tables of package become globals instead.
*/
static void open_libs(lua_State *L)
{
  static const luaL_Reg libs[] = { { "", luaopen_base },
				   { LUA_TABLIBNAME, luaopen_table },
				   { LUA_IOLIBNAME, luaopen_io },
				   { LUA_OSLIBNAME, luaopen_os },
				   { LUA_STRLIBNAME, luaopen_string },
				   { LUA_MATHLIBNAME, luaopen_math },
				   { LUA_DBLIBNAME, luaopen_debug },
				   { LUA_BITLIBNAME, luaopen_bit },
				   { LUA_JITLIBNAME, luaopen_jit },
				   { NULL, NULL } };
  const luaL_Reg *lib;
  for (lib = libs; lib->func; lib++) {
    lua_pushcfunction(L, lib->func);
    lua_pushstring(L, lib->name);
    lua_call(L, 1, 0);
  }
  lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
  lua_setglobal(L, "loaded");
  lua_getfield(L, LUA_REGISTRYINDEX, "_PRELOAD");
  lua_setglobal(L, "preload");
}

/* Fills the heap up to a full 256 KiB: the state itself may differ in size. */
static void round_heap(lua_State *L)
{
  size_t used, pad, header;
  lua_gc(L, LUA_GCCOLLECT, 0);
  used = (size_t)lua_gc(L, LUA_GCCOUNT, 0) * 1024 + lua_gc(L, LUA_GCCOUNTB, 0);
  lua_newuserdata(L, 0);
  header = (size_t)lua_gc(L, LUA_GCCOUNT, 0) * 1024 + lua_gc(L, LUA_GCCOUNTB, 0) - used;
  pad = (size_t) - (used + 2 * header) & (256 * 1024 - 1);
  lua_newuserdata(L, pad);
  if (lua_gc(L, LUA_GCCOUNT, 0) % 256 || lua_gc(L, LUA_GCCOUNTB, 0))
    luaL_error(L, "the heap was not rounded");
}

/* Switch the compiler, or set one of its parameters. */
static void set_option(lua_State *L, const char *option)
{
  int top = lua_gettop(L);
  lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
  if (!strcmp(option, "on") || !strcmp(option, "off")) {
    luaJIT_setmode(
      L, 0, LUAJIT_MODE_ENGINE | (option[1] == 'n' ? LUAJIT_MODE_ON : LUAJIT_MODE_OFF));
  } else {
    lua_getfield(L, -1, "jit.opt");
    lua_getfield(L, -1, "start");
    lua_pushstring(L, option);
    lua_call(L, 1, 0);
  }
  lua_settop(L, top);
}

static int main_protected(lua_State *L)
{
  const char *option = getenv("SAME_CODE_OPTION");
  char **argv = (char **)lua_touserdata(L, 1);
  int n = 0;
  open_libs(L);
  lua_pushcfunction(L, profile);
  lua_setglobal(L, "profile");
  round_heap(L);
  if (option) set_option(L, option);
  if (luaL_loadfile(L, argv[1])) return lua_error(L);
  while (argv[2 + n]) lua_pushstring(L, argv[2 + n++]);
  lua_call(L, n, 0);
  return 0;
}

int main(int argc, char **argv)
{
  lua_State *L;
  libc_syscall = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  if (argc < 2 || !libc_syscall ||
      mmap(ARENA_START, ARENA_SIZE, PROT_READ | PROT_WRITE,
	   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
	   0) != ARENA_START) {
    fprintf(stderr, "usage: same_code_host SCRIPT [ARGUMENT...]; or no memory\n");
    return 2;
  }
  L = lua_newstate(arena, NULL);
  if (!L || lua_cpcall(L, main_protected, argv)) {
    fprintf(stderr, "same_code_host: %s\n", L ? lua_tostring(L, -1) : "no VM");
    return 1;
  }
  lua_close(L);
  return 0;
}
