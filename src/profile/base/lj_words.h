/*
** Words that users probably mean: few wrong letters, one short for the other, other words.
** Context: any thread, outside of the handler.
*/

#ifndef _LJ_WORDS_H
#define _LJ_WORDS_H

#include <stddef.h>

#include "lj_def.h"

/* Is a word, in any case, in a list with spaces between? */
LJ_FUNC int lj_words_isin(const char *s, size_t len, const char *list);

/* How well a wrong word fits a name: 0 not at all. More counts; of equals, the first name. */
LJ_FUNC int lj_words_fit(const char *s, size_t len, const char *name);

#endif
