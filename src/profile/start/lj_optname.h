/*
** Names of options: search, list, and the one that a user probably meant.
** Context: any thread, outside of the handler.
*/

#ifndef _LJ_OPTNAME_H
#define _LJ_OPTNAME_H

#include "lj_obj.h"
#include "profile/start/lj_opttable.h"

/* Return the option with this name, if it may be given in one of the places (OPTION_LUA, _ENV,
** _LIVE), else NULL.
*/
LJ_FUNC const OptionSpec *lj_optname_find(const char *s, size_t len, int where);

/* Return the option of these places that a wrong name probably means, or NULL: by another word
** for it, by few wrong letters, or because one name is short for the other.
*/
LJ_FUNC const OptionSpec *lj_optname_meant(const char *s, size_t len, int where);

/* Write the names of the options of these places, with commas between, as far as there is room.
** Returns the bytes written, without the NUL.
*/
LJ_FUNC size_t lj_optname_list(char *to, size_t size, int where);

#endif
