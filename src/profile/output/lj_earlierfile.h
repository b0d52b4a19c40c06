/*
** Profiles of this process by earlier programs, before exec(), and by other copies of the library.
** Context: any thread, outside of the handler. Maps memory, without malloc().
**
** exec() replaces the program, but keeps the process and its number. The environment names the same
** file again, so the new program would replace the profile of the one before. A program may load two
** copies of the library. Each counts its VMs, so both choose the same name.
*/

#ifndef _LJ_EARLIERFILE_H
#define _LJ_EARLIERFILE_H

#include <sys/stat.h>

#include "lj_def.h"

/* Is the file at this path a profile of this process? The caller knows that this copy of the library
** did not write it. st: the file that the path must lead to. with_sample: only with a sample. If in doubt,
** no.
*/
LJ_FUNC int lj_earlierfile_is(const char *path, const struct stat *st, int with_sample);

#endif
