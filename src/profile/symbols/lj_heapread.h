/*
** Checked reading of a VM's heap: objects, strings, keys of tables.
** Context: VM thread. The VM does not run, but it may be in any state.
*/

#ifndef _LJ_HEAPREAD_H
#define _LJ_HEAPREAD_H

#include "lj_obj.h"
#include "profile/base/lj_safeload.h"
#include "profile/symbols/lj_functab.h"

#define HEAPREAD_PAGES 16384      /* Pages remembered, a power of two. */
#define HEAPREAD_TABLE (1u << 17) /* Slots of one table that are read. */

/* Reader of the VM's memory. Zero, except pk and slots. */
typedef struct HeapRead {
  SafeLoad *pk;
  uint32_t slots;                /* Slots still to be read at most. */
  uint64_t page[HEAPREAD_PAGES]; /* Numbers of readable pages. */
} HeapRead;

/* Key or name that holds a value. A string of the VM is read as late as possible. */
typedef struct HeapKey {
  const GCstr *str; /* NULL if the name is known, or empty. */
  NamePart name;
} HeapKey;

/* The object of a value. Its pointer may be anything. */
static LJ_AINLINE const void *heapread_obj(cTValue *o)
{
  return (const void *)gcval(o);
}

/* May memory be read? As lj_safeload_ok, but remembers more pages. */
LJ_FUNC int lj_heapread_ok(HeapRead *r, const void *p, size_t sz);

/* Is an object of sz bytes and a type LJ_T* there? */
LJ_FUNC int lj_heapread_isobj(HeapRead *r, const void *o, size_t sz, uint32_t it);

/* The prototype of a Lua function, not checked; NULL for other functions and values. */
LJ_FUNC const GCproto *lj_heapread_proto(HeapRead *r, const GCfunc *fn);

/* Is this a C function, and no builtin? */
LJ_FUNC int lj_heapread_iscfunc(HeapRead *r, const GCfunc *fn);

/* Is this a prototype, and can the name of its chunk be read? */
LJ_FUNC int lj_heapread_isproto(HeapRead *r, const GCproto *pt);

/* Set a key to that of a table's slot, NULL for none. */
LJ_FUNC void lj_heapread_key(HeapKey *key, cTValue *o);

/* Read the text of a key, once; cut to FUNCTAB_NAME_MAX bytes. Returns 0 if the key is empty or
** not readable.
*/
LJ_FUNC int lj_heapread_name(HeapRead *r, HeapKey *key);

/* Compare a name, which may be cut. */
LJ_FUNC int lj_heapread_is(const NamePart *np, const char *name);

/* Is this a table whose slots can be looked for? */
LJ_FUNC int lj_heapread_istab(HeapRead *r, const GCtab *t);

/* A slot of the hash part of a table, NULL at its end, or if it may not be read. */
LJ_FUNC const Node *lj_heapread_node(HeapRead *r, const GCtab *t, uint32_t i);

/* Value of a field, NULL if the table does not have it. */
LJ_FUNC cTValue *lj_heapread_field(HeapRead *r, const GCtab *t, const char *name);

#endif
