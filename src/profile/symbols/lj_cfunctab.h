/*
** C functions that Lua calls: a number for each closure of a lua_CFunction, and their names.
** Context: handler for see | any thread for note and settle | VM thread for the rest.
**
** One lua_CFunction may serve many names, by closures with different upvalues. So a frame has
** the number of its closure, which no other closure of the same lua_CFunction ever gets.
** When the collector has marked all that lives, the table forgets the closures that are dead.
** So a closure that takes over the memory of another one gets its own number. Fixed memory.
**
** Stop finds the names where the program keeps the closures (lj_heapname).
*/

#ifndef _LJ_CFUNCTAB_H
#define _LJ_CFUNCTAB_H

#include "lj_obj.h"
#include "profile/base/lj_hash.h"

#define CFUNCTAB_BITS     10
#define CFUNCTAB_FUNCS    (1 << CFUNCTAB_BITS) /* Closures and functions known at a time. */
#define CFUNCTAB_PROBES   16                   /* Entries tried. */
#define CFUNCTAB_CLOSURES 255                  /* Numbers of one lua_CFunction. */
#define CFUNCTAB_TRIES    4                    /* Calls at which a name is searched. */
#define CFUNCTAB_NAMES    3                    /* Equally good names that are kept, */
#define CFUNCTAB_NAME_MAX 64                   /* and their bytes. */
#define CFUNCTAB_TEXT_MAX (CFUNCTAB_NAMES * (CFUNCTAB_NAME_MAX + 1) + 4)

/* A closure; or the function of closures, if fn is 0. */
typedef struct CFuncEntry {
  uintptr_t fn;    /* Address of the closure, + 1 until note is settled; CFUNCTAB_GONE. */
  uintptr_t f;     /* Address of the lua_CFunction, 0 for a free entry. */
  uint32_t number; /* Of the closure; of the function: the last one given. */
  uint32_t tries;  /* Calls at which a name was searched; most if one was found. */
} CFuncEntry;

#define CFUNCTAB_GONE ((uintptr_t)2) /* The entry's closure was freed. */

/* Names of an entry, the shortest ones. Names of a function belong to all its closures. */
typedef struct CFuncNames {
  uint8_t n;
  uint8_t grade;      /* Of these names: the lower, the better. */
  uint8_t has_more;   /* There are more of this grade. */
  uint8_t has_upvals; /* Closures of the function differ: its names are void. */
  uint8_t len[CFUNCTAB_NAMES];
  char name[CFUNCTAB_NAMES][CFUNCTAB_NAME_MAX];
} CFuncNames;

/* How a caller names a closure. */
typedef struct CFuncCall {
  uint8_t len; /* 0 without a name. */
  char name[CFUNCTAB_NAME_MAX];
} CFuncCall;

/* Clear it before use. */
typedef struct CFuncTab {
  uint32_t n;     /* Entries filled so far. */
  uint32_t marks; /* Times that the collector has marked all that lives. */
  CFuncEntry entry[CFUNCTAB_FUNCS]; /* Hash table. */
  CFuncCall call[CFUNCTAB_FUNCS];   /* Of each entry. It outlives the closure. */
  CFuncNames names[CFUNCTAB_FUNCS]; /* Of each entry, since the last search. */
} CFuncTab;

/* Entry of a closure, or with fn 0 of a function. Returns NULL if it is not known. */
static LJ_AINLINE CFuncEntry *cfunctab_find(CFuncTab *ct, uintptr_t fn, uintptr_t f)
{
  uint32_t i, slot = hash_slot(fn ? fn : f, CFUNCTAB_BITS);
  for (i = 0; i < CFUNCTAB_PROBES; i++) {
    CFuncEntry *e = &ct->entry[(slot + i) & (CFUNCTAB_FUNCS - 1)];
    if (e->fn == fn && e->f == f) return e;
    if (e->f == 0) break;
  }
  return NULL;
}

/* Entry of a closure that is new. Returns NULL without room, or without a free number. */
LJ_FUNC CFuncEntry *lj_cfunctab_add(CFuncTab *ct, uintptr_t fn, uintptr_t f);

/* Entry of a live closure. Does not read it. Returns NULL if it gets no number. */
static LJ_AINLINE CFuncEntry *cfunctab_see(CFuncTab *ct, uintptr_t fn, uintptr_t f)
{
  CFuncEntry *e = cfunctab_find(ct, fn, f);
  return LJ_LIKELY(e != NULL) ? e : lj_cfunctab_add(ct, fn, f);
}

/* Does this closure need the name of its caller? */
static LJ_AINLINE int cfunctab_wants(const CFuncEntry *e)
{
  return e->tries < CFUNCTAB_TRIES;
}

/* Set how a caller names a closure. */
LJ_FUNC void lj_cfunctab_called(CFuncTab *ct, CFuncEntry *e, const char *name,
				uint32_t len);

/* Number of a closure that the VM may free meanwhile, 0 for none. Afterwards settle must be called:
** with keep, if marks is as before the closure was read. Returns 0 if the number is void.
*/
LJ_FUNC uint32_t lj_cfunctab_note(CFuncTab *ct, uintptr_t fn, uintptr_t f);
LJ_FUNC int lj_cfunctab_settle(CFuncTab *ct, uintptr_t fn, uintptr_t f, int keep);

/* The collector has marked all that lives. Forgets the closures that it will free, and returns
** their number.
*/
LJ_FUNC uint32_t lj_cfunctab_marked(CFuncTab *ct, global_State *g);

/* Forget all names. */
LJ_FUNC void lj_cfunctab_unname(CFuncTab *ct);

/* Offer a name to an entry. Returns 1 if it is its first one. */
LJ_FUNC int lj_cfunctab_offer(CFuncTab *ct, const CFuncEntry *e, uint32_t grade,
			      const char *name, uint32_t len);

/* Names of an entry in one text of at most CFUNCTAB_TEXT_MAX bytes: of its places, or without
** these as its caller names it. Returns the length, 0 for none.
*/
LJ_FUNC uint32_t lj_cfunctab_text(CFuncTab *ct, const CFuncEntry *e, char *text);

/* Number of an entry: 0 of a function. Closures that were freed keep theirs. */
static LJ_AINLINE uint32_t cfunctab_number(const CFuncEntry *e)
{
  return e->fn ? e->number : 0;
}

static LJ_AINLINE CFuncNames *cfunctab_names(CFuncTab *ct, const CFuncEntry *e)
{
  return &ct->names[e - ct->entry];
}

/* Is this the entry of a closure that was not freed? */
static LJ_AINLINE int cfunctab_isclosure(const CFuncEntry *e)
{
  return e->f != 0 && e->fn > CFUNCTAB_GONE && (e->fn & 1) == 0;
}

#endif
