/*
** Sysprof: profiles that the environment asks for, by LUAJIT_SYSPROF. Runs on the
** thread that opens the libraries of a VM, outside of the handler.
*/

#ifndef _LJ_ENV_H
#define _LJ_ENV_H

#include "lj_obj.h"

/* Start a profile of the VM by start, which is misc.sysprof.start, if the
** environment says so. What hinders it is told on standard error. Raises no
** error, leaves the stack as it is, and does so once for a VM.
*/
LJ_FUNC void lj_env_start(lua_State *L, lua_CFunction start);

#endif
