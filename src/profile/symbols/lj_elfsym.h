/*
** ELF symbols: names of host addresses, from the symbol tables of loaded objects.
** Context: VM thread, while it stops or dumps a profile.
**
** Opens files, maps and allocates memory.
*/

#ifndef _LJ_ELFSYM_H
#define _LJ_ELFSYM_H

#include "profile/format/lj_wbuf.h"

/* Append the symbols of n addresses, which are among size words; the other words are 0.
** The symbols come from the objects that are loaded now, so the caller first brings the
** load map up to date. Returns 0 without memory: then names are missing.
*/
LJ_FUNC int lj_elfsym_put(const uintptr_t *addr, size_t size, size_t n, const DefSink *to);

#endif
