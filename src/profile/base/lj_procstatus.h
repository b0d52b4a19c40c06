/*
** Numbers in /proc/self/task/TID/status, see proc(5).
** Context: any thread, not the handler.
*/

#ifndef _LJ_PROCSTATUS_H
#define _LJ_PROCSTATUS_H

#include "lj_def.h"

typedef struct StatusField {
  const char *key; /* "\nNAME:\t". Its line has at most PROCSTATUS_LINE bytes. */
  int base;        /* Of the number: 10 or 16. */
  int is_there;    /* The line was found. */
  uint64_t number;
} StatusField;

/* Limit of a line of a thread's status, in bytes: (not known) */
#define PROCSTATUS_LINE 256

/* Find n fields in one reading. Takes less than 500 bytes of the stack. Returns 0 and sets errno if
** the file cannot be read: ENOENT or ESRCH if the thread has ended.
*/
LJ_FUNC int lj_procstatus_read(int tid, StatusField *field, int n);

#endif
