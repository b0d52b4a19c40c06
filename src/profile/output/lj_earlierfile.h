/*
** Profiles of earlier programs of this process, before exec().
** Context: any thread, outside of the handler. Maps memory, without malloc().
**
** exec() replaces the program, but keeps the process and its number. The environment names the same
** file again, so the new program would replace the profile of the one before.
*/

#ifndef _LJ_EARLIERFILE_H
#define _LJ_EARLIERFILE_H

#include <sys/stat.h>

#include "lj_def.h"

/* Note that the program runs, before its first profile. Later calls do nothing. */
LJ_FUNC void lj_earlierfile_begin(void);

/* Did an earlier program of this process write the profile at this path, with a sample? st: the file
** that the path must lead to. If in doubt, no.
*/
LJ_FUNC int lj_earlierfile_is(const char *path, const struct stat *st);

#endif
