/*
** Text for a terminal: without control and hidden characters, and invalid UTF-8.
** Context: any thread, outside of the handler.
*/

#ifndef _LJ_CLEANTEXT_H
#define _LJ_CLEANTEXT_H

#include <stddef.h>

#include "lj_def.h"

/* Copy text in a printable form: control characters, and those that show nothing or change the
** direction of text, become '?'. Invalid UTF-8 becomes "\xNN". Cuts what does not fit into size bytes.
*/
LJ_FUNC void lj_cleantext(char *to, size_t size, const char *s, size_t len);

#endif
