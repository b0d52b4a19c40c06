/*
** Coroutine dump of a VM: where every coroutine stands, as text or into a file.
** Context: VM thread, between two bytecodes, outside of the handler.
*/

#ifndef _LJ_CODUMP_H
#define _LJ_CODUMP_H

#include "lj_obj.h"
#include "profile/control/lj_ctlslot.h"
#include "profile/coroutine/lj_cotext.h"

/* Dump the coroutines of the VM of L. *text is a new string of *len bytes, which the caller frees.
** Returns 0 without memory.
*/
LJ_FUNC int lj_codump_text(lua_State *L, CoFormat format, char **text, size_t *len);

/* Write what is known of a VM that does not serve a dump. *text is as above. Any thread. */
LJ_FUNC int lj_codump_late(const LateDump *ld, char **text, size_t *len);

/* Write a text into a new file. how: OUTFILE_*. Returns 1; 0 if the name is taken; else -1 and
** errno. *problem: reason of a refusal, or NULL. A failure leaves no file. Any thread.
*/
LJ_FUNC int lj_codump_file(const char *path, int how, const char *text, size_t len,
			   const char **problem);

#endif
