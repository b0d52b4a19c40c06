/*
** Control slots: which VMs a signal or a file controls.
** Context: VM thread | poll: background thread | fork, end: under the lock of lj_process.h.
**
** A request comes in a signal handler or in the background thread. It is noted in the
** slot, and the thread that runs the VM is asked for a safe point; there lj_control serves
** it. The handler reads slots without a lock, and counts itself in one while it reads the
** VM.
*/

#ifndef _LJ_CTLSLOT_H
#define _LJ_CTLSLOT_H

#include "profile/control/lj_ctltypes.h"

/* What a slot is filled with. */
typedef struct ControlOptions {
  int signo;        /* The signal that toggles, or 0: */
  const char *file; /* the absolute path of a control file, a pattern. */
  int number;       /* Of the VM in its process. */
  const struct luam_Sysprof_Options *opt;
  const StreamFileOptions *fo;
} ControlOptions;

/* Have a VM of this thread controlled. Strings are copied. Returns NULL, or the reason why
** it cannot, the end of a sentence.
*/
LJ_FUNC const char *lj_ctlslot_add(global_State *g, const ControlOptions *co);

/* The slot of a VM, or NULL. */
LJ_FUNC Control *lj_ctlslot_of(const global_State *g);

/* The calling thread runs the VM from now on. */
LJ_FUNC void lj_ctlslot_moved(global_State *g);

/* Is there a control file to poll? */
LJ_FUNC int lj_ctlslot_hasfile(void);

/* Poll the control files. */
LJ_FUNC void lj_ctlslot_poll(void);

/* End the control of a VM. Returns 1 if it had a control file. */
LJ_FUNC int lj_ctlslot_close(global_State *g);

/* End the control of all VMs. */
LJ_FUNC void lj_ctlslot_end(void);

/* In a child of fork() by the thread forked, or 0: only those VMs go on whose children
** are to be profiled.
*/
LJ_FUNC void lj_ctlslot_fork(int forked);

#endif
