/*
** ELF symbols: names of host addresses, from the symbol tables of loaded objects.
** Context: VM thread, outside of the handler.
**
** Opens files, maps and allocates memory.
*/

#ifndef _LJ_ELFSYM_H
#define _LJ_ELFSYM_H

#include "profile/format/lj_wbuf.h"

struct dl_phdr_info; /* Of <link.h>. */

/* What the caller knows of code addresses. */
typedef struct CodeStarts {
  /* Without a symbol: where the function begins, and its size. Returns 0 if that is unknown. */
  int (*find)(void *ctx, uintptr_t addr, uintptr_t *begin, uintptr_t *size);
  void *ctx;
  /* Is an object of dl_iterate_phdr(3) the one that the addresses are of? NULL: all are. */
  int (*has)(void *ctx, const struct dl_phdr_info *info);
} CodeStarts;

/* Append the symbols of n addresses, which are among size words; the other words are 0.
** Without a symbol, append where the function begins, as a symbol without a name. The symbols
** come from the objects that are loaded now, so the caller first brings the load map up to date.
** Returns 0 without memory: then names are missing.
*/
LJ_FUNC int lj_elfsym_put(const uintptr_t *addr, size_t size, size_t n,
			  const CodeStarts *starts, const DefSink *to);

/* Call found for each of n addresses that a symbol of a loaded object covers. The name is valid
** during the call. Returns 0 without memory.
*/
LJ_FUNC int lj_elfsym_find(const uintptr_t *addr, size_t n,
			   void (*found)(void *ctx, uintptr_t addr, const char *name),
			   void *ctx);

#endif
