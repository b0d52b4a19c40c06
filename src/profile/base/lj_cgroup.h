/*
** Control groups of the process, see cgroups(7): their folders, and numbers in their files.
** Context: under the lock, on any thread, outside of the handler.
*/

#ifndef _LJ_CGROUP_H
#define _LJ_CGROUP_H

#include "lj_def.h"

/* Call look for the process's group of a controller, and for those above it, until look returns 1:
** of version 1 or 2, under /sys/fs/cgroup. name: of the controller in version 1. look may be called
** for folders that do not exist. May change errno.
*/
LJ_FUNC void lj_cgroup_each(const char *name, int (*look)(void *ctx, const char *folder),
			    void *ctx);

/* Read the beginning of a file of a group. Returns NULL if it cannot be read. The next call replaces
** the text.
*/
LJ_FUNC const char *lj_cgroup_read(const char *folder, const char *file);

/* The number of a line "KEY NUMBER", 0 without such a line. */
LJ_FUNC uint64_t lj_cgroup_number(const char *text, const char *key);

#endif
