/*
** Reading objects of a VM that may be in any state: nothing is believed before it has
** been looked at. Outside of the handler; the VM does not run meanwhile.
*/

#ifndef _LJ_VMREAD_H
#define _LJ_VMREAD_H

#include "lj_obj.h"
#include "profile/base/lj_safeload.h"
#include "profile/symbols/lj_symtab.h"

#define HEAPREAD_PAGES 16384 /* Pages remembered, a power of two. */

/* Zero, but for pk. */
typedef struct HeapRead {
  SafeLoad *pk;
  uint64_t page[HEAPREAD_PAGES]; /* Numbers of readable pages. */
} HeapRead;

/* May memory be read? As lj_safeload_ok, but remembers more pages. */
LJ_FUNC int lj_vmread_ok(HeapRead *r, const void *p, size_t sz);

/* Is an object of sz bytes and a type LJ_T* there? */
LJ_FUNC int lj_vmread_isobj(HeapRead *r, const void *o, size_t sz, uint32_t it);

/* The object of a value. Its pointer may be anything. */
static LJ_AINLINE const void *vmread_obj(cTValue *o)
{
  return (const void *)gcval(o);
}

/* The prototype of a Lua function, not looked at; NULL for other functions and what is
** none.
*/
LJ_FUNC const GCproto *lj_vmread_proto(HeapRead *r, const GCfunc *fn);

/* Is this a prototype, and can the name of its chunk be read? */
LJ_FUNC int lj_vmread_isproto(HeapRead *r, const GCproto *pt);

/* Get the text of a string, cut to SYMTAB_NAME_MAX bytes; empty if it cannot be read. */
LJ_FUNC void lj_vmread_str(HeapRead *r, const GCstr *str, NamePart *name);

#endif
