/*
** Start of a profile into a file: opens the file, starts, and closes it on failure.
** Context: VM thread, outside of the handler. Takes the lock.
*/

#ifndef _LJ_STARTFILE_H
#define _LJ_STARTFILE_H

#include "lj_obj.h"
#include "lmisclib.h"
#include "profile/output/lj_streamfile.h"

/* Result of a start. */
typedef struct StartResult {
  int status;          /* PROFILE_*. */
  int err;             /* errno of a failure, 0 if there is none. */
  int inuse;           /* Another profile of this process writes into the file. */
  const char *problem; /* What is wrong with the file, the end of a sentence. NULL: the
		       ** file is in order or in use, and lj_options_errmsg may have
		       ** the reason of a failure. */
} StartResult;

/* Start profiling the VM of L into the file of fo. The mode DEFAULT opens no file. Takes
** buffer, session, on_fork and their ctx from the file, not from opt. backtracer: NULL for
** the built-in one. A running profile fails before the file is touched. A failed start
** leaves no new file. Returns 1, or 0 if the start failed.
*/
LJ_FUNC int lj_startfile(lua_State *L, const struct luam_Sysprof_Options *opt,
			 const StreamFileOptions *fo, luam_Sysprof_backtracer backtracer,
			 StartResult *r);

/* Can such a start open its file? Opens it, writes nothing, and leaves no new file. Does not open
** a FIFO, whose reader would see an end. Returns as lj_startfile does.
*/
LJ_FUNC int lj_startfile_check(const struct luam_Sysprof_Options *opt,
			       const StreamFileOptions *fo, StartResult *r);

#endif
