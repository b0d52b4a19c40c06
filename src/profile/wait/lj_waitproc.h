/*
** What /proc tells about a thread that waits: switches, run queue, system call.
** Context: under the lock, on any thread, outside of the handler.
*/

#ifndef _LJ_WAITPROC_H
#define _LJ_WAITPROC_H

#include "lj_def.h"
#include "profile/capture/lj_walkregs.h"

/* Figures of /proc/TID/schedstat (Documentation/scheduler/sched-stats.rst). */
typedef struct WaitSched {
  uint64_t ready_ns; /* Time on the run queue, without a processor. */
  uint64_t runs;     /* How often the thread has got a processor. */
} WaitSched;

/* Returns 0 if the kernel does not tell. */
LJ_FUNC int lj_waitproc_sched(int tid, WaitSched *ws);

/* Figures of /proc/TID/status, see proc(5). */
typedef struct WaitLeft {
  uint64_t waits; /* How often the thread has left its processor to wait. */
  int is_asleep;  /* It has not come back from the last wait. */
} WaitLeft;

/* Returns 0, and leaves *left, if the thread has ended. */
LJ_FUNC int lj_waitproc_left(int tid, WaitLeft *left);

typedef enum WaitPlaceKind {
  WAITPLACE_CALL,    /* The thread sleeps in a system call. */
  WAITPLACE_FAULT,   /* It sleeps because of a page fault. */
  WAITPLACE_RUNNING, /* It can run. */
  WAITPLACE_HIDDEN   /* The kernel does not tell, or the thread has ended: see errno. */
} WaitPlaceKind;

/* File that tells where a thread sleeps. The files of some threads stay open: to open one takes
** longer than to read it, up to 60 us on virtual machines. The other descriptors are the program's.
** Clear it before use.
*/
typedef struct WaitPlaceFile {
  struct WaitPlaceFile *next; /* In the list of all. */
  int fd1;                    /* Descriptor plus one, 0: it is not open. */
  uint64_t dev, ino;          /* The program may have closed it, and opened another file. */
} WaitPlaceFile;

/* Read where a thread sleeps: stack pointer and PC into regs, the number of the system call
** into *nr. It may change at once. Under the lock.
*/
LJ_FUNC WaitPlaceKind lj_waitproc_place(WaitPlaceFile *pf, int tid, uint32_t *nr,
					WalkRegs *regs);
LJ_FUNC void lj_waitproc_close(WaitPlaceFile *pf);

/* In a child of fork(): close all files. */
LJ_FUNC void lj_waitproc_forget(void);

#endif
