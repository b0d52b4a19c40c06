/*
** Options of the Lua API: those of the C API and of the file, read from a table.
** Knows types and ranges; what a clock or a signal can be is known elsewhere.
*/

#ifndef _LJ_LUAOPTS_H
#define _LJ_LUAOPTS_H

#include "lj_obj.h"
#include "lmisclib.h"
#include "profile/output/lj_streamfile.h"

/* Read the table that is L's first argument. Strings stay on the stack, as long as
** they are used. Returns 0 if there is none, or a value is of a wrong type or out
** of range. May raise errors of metamethods.
*/
LJ_FUNC int lj_luaopts_read(lua_State *L, struct luam_Sysprof_Options *opt,
			    StreamFileOptions *fo);

/* Number of a signal by its name, as "SIGUSR2" or "SIGRTMIN+3"; or 0. */
LJ_FUNC int lj_luaopts_signal(const char *name);

#endif
