/*
** Loader of unwind rows: the module of libunwind, and the objects that it reads.
** Context: under the lock, on any thread, outside of the handler.
**
** The module computes rows by section .debug_frame, which our own tables do not have. The
** rows go to lj_rowtab. The loader reads each file once, and never forgets it.
*/

#ifndef _LJ_ROWLOAD_H
#define _LJ_ROWLOAD_H

#include "lj_def.h"

/* Load the module once, and the rows of all objects. Returns 0 without the module, with the
** reason in errmsg of size bytes.
*/
LJ_FUNC int lj_rowload_begin(char *errmsg, size_t size);

/* Load the rows of the objects that the program has loaded since. */
LJ_FUNC void lj_rowload_look(void);

#endif
