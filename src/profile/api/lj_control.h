/*
** Control of VMs while they run: a signal, or a file, starts and stops a profile, and
** has written what there is of it.
**
** A request comes in a signal handler or in the helper thread. It is noted, and the
** VM's safe point asked for, on the thread that runs the VM; there it is served,
** outside of the handler. A VM under control has a slot. The handler reads slots
** without a lock, and counts itself in one while it looks at the VM.
*/

#ifndef _LJ_CONTROL_H
#define _LJ_CONTROL_H

#include <sys/types.h>

#include "lj_obj.h"
#include "lmisclib.h"
#include "profile/api/lj_luaopts.h"
#include "profile/base/lj_safeload.h"

#define CONTROLS_MAX 64 /* VMs under control at a time. */

/* What is asked for, bits. */
#define CONTROL_START  1
#define CONTROL_STOP   2
#define CONTROL_TOGGLE 4 /* The one of these two that applies. */
#define CONTROL_DUMP   8

/* How a control file was found. */
typedef struct ControlFile {
  int exists;
  dev_t dev;
  ino_t ino;
  off_t size;
  struct timespec mtime;
} ControlFile;

typedef struct Control {
  /* Shared with the handler. */
  global_State *g;    /* The VM, NULL: the slot is free. Set last. */
  int users;          /* Handlers that look at the VM. */
  int tid;            /* Thread that was last known to run it, */
  uintptr_t stack_hi; /* and the end of its C stack. */
  int signo;          /* Signal that it is told by. */
  uint32_t pending;   /* CONTROL_*, not served yet. */
  int asked;          /* The safe point has been asked for. */
  SafeLoad peek;      /* Handler only, on that thread. */
  /* Set by the add. */
  const char *file;                /* Control file, NULL: by the signal. */
  const char *pattern;             /* What its name is made of, in each process. */
  struct luam_Sysprof_Options opt; /* Of each start; its strings are our own. */
  LuaOptsFile fo;                  /* path is a pattern. */
  int number;                      /* Of the VM in its process. */
  pid_t pid;                       /* Process that added it. */
  /* By the VM's thread. */
  int runs; /* Profiles started. */
  /* By the helper. */
  ControlFile now;  /* As the last look found it, */
  ControlFile done; /* and as it was when it was last obeyed. */
  int looks;        /* Looks that have found it so. */
  int wait, waited; /* Looks until the thread is told again. */
} Control;

/* Have a VM of this thread controlled. control: a signal as SIGUSR2, or the absolute
** path of a file, a pattern. Returns NULL, or why it cannot be, a sentence's end that is valid
** until the next call of this thread.
*/
LJ_FUNC const char *lj_control_add(lua_State *L, const char *control, int number,
				   const struct luam_Sysprof_Options *opt,
				   const LuaOptsFile *fo);

/* Start a profile of a VM that was added. Returns as that. */
LJ_FUNC const char *lj_control_start(lua_State *L);

/* Serve what was asked for: at the VM's safe point. */
LJ_FUNC void lj_control_serve(lua_State *L);

/* The calling thread runs the VM from now on. */
LJ_FUNC void lj_control_moved(global_State *g);

/* Is there a control file to be looked at? */
LJ_FUNC int lj_control_isfile(void);
/* Look at them, by the helper. */
LJ_FUNC void lj_control_look(void);

/* End the control of a VM, of all VMs. */
LJ_FUNC void lj_control_close(global_State *g);
LJ_FUNC void lj_control_end(void);

/* In a child of fork() by the thread forked, or 0: only those VMs go on whose
** children are to be profiled.
*/
LJ_FUNC void lj_control_fork(int forked);

/* -- Its parts --------------------------------------------------------------- */

LJ_DATA Control lj_controls[CONTROLS_MAX];

/* Install the handler of a signal. Returns NULL, or why it cannot be. */
LJ_FUNC const char *lj_ctlsig_install(int signo);
/* Put the program's action back, unless a slot uses the signal. */
LJ_FUNC void lj_ctlsig_restore(int signo);
/* Have the VM's thread look at what is pending. */
LJ_FUNC void lj_ctlsig_tell(const Control *c);

/* What is wrong with a control file: NULL if nothing, or if there is none. */
LJ_FUNC const char *lj_ctlfile_begin(Control *c);
/* Look at it, and at whether what it has asked for was heard. */
LJ_FUNC void lj_ctlfile_look(Control *c);

#endif
