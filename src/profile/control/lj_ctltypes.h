/*
** VM under remote control: start, stop or dump by a signal, a file, the time or a client.
** Context: as each part says.
*/

#ifndef _LJ_CTLTYPES_H
#define _LJ_CTLTYPES_H

#include <sys/types.h>
#include <time.h>

#include "lj_obj.h"
#include "lmisclib.h"
#include "profile/base/lj_safeload.h"
#include "profile/output/lj_streamfile.h"

/* Limit of VMs under control: (refused) */
#define CONTROLS_MAX 64

/* Requests, a bit mask. */
#define CONTROL_START      1
#define CONTROL_STOP       2
#define CONTROL_TOGGLE     4 /* Start if the profile is stopped, else stop. */
#define CONTROL_DUMP       8
#define CONTROL_COROUTINES 16 /* Dump the coroutines. */
#define CONTROL_OVER       32 /* Complete the profile, if it is over. */
#define CONTROL_LIVE       64 /* Serve a client of live control. */

/* State of a control file, from stat(2). */
typedef struct ControlFile {
  int exists;
  dev_t dev;
  ino_t ino;
  off_t size;
  struct timespec mtime;
} ControlFile;

/* Shared with the handler, which reads it without a lock. VM threads, the handler and the background
** thread write it by atomic instructions.
*/
typedef struct ControlShared {
  global_State *g;              /* The VM, or NULL if the slot is free. Set last. */
  int users;                    /* Handlers that read the VM. */
  int tid;                      /* Thread that last ran the VM, as far as known. */
  uintptr_t stack_lo, stack_hi; /* That thread's C stack, */
  int is_small;                 /* which has no room for a signal. */
  int signo;                    /* Signal that wakes that thread. */
  int is_toggled;         /* The signal toggles the profile if another sender sends it. */
  int dump_signo;         /* Signal that dumps the coroutines, or 0. */
  uint32_t pending;       /* CONTROL_*, not served yet. */
  struct CtlStack *offer; /* For the stack of that thread. Who takes it sets NULL. */
  int asked;              /* The handler has asked for the safe point. */
  int is_over; /* exit() has ended the control; the VM's thread may still use the slot. */
  SafeLoad *peek; /* Of the handler on that thread. Stays when the slot is freed. */
} ControlShared;

/* What the slot was filled with, by a VM thread under the lock of the slots. */
typedef struct ControlWay {
  const char *file;                /* Control file, or NULL. */
  const char *pattern;             /* Pattern of its name, the same in all processes. */
  int is_once;                     /* Time alone controls: one profile. */
  int is_live;                     /* Clients of live control may record it. */
  struct luam_Sysprof_Options opt; /* Options of each start. The slot owns the strings. */
  StreamFileOptions fo;            /* path is a pattern. */
  int number;                      /* Number of the VM in its process. */
  uint32_t process;                /* Process that filled the slot. */
} ControlWay;

/* Written by the VM thread. */
typedef struct ControlRun {
  int runs;        /* Profiles started. */
  int has_ended;   /* A start or an end at its time has the result of the next stop: */
  int status, err; /* PROFILE_*, and errno. */
  int dumps;       /* Dumps of coroutines. The background thread counts late ones, too. */
} ControlRun;

/* Looks of the background thread, under the lock of the slots. */
typedef struct ControlPoll {
  int has_time;      /* There is a start or an end to look after. */
  int watchers;      /* Clients of live control that wait for the VM. */
  uint64_t start_ns; /* When a start is due (CLOCK_MONOTONIC), 0: none. */
  int timer_tid;     /* Thread of the timer; 0: there is none. */
  int refused_polls; /* Polls since the system has refused a timer. */
  timer_t timer;
  ControlFile now;  /* State of the file at the last poll. */
  ControlFile done; /* State of the file when the poll last obeyed it. */
  int polls;        /* Polls that found the file unchanged. */
  int wait, waited; /* Polls between two wake-ups, and polls since the last one. */
  int64_t late_ms;  /* When an unserved dump of coroutines is late (CLOCK_MONOTONIC), */
  struct CtlStack *late; /* and the stack that was offered then. */
} ControlPoll;

/* A VM under remote control. */
typedef struct Control {
  ControlShared sig;
  ControlWay way;
  ControlRun run;
  ControlPoll poll;
} Control;

#endif
