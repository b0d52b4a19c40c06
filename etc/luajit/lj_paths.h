/*
** Default module paths, relative to the executable or shared library.
** Context: any thread that opens the libraries of a VM.
**
** The compiler fixes LuaJIT's own defaults. Here the search for jit.* and sysprof.*
** starts at the executable or shared library itself. So the build folder, any install
** prefix and a moved copy work without environment variables. The other defaults stay:
** a LuaJIT that replaces the distribution's finds the distribution's Lua modules.
**
** The build includes this file before lib_package.c only (see GNUmakefile). It keeps no
** state.
*/

#ifndef _LJ_PATHS_H
#define _LJ_PATHS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lua.h"

/* Folder of jit/ and sysprof/ below a prefix. */
#define PATHS_DIR "/share/luajit-2.1"

/* File name of the object that contains this code, without symbolic links. */
static int paths_self(char *buf)
{
#if defined(__PIC__) && !defined(__PIE__)
  static const char here;
  Dl_info info;
  return dladdr(&here, &info) && realpath(info.dli_fname, buf) != NULL;
#else
  ssize_t len = readlink("/proc/self/exe", buf, PATH_MAX - 1);
  if (len <= 0) return 0;
  buf[len] = '\0';
  return 1;
#endif
}

/* Find the prefix: the nearest folder above us that holds our Lua modules. */
static int paths_prefix(char *prefix)
{
  static const char probe[] = PATHS_DIR "/jit/vmdef.lua";
  int up;
  /* These characters mean something else in a path. */
  if (!paths_self(prefix) || strpbrk(prefix, ";?") != NULL) return 0;
  for (up = 0; up < 4; up++) {
    char *slash = strrchr(prefix, '/');
    if (slash == NULL || slash - prefix + sizeof(probe) > PATH_MAX) return 0;
    strcpy(slash, probe);
    if (access(prefix, R_OK) == 0) {
      *slash = '\0';
      return 1;
    }
    *slash = '\0';
  }
  return 0;
}

/* Keep the string on top of the stack alive as long as the VM, and pop it. */
static const char *paths_anchor(lua_State *L, const char *key)
{
  const char *s = lua_tostring(L, -1);
  lua_setfield(L, LUA_REGISTRYINDEX, key);
  return s;
}

/* Does LuaJIT search the Lua folders of this prefix anyway? */
static int paths_known(const char *prefix)
{
  return !strcmp(prefix, LUA_LROOT) || !strcmp(prefix, LUA_JROOT);
}

/* Default of package.path. */
static const char *paths_lua(lua_State *L)
{
  char prefix[PATH_MAX];
  if (!paths_prefix(prefix))
    lua_pushliteral(L, "./?.lua;" LJ_PATHS_SHARE "/?.lua" LUA_LLPATH LUA_RLPATH);
  else if (paths_known(prefix))
    lua_pushfstring(L, "./?.lua;%s" PATHS_DIR "/?.lua" LUA_LLPATH LUA_RLPATH, prefix);
  else
    lua_pushfstring(L,
		    "./?.lua;%s" PATHS_DIR "/?.lua" LUA_LLPATH LUA_RLPATH
		    ";%s/share" LUA_LUADIR "?.lua"
		    ";%s/share" LUA_LUADIR "?/init.lua",
		    prefix, prefix, prefix);
  return paths_anchor(L, "_PATHS_LUA");
}

/* Default of package.cpath. */
static const char *paths_c(lua_State *L)
{
  char prefix[PATH_MAX];
  if (!paths_prefix(prefix) || paths_known(prefix))
    lua_pushliteral(L, "./?.so" LUA_LCPATH1 LUA_RCPATH LUA_LCPATH2);
  else
    lua_pushfstring(
      L, "./?.so" LUA_LCPATH1 LUA_RCPATH ";%s/lib" LUA_LUADIR "?.so" LUA_LCPATH2, prefix);
  return paths_anchor(L, "_PATHS_C");
}

#undef LUA_PATH_DEFAULT
#define LUA_PATH_DEFAULT paths_lua(L)
#undef LUA_CPATH_DEFAULT
#define LUA_CPATH_DEFAULT paths_c(L)

#endif
