/*
** Option table of misc.sysprof.start: turns a Lua table into options of the C API.
** Context: VM thread, outside of the handler.
**
** Checks types and ranges by lj_opttable.h. lj_clockspec checks the names of clocks, and
** lj_options the signal.
*/

#ifndef _LJ_LUAOPTS_H
#define _LJ_LUAOPTS_H

#include "lj_obj.h"
#include "lmisclib.h"
#include "profile/start/lj_opttable.h"
#include "profile/output/lj_streamfile.h"

/* Read the table at stack index 1. Its strings stay on the stack: the options point to
** them. where: the table may have options of these places (OPTION_LUA, OPTION_ENV); the
** caller takes those of the variable. Returns 0 if index 1 is not a table, a key is unknown,
** or a value has a wrong type or is out of range; then lj_options_errmsg says which. May raise
** errors of metamethods.
*/
LJ_FUNC int lj_luaopts_read(lua_State *L, int where, struct luam_Sysprof_Options *opt,
			    StreamFileOptions *fo);

/* Does an option accept the value on the top of the stack? */
LJ_FUNC int lj_luaopts_accepts(lua_State *L, const OptionSpec *o);

#endif
