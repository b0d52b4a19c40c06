/*
** Labels of coroutines for Lua: misc.sysprof.label, misc.sysprof.labelset.
** Context: VM thread.
**
** A set of labels is a userdata with its bytes. There is one for each set: a table with weak values
** has them by the number of the set. Both functions raise an error on a wrong argument.
*/

#ifndef _LJ_LABELAPI_H
#define _LJ_LABELAPI_H

#include "lj_obj.h"

/* Set the functions in the table on the top of the stack. */
LJ_FUNC void lj_labelapi_open(lua_State *L);

/* Return a handle for C code of a set that is held for it. 0: no labels. */
LJ_FUNC uint32_t lj_labelapi_lend(lua_State *L, uint32_t number);

/* Return the set of a handle. Returns 0 if the VM has no such set. */
LJ_FUNC int lj_labelapi_number(lua_State *L, uint32_t handle, uint32_t *number);

/* Take a handle back. Returns 0 if C code has none of this set. */
LJ_FUNC int lj_labelapi_release(lua_State *L, uint32_t handle);

#endif
