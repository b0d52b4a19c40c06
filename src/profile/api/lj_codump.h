/*
** Coroutine dump of a VM: where every coroutine stands, as text or into a file.
** Context: VM thread, between two bytecodes, outside of the handler.
*/

#ifndef _LJ_CODUMP_H
#define _LJ_CODUMP_H

#include "lj_obj.h"
#include "profile/coroutine/lj_cotext.h"

/* Dump the coroutines of the VM of L. *text is a new string of *len bytes, which the caller frees.
** Returns 0 without memory.
*/
LJ_FUNC int lj_codump_text(lua_State *L, CoFormat format, char **text, size_t *len);

/* Dump the coroutines as text into a new file. how: OUTFILE_*. Returns 1; 0 if the name is taken;
** else -1 and errno. *problem: reason of a refusal, or NULL. A failed dump leaves no file.
*/
LJ_FUNC int lj_codump_file(lua_State *L, const char *path, int how, const char **problem);

#endif
