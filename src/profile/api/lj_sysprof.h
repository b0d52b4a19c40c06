/*
** Sysprof: what can be asked of the profile of a VM, and what LuaJIT tells of the VM.
**
** All runs outside of the handler. A VM is named by its global_State; start and stop,
** and what else is said to be so, run on the thread that runs it.
*/

#ifndef _LJ_SYSPROF_H
#define _LJ_SYSPROF_H

#include "lj_obj.h"
#include "lmisclib.h"

/* What a profile calls; the C API's setters fill one of these. */
typedef struct SysprofCallbacks {
  luam_Sysprof_writer writer;
  luam_Sysprof_on_stop on_stop;
  luam_Sysprof_backtracer backtracer; /* NULL for the built-in one. */
  void (*unasked)(void *ctx); /* Before an end that nobody has asked for, or NULL. */
} SysprofCallbacks;

/* Start profiling a VM that this thread runs. Modes with a stream need a writer and
** an on_stop. Returns a PROFILE_* status and sets errno with PROFILE_ERRIO.
*/
LJ_FUNC int lj_sysprof_start(lua_State *L, const struct luam_Sysprof_Options *opt,
			     const SysprofCallbacks *cb);

/* Stop it. Returns a PROFILE_* status and sets errno with PROFILE_ERRIO. */
LJ_FUNC int lj_sysprof_stop(global_State *g);

/* The calling thread runs the VM from now on. Returns a PROFILE_* status and sets
** errno with PROFILE_ERRIO; profiling goes on without ticks then.
*/
LJ_FUNC int lj_sysprof_moved(global_State *g);

/* Write what there is of its profile so far, so that it can be read; it goes on. On
** the VM's thread. Returns a PROFILE_* status and sets errno with PROFILE_ERRIO.
*/
LJ_FUNC int lj_sysprof_dump(global_State *g);

/* What has to be done once in a process that profiles, or will. By each start itself.
** Returns 0 or an errno.
*/
LJ_FUNC int lj_sysprof_begin(void);

/* Make the helper thread if something needs it, else end it. Returns 0 or an errno. */
LJ_FUNC int lj_sysprof_sethelper(void);

/* Is a VM being profiled? */
LJ_FUNC int lj_sysprof_isrunning(global_State *g);

/* Counters of the profile of a VM, or of the one that was started last if g is
** NULL; running or stopped. On any thread.
*/
LJ_FUNC void lj_report_counters(global_State *g, struct luam_Sysprof_Counters *c);

/* What that profile says about itself. Likewise. */
LJ_FUNC void lj_report_self(global_State *g, struct luam_Sysprof_SelfReport *r);

/* Why the calling thread's last start failed, CLOCK_ERRMSG_MAX bytes: for the start
** to write, "" if it succeeds. Not in the handler.
*/
LJ_FUNC char *lj_options_errmsg(void);

/* Are the options of a start possible, but for the names of clocks? If not, the
** reason says why.
*/
LJ_FUNC int lj_options_valid(const struct luam_Sysprof_Options *opt,
			     const SysprofCallbacks *cb);

/* Called by LuaJIT's own code. */
/* The VM is about to be closed. */
LJ_FUNC void lj_vmhooks_close(global_State *g);
/* The Lua stack is being moved (begin = 1), or has been (0). */
LJ_FUNC void lj_vmhooks_stack_move(lua_State *L, int begin);
/* A prototype is about to be freed. */
LJ_FUNC void lj_vmhooks_proto_free(global_State *g, GCproto *pt);
/* A coroutine is about to be freed. */
LJ_FUNC void lj_vmhooks_thread_free(global_State *g, lua_State *L);
/* All machine code is about to be freed (begin = 1), or has been (0). */
LJ_FUNC void lj_vmhooks_code_free(global_State *g, int begin);
/* The VM is at a safe point that was asked for, see lj_safepoint.h. */
LJ_FUNC void lj_vmhooks_safepoint(lua_State *L, int what);

#endif
