/*
** Control slot: a VM whose profile a signal or a file starts, stops or dumps.
** Context: as each field says.
*/

#ifndef _LJ_CTLTYPES_H
#define _LJ_CTLTYPES_H

#include <sys/types.h>
#include <time.h>

#include "lj_obj.h"
#include "lmisclib.h"
#include "profile/base/lj_safeload.h"
#include "profile/output/lj_streamfile.h"

#define CONTROLS_MAX 64 /* VMs under control at a time. */

/* Requests, bits. */
#define CONTROL_START  1
#define CONTROL_STOP   2
#define CONTROL_TOGGLE 4 /* The one of these two that applies. */
#define CONTROL_DUMP   8

/* State of a control file, as stat(2) has it. */
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
  int users;          /* Handlers that read the VM. */
  int tid;            /* Thread that was last known to run it, */
  uintptr_t stack_hi; /* and the end of its C stack. */
  int signo;          /* Signal that wakes it. */
  uint32_t pending;   /* CONTROL_*, not served yet. */
  int asked;          /* The safe point has been asked for. */
  SafeLoad peek;      /* Handler only, on that thread. */
  /* Set when the slot is filled. */
  const char *file;                /* Control file, NULL: by the signal. */
  const char *pattern;             /* Its name's pattern, the same in all processes. */
  struct luam_Sysprof_Options opt; /* Of each start; its strings are our own. */
  StreamFileOptions fo;            /* path is a pattern. */
  int number;                      /* Of the VM in its process. */
  uint32_t process;                /* Process that filled the slot. */
  /* By the VM's thread. */
  int runs; /* Profiles started. */
  /* By the background thread. */
  ControlFile now;  /* As the last poll found it, */
  ControlFile done; /* and as it was when it was last obeyed. */
  int polls;        /* Polls that have found it so. */
  int wait, waited; /* Polls until the thread is woken again. */
} Control;

#endif
