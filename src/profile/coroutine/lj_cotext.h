/*
** Coroutine dump: a list of coroutines as text, JSON or folded stacks.
** Context: ordinary code, not in the handler.
*/

#ifndef _LJ_COTEXT_H
#define _LJ_COTEXT_H

#include <stdio.h>

#include "profile/coroutine/lj_coname.h"

typedef enum CoFormat {
  CO_TEXT,   /* For people: as Go's goroutine dump, grouped. */
  CO_JSON,   /* One object. */
  CO_FOLDED, /* A line for each group: frames, root first, and the number of coroutines. */
  CO_UNKNOWN
} CoFormat;

/* Return the format of this name, or CO_UNKNOWN. */
LJ_FUNC CoFormat lj_cotext_format(const char *name);

/* Write a frame as "name (source:line)". */
LJ_FUNC void lj_cotext_name(FILE *f, const CoName *name);

/* Write a list. The caller checks the file for errors. */
LJ_FUNC void lj_cotext_write(FILE *f, const CoNames *cn, CoFormat format);

#endif
