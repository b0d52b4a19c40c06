/*
** Library "misc": the Lua API of sysprof. Options and errors only; the
** profiler itself is in profile/.
*/

#define lib_misc_c
#define LUA_LIB

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lua.h"
#include "lauxlib.h"
#include "lmisclib.h"

#ifndef LUAJIT_DISABLE_SYSPROF

#include "lj_obj.h"
#include "profile/lj_sysprof.h"

#define SYSPROF_PATH		"sysprof.bin"	/* Default file. */
#define SYSPROF_INTERVAL_MS	10		/* Default interval. */
#define SYSPROF_INTERVAL_MS_MAX	86400000.0	/* A day. */
#define SYSPROF_BUFFER_SIZE	(128*1024)

/* Key in the registry: path of the last profile. */
#define SYSPROF_PATH_KEY	"sysprof.path"

/* -- Stream into a file ------------------------------------------------------ */

typedef struct StreamFile {
  int fd;
  int begun;			/* What the file held before is gone. */
  uint8_t buf[SYSPROF_BUFFER_SIZE];
} StreamFile;

/* Async-signal-safe: only ftruncate(2) and write(2). Returns 0 and sets errno
** on error.
*/
static size_t file_writer(const void **data, size_t len, void *ctx)
{
  StreamFile *sf = (StreamFile *)ctx;
  const char *p = (const char *)*data;
  size_t left = len;
  if (!sf->begun) {  /* Not at open: a start that fails destroys nothing. */
    sf->begun = 1;
    if (ftruncate(sf->fd, 0) != 0 && errno != EINVAL) return 0;
  }
  while (left > 0) {
    ssize_t n = write(sf->fd, p, left);
    if (n > 0) {
      p += n;
      left -= (size_t)n;
    } else if (n == 0 || errno != EINTR) {
      if (n == 0) errno = EIO;
      return 0;
    }
  }
  return len;
}

static int file_on_stop(void *ctx, uint8_t *buf)
{
  StreamFile *sf = (StreamFile *)ctx;
  int fd = sf->fd;
  UNUSED(buf);
  free(sf);
  return close(fd);
}

/* -- Results ----------------------------------------------------------------- */

static int push_error(lua_State *L, const char *msg, int err)
{
  lua_pushnil(L);
  lua_pushstring(L, msg);
  lua_pushinteger(L, err);
  return 3;
}

static int push_misuse(lua_State *L)
{
  return push_error(L, "profiler misuse", EINVAL);
}

/* Results of a failed system call, as of the io library. */
static int push_syserror(lua_State *L, const char *path, int err)
{
  lua_pushnil(L);
  if (path) lua_pushfstring(L, "%s: %s", path, strerror(err));
  else lua_pushstring(L, strerror(err));
  lua_pushinteger(L, err);
  return 3;
}

/* -- Options ----------------------------------------------------------------- */

static int option_mode(lua_State *L, struct luam_Sysprof_Options *opt)
{
  size_t len;
  const char *s;
  lua_getfield(L, 1, "mode");
  if (lua_type(L, -1) != LUA_TSTRING) return 0;
  s = lua_tolstring(L, -1, &len);
  if (len != 1) return 0;
  switch (*s) {
  case 'D': opt->mode = LUAM_SYSPROF_DEFAULT; break;
  case 'L': opt->mode = LUAM_SYSPROF_LEAF; break;
  case 'C': opt->mode = LUAM_SYSPROF_CALLGRAPH; break;
  default: return 0;
  }
  lua_pop(L, 1);
  return 1;
}

static int option_interval(lua_State *L, struct luam_Sysprof_Options *opt)
{
  lua_Number ms = SYSPROF_INTERVAL_MS;
  lua_getfield(L, 1, "interval");
  if (lua_type(L, -1) == LUA_TNUMBER) ms = lua_tonumber(L, -1);
  else if (!lua_isnil(L, -1)) return 0;
  if (!(ms > 0 && ms <= SYSPROF_INTERVAL_MS_MAX)) return 0;
  opt->interval_ns = (uint64_t)(ms * 1e6 + 0.5);
  if (opt->interval_ns == 0) return 0;
  lua_pop(L, 1);
  return 1;
}

static int option_clock(lua_State *L, struct luam_Sysprof_Options *opt)
{
  lua_getfield(L, 1, "clock");
  if (lua_type(L, -1) == LUA_TSTRING) {
    const char *s = lua_tostring(L, -1);
    if (strcmp(s, "cpu") == 0) opt->clock = LUAM_SYSPROF_CLOCK_CPU;
    else if (strcmp(s, "wall") == 0) opt->clock = LUAM_SYSPROF_CLOCK_WALL;
    else return 0;
  } else if (!lua_isnil(L, -1)) {
    return 0;
  }
  lua_pop(L, 1);
  return 1;
}

/* Leaves the path on the stack. */
static const char *option_path(lua_State *L)
{
  size_t len;
  const char *path;
  lua_getfield(L, 1, "path");
  if (lua_isnil(L, -1)) return SYSPROF_PATH;
  if (lua_type(L, -1) != LUA_TSTRING) return NULL;
  path = lua_tolstring(L, -1, &len);
  return strlen(path) == len ? path : NULL;
}

/* -- Functions --------------------------------------------------------------- */

static int sysprof_start(lua_State *L)
{
  static const SysprofCallbacks none;
  static const SysprofCallbacks file = { file_writer, file_on_stop, NULL };
  struct luam_Sysprof_Options opt;
  StreamFile *sf = NULL;
  const char *path;
  int status, err;
  memset(&opt, 0, sizeof(opt));
  if (lua_type(L, 1) != LUA_TTABLE || !option_mode(L, &opt) ||
      !option_interval(L, &opt) || !option_clock(L, &opt) ||
      !(path = option_path(L)))
    return push_misuse(L);
  if (lj_sysprof_isrunning(G(L)))  /* Before the file is touched. */
    return push_error(L, "profiler is running already", EINVAL);
  if (opt.mode != LUAM_SYSPROF_DEFAULT) {
    sf = (StreamFile *)malloc(sizeof(StreamFile));
    if (!sf) return push_syserror(L, NULL, ENOMEM);
    sf->begun = 0;
    sf->fd = open(path, O_WRONLY|O_CREAT|O_CLOEXEC, 0600);
    if (sf->fd < 0) {
      err = errno;
      free(sf);
      return push_syserror(L, path, err);
    }
    opt.buf = sf->buf;
    opt.len = sizeof(sf->buf);
    opt.ctx = sf;
  }
  status = lj_sysprof_start(L, &opt, sf ? &file : &none);
  err = errno;
  if (status == PROFILE_SUCCESS) {
    lua_pushstring(L, path);
    lua_setfield(L, LUA_REGISTRYINDEX, SYSPROF_PATH_KEY);
    lua_pushboolean(L, 1);
    return 1;
  }
  if (sf) file_on_stop(sf, NULL);
  switch (status) {
  case PROFILE_ERRUSE: return push_misuse(L);
  case PROFILE_ERRRUN:
    return push_error(L, "profiler is running already", EINVAL);
  case PROFILE_ERRMEM: return push_syserror(L, NULL, err ? err : ENOMEM);
  default: return push_syserror(L, sf ? path : NULL, err);
  }
}

static int sysprof_stop(lua_State *L)
{
  int status = lj_sysprof_stop(G(L)), err = errno;
  switch (status) {
  case PROFILE_SUCCESS: lua_pushboolean(L, 1); return 1;
  case PROFILE_ERRRUN:
    return push_error(L, "profiler is not running", EINVAL);
  default:
    lua_getfield(L, LUA_REGISTRYINDEX, SYSPROF_PATH_KEY);
    return push_syserror(L, lua_tostring(L, -1), err);
  }
}

static void get_counters(lua_State *L, struct luam_Sysprof_Counters *c)
{
  lj_sysprof_counters(G(L), c);
}

#else  /* LUAJIT_DISABLE_SYSPROF */

static int sysprof_start(lua_State *L)
{
  lua_pushboolean(L, 0);
  return 1;
}

#define sysprof_stop	sysprof_start

static void get_counters(lua_State *L, struct luam_Sysprof_Counters *c)
{
  (void)L;
  memset(c, 0, sizeof(*c));
}

#endif

static void set_count(lua_State *L, const char *name, uint64_t n)
{
  lua_pushnumber(L, (lua_Number)n);
  lua_setfield(L, -2, name);
}

static int sysprof_report(lua_State *L)
{
  struct luam_Sysprof_Counters c;
  get_counters(L, &c);
  lua_createtable(L, 0, 2);
  set_count(L, "samples", c.samples);
  lua_createtable(L, 0, 10);
  set_count(L, "INTERP", c.vmst_interp);
  set_count(L, "LFUNC", c.vmst_lfunc);
  set_count(L, "FFUNC", c.vmst_ffunc);
  set_count(L, "CFUNC", c.vmst_cfunc);
  set_count(L, "GC", c.vmst_gc);
  set_count(L, "EXIT", c.vmst_exit);
  set_count(L, "RECORD", c.vmst_record);
  set_count(L, "OPT", c.vmst_opt);
  set_count(L, "ASM", c.vmst_asm);
  set_count(L, "TRACE", c.vmst_trace);
  lua_setfield(L, -2, "vmstate");
  return 1;
}

static const luaL_Reg sysprof_funcs[] = {
  { "start", sysprof_start },
  { "stop", sysprof_stop },
  { "report", sysprof_report },
  { NULL, NULL }
};

static const luaL_Reg misc_funcs[] = {
  { NULL, NULL }
};

LUALIB_API int luaopen_misc(lua_State *L)
{
  luaL_register(L, LUAM_MISCLIBNAME, misc_funcs);
  lua_createtable(L, 0, 3);
  luaL_register(L, NULL, sysprof_funcs);
  lua_setfield(L, -2, "sysprof");
  return 1;
}
