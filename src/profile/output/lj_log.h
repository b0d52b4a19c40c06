/*
** Messages on standard error, for profiles that LUAJIT_SYSPROF starts.
** Context: any thread, outside of the handler.
**
** Each line begins with the name of the variable. Programs that use an API get their
** messages as results instead.
*/

#ifndef _LJ_LOG_H
#define _LJ_LOG_H

#include <sys/types.h>

#include "lj_def.h"

#define LOG_NAME "LUAJIT_SYSPROF"
/* Limit of a line of the log, in bytes: (cut) */
#define LOG_MAX         1024
#define LOG_PROBLEM_MAX (LOG_MAX / 2) /* Bytes of a problem in a line. */

/* Record the identity of standard error, when a VM begins. If the program closes standard
** error later, no message goes into the file that gets its descriptor.
*/
LJ_FUNC void lj_log_begin(void);

/* Write one line. The text follows the name of the variable. */
LJ_FUNC void lj_say(const char *format, ...);

/* Report that the file of a profile is incomplete, a few times in a process. ending:
** what follows the path in its name.
*/
LJ_FUNC void lj_log_cut(const char *path, const char *ending, int err);

/* Report once that the VM thread writes the profile, since the background thread did not
** start.
*/
LJ_FUNC void lj_log_nothread(int err);

#endif
