/*
** Process-wide state of the profiler: lock, fork, exit, work of the background thread.
** Context: any thread, outside of the handler | under the lock where a function says so.
**
** One lock protects all profiles. Start, stop, report and the scans of the background
** thread take it. Handlers never take it. Of the VM hooks, only close and safepoint take it.
** The background thread tries to take it and never waits. The lock is recursive, because a
** callback may use the API.
*/

#ifndef _LJ_PROCESS_H
#define _LJ_PROCESS_H

#include "lj_obj.h"
#include "profile/session/lj_vmprofile.h"

/* Tenants of the process, such as remote control and live control. Each function but needed may be
** NULL.
*/
typedef struct ProcessTenant {
  int (*needed)(void);  /* True if it needs the background thread. Under the lock. */
  void (*look)(void);   /* At each look. Background thread, without the lock. */
  int (*is_idle)(void); /* True if no look is due; prepares a wait. Under the lock. */
  int (*wait)(void);    /* Waits, see BgWork.rest. Background thread, without the lock. */
  void (*rouse)(void);  /* End a wait, or the next one. */
  void (*over)(global_State *g); /* A VM's profile takes no more samples. Under the lock. */
  void (*moved)(global_State *g); /* The calling thread runs the VM from now on. */
  void (*forked)(int forked); /* In a child: thread that forked, or 0. Under the lock. */
  void (*ended)(void);        /* The background thread has ended. Under the lock. */
  void (*exit)(void);         /* The process ends. Under the lock. */
} ProcessTenant;

/* Take the lock. In a new child process, drops the parent's profiles first. Until unlock, the
** thread cannot be cancelled.
*/
LJ_FUNC void lj_process_lock(void);
LJ_FUNC void lj_process_unlock(void);

/* Take the lock, or return 0 if another thread holds it. Not in the handler. */
LJ_FUNC int lj_process_trylock(void);

/* In a new child process: drop the parent's profiles. For callers that do not take the lock. */
LJ_FUNC void lj_process_settle(void);

/* Prepare the process for a profile or the control of a VM: install the handlers of fork() and
** exit(). Takes the lock. Returns NULL, or the reason of a failure and its errno. EINVAL: lua_close is
** closing the VM.
*/
LJ_FUNC const char *lj_process_begin(const global_State *g);

/* Add a tenant, once. Under the lock. */
LJ_FUNC void lj_process_addtenant(const ProcessTenant *tenant);

/* The calling thread runs the VM from now on. */
LJ_FUNC void lj_process_moved(global_State *g);

/* Start the background thread if a profile or control needs it, else end it. Takes
** the lock. Returns 0 or an errno.
*/
LJ_FUNC int lj_process_setthread(void);

/* Find objects that the program has loaded or unloaded, unless another thread holds the lock. */
LJ_FUNC void lj_process_objects(void);

/* Start a profile with the options that are set. Returns a PROFILE_* status; without
** success sets errno, and errmsg[EVENT_ERRMSG_MAX] if that does not say it all. Under the lock.
*/
LJ_FUNC int lj_process_start(Profile *p, char *errmsg);

/* Stop a running profile. Returns a PROFILE_* status and sets errno. Under the lock. */
LJ_FUNC int lj_process_stop(Profile *p);

/* End the samples of a running profile. Its VM completes the profile later. Under the lock. */
LJ_FUNC void lj_process_over(Profile *p);

/* End a profile because its VM or the process ends: stop it if it runs, drop it if a fork
** inherited it. Returns no status, since nobody could read it. Under the lock.
*/
LJ_FUNC void lj_process_close(Profile *p);

#endif
