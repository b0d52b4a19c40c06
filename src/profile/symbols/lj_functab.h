/*
** Function ids: a small number for each Lua function that samples refer to.
** Context: handler, unless a function says otherwise.
**
** The handler gives a prototype an id when it first sees it. The prototype keeps its id
** while the table knows it. LuaJIT announces a freed prototype, and the key covers the
** place of a function in its source. So a prototype that takes over the memory of
** another one gets its own id. Fixed memory.
**
** A new function takes the next entry that no live function has. So functions that stay keep
** their ids in a program that loads others without end. When the next entries are all taken,
** the table is full. From then on, a new function replaces the oldest one. A function in use
** gets a new id before its entry's turn comes.
*/

#ifndef _LJ_FUNCTAB_H
#define _LJ_FUNCTAB_H

#include "lj_obj.h"
#include "profile/base/lj_safeload.h"
#include "profile/symbols/lj_cfunctab.h"

#define FUNCTAB_BITS     12
#define FUNCTAB_FUNCS    (1 << FUNCTAB_BITS) /* Functions known at a time. */
#define FUNCTAB_PROBES   16                  /* Slots of the hash table tried. */
#define FUNCTAB_RUN      64 /* Live functions in a row that make the table full. */
#define FUNCTAB_NAME_MAX 64 /* Bytes of a function's name that are kept. */
/* Limit of the name of a chunk, in bytes: (cut) */
#define FUNCTAB_CHUNK_MAX  240
#define FUNCTAB_NAME_TRIES 8 /* Calls at which a name is searched. */

#define FUNC_NO_BODY 255 /* FuncEntry.height of a function without a body hash. */

/* Where the name of a function comes from, the best last. */
typedef enum NameRank {
  NAME_NONE,
  NAME_ROLE,  /* Its role in the call: a metamethod, an iterator. */
  NAME_CALL,  /* As the caller names it. */
  NAME_SAME,  /* The same, by the caller of another id of the function. */
  NAME_UPVAL, /* Of a variable that holds it. */
  NAME_DEF,   /* As it is named where it is defined. */
  NAME_PATH   /* From the globals or a loaded module on. */
} NameRank;

/* A part of a name: any bytes, in memory that is known to be readable. */
typedef struct NamePart {
  const char *s;
  uint32_t len;
} NamePart;

/* A name as a text. */
typedef struct NameText {
  uint8_t len;
  char s[FUNCTAB_NAME_MAX];
} NameText;

/* A Lua function. A full table replaces no function of the current sample, unless the sample
** has as many functions as half of the table.
*/
typedef struct FuncEntry {
  uint64_t key;      /* Hash of the prototype's identity. */
  const GCproto *pt; /* The prototype, NULL after it was freed. */
  uint64_t body;     /* See lj_bodyhash, 0 if it is not known. */
  uint32_t fid;      /* Id, 0 for a free entry. */
  uint32_t batch;    /* Batch that has its definition, 0 for none. */
  uint32_t site;     /* Call at which a name was last searched. */
  uint8_t tries;     /* Calls at which the search found none. */
  uint8_t rank;      /* NameRank of the name. */
  uint8_t namelen;
  uint8_t pathlen; /* Of its FuncTab.path, 0 for none. */
  uint8_t height;  /* Functions in each other, itself the first; 0: body was not tried. */
  char name[FUNCTAB_NAME_MAX];
} FuncEntry;

/* Clear it before use. */
typedef struct FuncTab {
  uint32_t nfid;                     /* Last id given. */
  int is_full;                       /* New functions replace others. */
  uint32_t run;                      /* Live functions in a row, half a table ahead. */
  uint32_t freed;                    /* Prototypes freed. */
  uint32_t lookups;                  /* Names searched in this sample, */
  uint64_t lookups_gen;              /* which is this SafeLoad.generation. */
  uint16_t index[FUNCTAB_FUNCS * 2]; /* Hash table over func, plus 1. */
  uint16_t at[FUNCTAB_FUNCS];        /* Slot in index of each entry of func. */
  FuncEntry func[FUNCTAB_FUNCS];     /* By id modulo FUNCTAB_FUNCS. */
  /* Where the program keeps a function under another name than that of its definition. */
  char path[FUNCTAB_FUNCS][FUNCTAB_NAME_MAX];
  CFuncTab cfuncs; /* C functions. */
} FuncTab;

/* Is the entry of an id too young to be replaced in this sample? */
static LJ_AINLINE int lj_functab_isrecent(const FuncTab *ft, uint32_t fid)
{
  return !ft->is_full || ft->nfid - fid < FUNCTAB_FUNCS / 2;
}

/* Entry that has this id, or has replaced it. */
static LJ_AINLINE FuncEntry *lj_functab_entry(FuncTab *ft, uint32_t fid)
{
  return &ft->func[fid % FUNCTAB_FUNCS];
}

/* Entry of a valid prototype, with a recent id. Returns NULL if the name is not readable, or
** without a free id.
*/
LJ_FUNC FuncEntry *lj_functab_see(FuncTab *ft, SafeLoad *pk, const GCproto *pt);

/* Hash of a prototype's identity: its address, copies of its head and of the string that is its
** chunk's name.
*/
LJ_FUNC uint64_t lj_functab_key(const GCproto *pt, const GCproto *head, const GCstr *name);

/* Entry of the prototype with this key, with a recent id. Does not read the prototype. Returns
** NULL without a free id.
*/
LJ_FUNC FuncEntry *lj_functab_get(FuncTab *ft, const GCproto *pt, uint64_t key);

/* Entry of a live prototype, NULL if no sample has seen it. Does not read the
** prototype. Any thread.
*/
LJ_FUNC FuncEntry *lj_functab_find(FuncTab *ft, const GCproto *pt);

/* Forget the prototype of this id, if an entry has it: the table never gives the id again. */
LJ_FUNC void lj_functab_drop(FuncTab *ft, uint32_t fid);

/* LuaJIT frees a prototype: the table never gives its id again. VM thread. */
LJ_FUNC void lj_functab_free(FuncTab *ft, const GCproto *pt);

/* The collector has marked all that lives: forget the C functions that it will free. VM thread. */
LJ_FUNC void lj_functab_marked(FuncTab *ft, global_State *g);

/* Path of an entry, pathlen bytes. */
static LJ_AINLINE const char *functab_path(const FuncTab *ft, const FuncEntry *fe)
{
  return ft->path[fe - ft->func];
}

/* Join the parts of a name. last: character before the last part; others have a dot. */
LJ_FUNC void lj_functab_join(NameText *to, const NamePart *part, uint32_t n, char last);

/* Name a function by a text, and a path or NULL, unless it has a name of this or a better rank. */
LJ_FUNC void lj_functab_settext(FuncTab *ft, FuncEntry *fe, NameRank rank,
				const NameText *name, const NameText *path);

/* Name a function by parts, unless it has a name of this or a better rank. */
LJ_FUNC void lj_functab_setname(FuncEntry *fe, NameRank rank, const NamePart *part,
				uint32_t n);

/* Does a name end in a point and the name of a builtin function made of bytecode, as table.remove? Its chunk has
** that name.
*/
static LJ_AINLINE int functab_isbuiltin(const char *name, uint32_t len, const char *chunk,
					uint32_t chunklen)
{
  return chunklen > 0 && len > chunklen + 1 && name[len - chunklen - 1] == '.' &&
	 memcmp(name + len - chunklen, chunk, chunklen) == 0;
}

/* Is a readable prototype a main chunk? Bytecode without debug information has no
** lines: then it counts as one if it looks like one.
*/
LJ_FUNC int lj_functab_ismain(const GCproto *pt);

#endif
