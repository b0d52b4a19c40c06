/*
** What is said on standard error, of profiles that the environment has asked for: of
** others their programs are told.
**
** A line begins with the name of the variable. Not in the handler; in any thread.
*/

#ifndef _LJ_LOG_H
#define _LJ_LOG_H

#include <sys/types.h>

#include "lj_def.h"

#define LOG_NAME        "LUAJIT_SYSPROF"
#define LOG_MAX         1024          /* Bytes of a line. */
#define LOG_PROBLEM_MAX (LOG_MAX / 2) /* Bytes of a problem that has place in it. */

/* A VM begins: standard error is what it is now. Nothing is written into a file of the
** program that gets its descriptor later.
*/
LJ_FUNC void lj_log_begin(void);

/* Say something in one line. The format goes on behind the name. */
LJ_FUNC void lj_say(const char *format, ...);

/* Say that the file of a profile is not whole, some times in a process. child: the
** process that its name ends with, or 0.
*/
LJ_FUNC void lj_log_cut(const char *path, pid_t child, int err);

/* Say once that the VM writes the profile, because the profiler's thread cannot be made. */
LJ_FUNC void lj_log_nothread(int err);

#endif
