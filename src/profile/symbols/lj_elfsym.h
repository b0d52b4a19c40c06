/*
** ELF symbols: names of host addresses, from the symbol tables of loaded objects.
** Context: VM thread, outside of the handler.
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

/* Call found for each of n addresses that a symbol of a loaded object covers. The name is valid
** during the call. Returns 0 without memory.
*/
LJ_FUNC int lj_elfsym_find(const uintptr_t *addr, size_t n,
			   void (*found)(void *ctx, uintptr_t addr, const char *name),
			   void *ctx);

#endif
