/*
** Search of a VM's heap for names: queue of objects, and the paths to them.
** Context: VM thread; see lj_heapname.h.
*/

#ifndef _LJ_HEAPSEARCH_H
#define _LJ_HEAPSEARCH_H

#include "lj_obj.h"
#include "profile/symbols/lj_functab.h"
#include "profile/symbols/lj_heapread.h"

#define HEAPSEARCH_BITS  17
#define HEAPSEARCH_MAX   (1u << HEAPSEARCH_BITS) /* Objects visited. */
#define HEAPSEARCH_DEPTH 3                       /* Tables on the way to a function. */
#define HEAPSEARCH_PARTS (HEAPSEARCH_DEPTH + 2)  /* Parts of a path. */

/* An object of the search, and the path to it. */
typedef struct HeapItem {
  const GCobj *o;  /* A table, a Lua function, a prototype. */
  uint32_t parent; /* Item that holds it, 0 for none. */
  uint8_t depth;   /* Tables on the way. */
  uint8_t rank;    /* NameRank of the names found in it. */
  uint8_t is_meta; /* Metatable of userdata: its __index holds methods. */
  uint8_t methods; /* Its functions are methods of userdata. */
  NamePart key;    /* Under which it is held, may be empty. */
} HeapItem;

/* Path to a function. */
typedef struct HeapPath {
  uint8_t rank; /* NAME_UPVAL, NAME_PATH, or NAME_NONE without one. */
  NameText text;
} HeapPath;

/* All memory of a search, in one mapping. */
typedef struct HeapSearch {
  FuncTab *ft;
  HeapRead read;
  global_State *g;
  uint32_t nitem;                   /* Items used. The first one is none. */
  uint32_t loaded, globals;         /* Items of the loaded modules and the globals, or 0. */
  uint32_t ins;                     /* Instructions still to be read at most. */
  uint32_t wanted;                  /* Functions without a good name. */
  HeapPath path[FUNCTAB_FUNCS];     /* By entry. */
  uint16_t lead[FUNCTAB_FUNCS * 2]; /* Hash table over the entries that lead, plus 1. */
  const GCobj *visited[HEAPSEARCH_MAX * 2]; /* Hash set. */
  HeapItem item[HEAPSEARCH_MAX];            /* Queue. */
} HeapSearch;

/* Add an object to the set of those visited. Returns 0 if it is known, or without room. */
LJ_FUNC int lj_heapsearch_visit(HeapSearch *s, const GCobj *o);

/* Queue an object, which lj_heapsearch_visit has added. parent: item that holds it under the key, or
** NULL. Returns its item, or NULL if the object is not readable.
*/
LJ_FUNC HeapItem *lj_heapsearch_enqueue(HeapSearch *s, const void *o, uint32_t parent,
					uint32_t depth, NameRank rank, const NamePart *key);

/* Queue an object that is new. Returns its item, else NULL. */
LJ_FUNC HeapItem *lj_heapsearch_push(HeapSearch *s, const void *o, uint32_t parent,
				     uint32_t depth, NameRank rank, const NamePart *key);

/* Path to a value in an item. Returns the number of parts, which are the last ones of
** part[HEAPSEARCH_PARTS].
*/
LJ_FUNC uint32_t lj_heapsearch_path(const HeapSearch *s, uint32_t at, const NamePart *key,
				    NamePart *part);

#endif
