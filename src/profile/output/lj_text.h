/*
** Texts that are made in memory and written as a whole.
** Context: any thread, outside of the handler.
*/

#ifndef _LJ_TEXT_H
#define _LJ_TEXT_H

#include <stdio.h>

#include "lj_def.h"

/* Make a text by a function. *text is a new string of *len bytes, which the caller frees. Returns 0
** without memory; then *text is NULL.
*/
LJ_FUNC int lj_text_make(void (*put)(FILE *f, void *what), void *what, char **text,
			 size_t *len);

/* Write all of a text. Returns 0 and sets errno on failure. */
LJ_FUNC int lj_text_write(int fd, const char *s, size_t len);

#endif
