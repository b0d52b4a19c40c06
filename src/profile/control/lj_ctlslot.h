/*
** Control slots: which VMs a signal or a file controls.
** Context: VM thread | poll: background thread | fork, end: under the lock of lj_process.h.
**
** A request arrives in a signal handler or in the background thread, which note it in the
** slot. They ask the VM thread for a safe point, where lj_control serves the request. The
** handler reads slots without a lock. It increments the slot's users while it reads the VM.
*/

#ifndef _LJ_CTLSLOT_H
#define _LJ_CTLSLOT_H

#include "profile/control/lj_ctltypes.h"
#include "profile/coroutine/lj_cowait.h"
#include "profile/sample/lj_profileopts.h"

/* Options of a VM under control. A signal, a file, a client or, without these, the time controls it: the
** time for one profile.
*/
typedef struct ControlOptions {
  int is_live;      /* Clients of live control may record the VM. */
  int signo;        /* Signal that toggles the profile, or 0. */
  const char *file; /* Absolute path of a control file, a pattern, or NULL. */
  int dump_signo;   /* Signal that dumps the coroutines, or 0. */
  int number;       /* Number of the VM in its process. */
  const struct luam_Sysprof_Options *opt;
  const StreamFileOptions *fo;
} ControlOptions;

/* Put a VM of this thread under control. Copies the strings. Returns NULL, or the reason of
** a failure: the end of a sentence.
*/
LJ_FUNC const char *lj_ctlslot_add(global_State *g, const ControlOptions *co);

/* Let clients of live control record a VM of this thread. Returns as lj_ctlslot_add does. */
LJ_FUNC const char *lj_ctlslot_addlive(global_State *g);

/* A VM that clients may record. */
typedef struct LiveVm {
  global_State *g;
  int number;
  VmThread thread; /* That last ran it, as far as known. */
} LiveVm;

/* List these VMs into vms[CONTROLS_MAX]. Returns their number. Under the lock of lj_process.h: a VM
** does not close meanwhile.
*/
LJ_FUNC int lj_ctlslot_lives(LiveVm *vms);

/* May clients record a VM? */
LJ_FUNC int lj_ctlslot_haslive(void);

/* Ask a VM of that list to serve the clients that wait for it at its safe point. */
LJ_FUNC void lj_ctlslot_asklive(const global_State *g);

/* Add 1 or -1 to the clients that wait for a VM of that list. While there are some, a timer of the
** thread's CPU time makes the VM serve requests. The last client takes the request back.
*/
LJ_FUNC void lj_ctlslot_watch(const global_State *g, int more);

/* Return the slot of a VM, or NULL. */
LJ_FUNC Control *lj_ctlslot_of(const global_State *g);

/* A start after a delay, or an end, is to be looked after, or not any more. VM thread. */
LJ_FUNC void lj_ctlslot_settime(Control *c, int has_time);

/* Start a profile after a delay. VM thread. */
LJ_FUNC void lj_ctlslot_startin(Control *c, uint64_t delay_ns);

/* Has a start after a delay not been served yet? VM thread. */
LJ_FUNC int lj_ctlslot_isdue(const Control *c);

/* Forget a start after a delay. Returns 0 if there is none. VM thread. */
LJ_FUNC int lj_ctlslot_cancel(Control *c);

/* Take the requests, a bit mask, to serve them. A start or a stop ends a delay. VM thread. */
LJ_FUNC uint32_t lj_ctlslot_take(Control *c);

/* A VM's profile is over: ask the VM to complete it. Any thread. */
LJ_FUNC void lj_ctlslot_over(global_State *g);

/* The calling thread runs the VM from now on. */
LJ_FUNC void lj_ctlslot_moved(global_State *g);

#define LATEDUMP_PLACES 64

/* A dump of coroutines that the VM has not served for a second. */
typedef struct LateDump {
  /* The name of its file. */
  char *pattern; /* Of any length. */
  int number, is_child, how;
  int *dumps; /* Files so far. */
  /* What is known. */
  struct CtlStack *stack; /* Of the VM's thread; NULL: it did not take the signal. */
  int has_known;          /* The event coroutine-wait runs. */
  uint32_t nplace, nmore; /* Places below, and coroutines elsewhere. */
  struct {
    char name[COWAIT_PLACE];
    uint32_t n; /* Coroutines that wait there. */
  } place[LATEDUMP_PLACES];
} LateDump;

/* Is there a control file, or a signal for dumps, to look after? */
LJ_FUNC int lj_ctlslot_haspoll(void);

/* Poll the control files. Returns a dump that is late, or NULL. The caller frees it. */
LJ_FUNC LateDump *lj_ctlslot_poll(void);

LJ_FUNC void lj_ctlslot_latefree(LateDump *ld);

/* Is this process a child of the one that filled the slot? */
LJ_FUNC int lj_ctlslot_ischild(const Control *c);

/* End the control of a VM. Returns 1 if the VM was under control. */
LJ_FUNC int lj_ctlslot_close(global_State *g);

/* End the control of all VMs at exit(). The slots stay: other threads may be serving them. */
LJ_FUNC void lj_ctlslot_end(void);

/* Adapt the slots in a child of fork(). forked: the thread that called fork(), or 0. Keeps
** only VMs of that thread, and only if their children are profiled. These keep their delays, and the
** requests of a file that is also theirs.
*/
LJ_FUNC void lj_ctlslot_fork(int forked);

#endif
