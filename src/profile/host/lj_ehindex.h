/*
** Unwind table index for a program without one, such as `gcc -static` links it.
** Context: VM thread, under the lock.
**
** Such a program has a section .eh_frame, but no header with a sorted index. Nor does a
** segment name the section. The first start finds it by /proc/self/exe, reads it in
** memory and sorts its entries. The index is never freed.
*/

#ifndef _LJ_EHINDEX_H
#define _LJ_EHINDEX_H

#include "lj_def.h"

/* Make the index if the program needs one; once, before the first sample. Without
** memory or file the program's frames stay without unwind information.
*/
LJ_FUNC void lj_ehindex_warmup(void);

#endif
