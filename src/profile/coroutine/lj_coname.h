/*
** Names of the functions on the stacks of coroutines, and text that is safe to print.
** Context: ordinary code of the thread that runs the VM, between two bytecodes.
**
** A Lua function has the name that profiles give it, see lj_functab.h.
*/

#ifndef _LJ_CONAME_H
#define _LJ_CONAME_H

#include "lj_obj.h"
#include "profile/coroutine/lj_colist.h"
#include "profile/symbols/lj_functab.h"

#define CONAME_MAX 1024 /* Bytes of a printed name, with its NUL. */

typedef struct CoSymbol {
  uintptr_t addr;
  char *name; /* Allocated; NULL: unknown. */
} CoSymbol;

/* Symbols of C functions, by address. */
typedef struct CoSymbols {
  CoSymbol *list;
  size_t n;
} CoSymbols;

/* What to print of a frame. Valid UTF-8 on one line, without control characters. */
typedef struct CoName {
  char name[CONAME_MAX];   /* "": a Lua function without a name. */
  char source[CONAME_MAX]; /* Name of the Lua function's chunk; "": no Lua function. */
  char path[CONAME_MAX];   /* Where the program keeps it under another name; "": none. */
  uint32_t line;           /* 0: unknown. */
} CoName;

typedef struct CoNames {
  const CoList *list;
  FuncTab *funcs;
  SafeLoad *peek;
  CoName *name;      /* Of the frame that is being written: too large for a small stack. */
  CoSymbols symbols; /* Of the C functions. */
} CoNames;

/* What a Lua function is named by. */
typedef struct CoLuaText {
  const char *name;
  uint32_t namelen;
  const char *chunk; /* Name of its source, as in lua_Debug.source. */
  uint32_t chunklen;
  int is_main;
  uint32_t line;
  const char *path; /* See FuncTab. */
  uint32_t pathlen;
} CoLuaText;

/* Name a Lua function; name a C function by its symbol or its module. Any thread. */
LJ_FUNC void lj_coname_luafunc(const CoLuaText *t, CoName *out);
LJ_FUNC void lj_coname_cfunc(const CoSymbols *cs, uintptr_t addr, CoName *out);

/* Find the symbols of n addresses. Any thread. Returns 0 without memory: then there are none. */
LJ_FUNC int lj_coname_symbols(CoSymbols *cs, const uintptr_t *addr, size_t n);

LJ_FUNC void lj_coname_symbolsfree(CoSymbols *cs);

/* Find the names of all functions of a list. Returns 0 without memory. */
LJ_FUNC int lj_coname_find(CoNames *cn, const CoList *cl);

LJ_FUNC void lj_coname_free(CoNames *cn);

/* Name a frame that no group has left out. */
LJ_FUNC void lj_coname_frame(const CoNames *cn, const CoFrame *fr, CoName *out);

#endif
