/*
** Names of the host addresses that were seen, from the symbol tables of what is
** loaded. Only at stop, outside of the handler: opens files, maps and allocates
** memory.
*/

#ifndef _LJ_ELFSYM_H
#define _LJ_ELFSYM_H

#include "profile/symbols/lj_symtab.h"

/* Append the symbols of the addresses seen. They are those of the objects that
** are loaded now, so the load map has to be up to date. Returns 0 if memory ran
** out; names are missing then.
*/
LJ_FUNC int lj_elfsym_put(const Symtab *st, WBuf *wb, DefCommit commit, void *ctx);

#endif
