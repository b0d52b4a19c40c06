/*
** Output files of profiles: safe opening in folders that other users can write to.
** Context: any thread, outside of the handler. Maps memory, without malloc().
**
** Other users can write to a folder such as /tmp, or to a folder that they own. There,
** another user may place a link or a file under the profile's name. The profile must not
** follow such a link or fill such a file. So the open walks the path folder by folder, by
** descriptors. It checks each object through the same descriptor that it uses afterwards:
** nobody can exchange the object between check and use.
*/

#ifndef _LJ_OUTFILE_H
#define _LJ_OUTFILE_H

#include <sys/types.h>

#include "lj_def.h"

/* Ways to open a file, a bit mask. */
#define OUTFILE_FORCE   1  /* Accept files that are not profiles, and of other users. */
#define OUTFILE_FOLLOW  2  /* Follow links of other users. */
#define OUTFILE_REGULAR 4  /* Refuse FIFOs and devices. */
#define OUTFILE_NEW     8  /* Create a file. Fail with EEXIST if the name is taken. */
#define OUTFILE_KEEP    16 /* See lj_streamfile_open. */
#define OUTFILE_PLAIN   32 /* The caller has no options force and follow. */

/* Open or create a file to append to. Keeps its content; a new file has mode 0600. Returns
** the descriptor, or -1 and errno. Sets problem to the reason for a refusal, else to NULL.
*/
LJ_FUNC int lj_outfile_open(const char *path, int how, int *created, const char **problem);

/* A file without its name: it gets that when it is whole. */
typedef struct OutTemp {
  int dir, fd; /* Descriptors of its folder, and of itself. */
  char name[256];
  char temp[256]; /* Name until then. */
} OutTemp;

/* Create a file, with mode 0600, beside the path that it will have. There may be an old file only if it
** begins with these 3 bytes. Returns 0 and errno on failure, and problem as above.
*/
LJ_FUNC int lj_outfile_temp(const char *path, const char *begins, OutTemp *t,
			    const char **problem);

/* Open a file to read, with the same rules for links on its path. The last name must not be
** a link. Returns the descriptor, or -1 and errno. Sets problem to the reason if it refuses
** a link, else to NULL. Does not wait for the writer of a FIFO.
*/
LJ_FUNC int lj_outfile_read(const char *path, const char **problem);

/* Expand the pattern of a name: %p is the process, %n the number of the VM, %r the number
** of the run, %t the time, %% a percent sign. Returns 0 if another character follows a %,
** -1 if the name does not fit.
*/
LJ_FUNC int lj_outfile_name(char *name, size_t size, const char *pattern, int number,
			    int run);

/* Remove a file that lj_outfile_open opened, if the path still leads to it. */
LJ_FUNC void lj_outfile_remove(const char *path, int how, dev_t dev, ino_t ino);

#endif
