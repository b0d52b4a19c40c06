/*
** Small text files of /proc, read at once.
** Context: handler or any thread. Async-signal-safe; may change errno.
*/

#ifndef _LJ_PROCFILE_H
#define _LJ_PROCFILE_H

#include <sys/types.h>

#include "lj_def.h"

/* Read the beginning of a file into text[size], with a NUL after it. Returns the length,
** or -1 and errno.
*/
LJ_FUNC ssize_t lj_procfile_read(const char *path, char *text, size_t size);

/* The same of /proc/self/task/TID/NAME. name has at most PROCFILE_NAME_MAX bytes. */
LJ_FUNC ssize_t lj_procfile_task(int tid, const char *name, char *text, size_t size);

/* Open /proc/self/task/TID/NAME for pread(). Returns a descriptor, or -1 and errno. */
LJ_FUNC int lj_procfile_taskopen(int tid, const char *name);

#define PROCFILE_NAME_MAX 16

#endif
