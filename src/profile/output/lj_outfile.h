/*
** Files that profiles are written into: opens them, or says why not.
**
** A profile may go into a folder that other users may write to: everybody, as into
** /tmp, or its owner, if that is neither root nor the user of this process. What
** another user has put there under the profile's name must not lead it to another
** place, nor be filled with it. So a path is walked folder by folder, by
** descriptors, and what it leads to is judged by the descriptor that is used
** afterwards: nothing can be exchanged between the look and the use. Runs outside of
** the handler; allocates nothing.
*/

#ifndef _LJ_OUTFILE_H
#define _LJ_OUTFILE_H

#include <sys/types.h>

#include "lj_def.h"

/* How a file is opened, bits. */
#define OUTFILE_FORCE   1 /* Also one that is there and is no profile. */
#define OUTFILE_FOLLOW  2 /* By links of other users, too. */
#define OUTFILE_REGULAR 4 /* No FIFO or device. */

/* Open or create a file to append to; a new one is its owner's only. What it holds
** is kept. Returns the descriptor, or -1: errno, and problem if that does not say
** it all, else NULL.
*/
LJ_FUNC int lj_outfile_open(const char *path, int how, int *created, const char **problem);

/* Open a file to read, by the same rules for links on its path; its last name is no
** link. Returns the descriptor, or -1: errno, and problem if a link is refused, else
** NULL. Does not wait for the writer of a FIFO.
*/
LJ_FUNC int lj_outfile_read(const char *path, const char **problem);

/* The name that a pattern stands for: %p is the process, %n the number of the VM, %r
** that of the run, %t the time, %% a percent sign. Returns 0 if a % is followed by
** something else, -1 if it does not fit.
*/
LJ_FUNC int lj_outfile_name(char *name, size_t size, const char *pattern, int number,
			    int run);

/* Remove a file that was opened so, if it is the one that path leads to. */
LJ_FUNC void lj_outfile_remove(const char *path, int how, dev_t dev, ino_t ino);

#endif
