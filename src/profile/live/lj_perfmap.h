/*
** Map of compiled code for perf: addresses and names of traces, as /tmp/perf-PID.map has them.
** Context: VM thread, between two bytecodes.
**
** Each line is an address and a size, both hexadecimal, and a name (perf's jit-interface.txt). perf
** reads them for code without a file. The interpreter's own code is in a file, with symbols.
*/

#ifndef _LJ_PERFMAP_H
#define _LJ_PERFMAP_H

#include "lj_obj.h"

/* Write the map of a VM. *text is a new string of *len bytes, which the caller frees. Returns 0
** without memory.
*/
LJ_FUNC int lj_perfmap_text(lua_State *L, char **text, size_t *len);

#endif
