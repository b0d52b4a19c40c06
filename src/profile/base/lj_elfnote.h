/*
** Build-id of a loaded ELF object, by its headers in memory.
** Context: handler. Async-signal-safe.
**
** Another thread may unload the object at any time, so every load goes through lj_safeload.
*/

#ifndef _LJ_ELFNOTE_H
#define _LJ_ELFNOTE_H

#include "lj_def.h"
#include "profile/base/lj_safeload.h"

/* Limit of a build-id, in bytes: (cut) */
#define ELFNOTE_ID_MAX 64

/* Find the build-id in notes: returns its address and stores its length, or returns NULL.
** pk NULL: nobody unmaps the notes.
*/
LJ_FUNC const uint8_t *lj_elfnote_find(SafeLoad *pk, const uint8_t *notes, size_t sz,
				       uint32_t *len);

/* Find the build-id in the notes that n program headers at ph point to. bias: added to
** their addresses. pk NULL: nobody unmaps the object.
*/
LJ_FUNC const uint8_t *lj_elfnote_segments(SafeLoad *pk, const void *ph, uint32_t n,
					   uintptr_t bias, uint32_t *len);

/* Program headers of the object that begins at start, and their number. Returns NULL if
** no ELF header is there.
*/
LJ_FUNC const void *lj_elfnote_headers(SafeLoad *pk, uintptr_t start, uint32_t *n);

/* Difference between an object's addresses in memory and in its program headers. */
LJ_FUNC uintptr_t lj_elfnote_bias(SafeLoad *pk, uintptr_t start, const void *ph,
				  uint32_t n);

#endif
