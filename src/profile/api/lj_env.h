/*
** Environment variable LUAJIT_SYSPROF: profiles a program without changing it.
** Context: VM thread that opens the libraries, outside of the handler.
*/

#ifndef _LJ_ENV_H
#define _LJ_ENV_H

#include "lj_obj.h"

/* Start a profile of the VM if the variable asks for one. start: misc.sysprof.start.
** Reports failures on standard error. Raises no error and keeps the Lua stack. A second
** call for the same VM does nothing.
*/
LJ_FUNC void lj_env_start(lua_State *L, lua_CFunction start);

#endif
