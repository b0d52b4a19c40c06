/*
** Memory of a handler: mappings that a start makes, and the pages that it touches at once.
** Context: any thread, outside of the handler.
*/

#ifndef _LJ_OSMEMORY_H
#define _LJ_OSMEMORY_H

#include "lj_def.h"

#define OSMEMORY_PAGE ((size_t)4096) /* Smallest page size of the platform. */

/* Map zeroed memory. The first bytes of it, touched of them, get their pages now: a page
** fault in the handler costs more than a sample. The rest gets pages at the first write.
** Returns NULL without memory.
*/
LJ_FUNC void *lj_osmemory_new(size_t size, size_t touched);

/* Unmap it. p may be NULL. */
LJ_FUNC void lj_osmemory_free(void *p, size_t size);

/* Give memory its pages now. Changes no byte. */
LJ_FUNC void lj_osmemory_touch(void *p, size_t size);

#endif
