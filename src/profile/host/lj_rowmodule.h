/*
** Interface of a module that computes rows of unwind tables for the profiler.
** Context: under the lock, on any thread, outside of the handler.
**
** The module is a shared library of its own, so that this library needs none of the libraries
** that it uses. This header includes nothing of LuaJIT.
*/

#ifndef _LJ_ROWMODULE_H
#define _LJ_ROWMODULE_H

#include <stddef.h>
#include <stdint.h>

#define ROWMODULE_VERSION 1 /* Of this interface. */
#define ROWMODULE_SAVED   6 /* Registers that a called function preserves. */

/* What a row says about its addresses. */
enum {
  ROWMODULE_NONE, /* No step is known. */
  ROWMODULE_STEP, /* The return address is at CFA - 8. */
  ROWMODULE_ROOT  /* The outermost frame. */
};

/* The step from the addresses between begin and the next row's begin. */
typedef struct ModuleRow {
  uint64_t begin;  /* As in the object's file. */
  int32_t cfa_ofs; /* The canonical frame address (CFA) is a register */
  uint8_t cfa_reg; /* (its DWARF number) plus cfa_ofs. */
  uint8_t kind;    /* ROWMODULE_* above. */
  uint8_t
    saved[ROWMODULE_SAVED]; /* Words below the CFA of rbx, rbp, r12 to r15; 0: kept. */
} ModuleRow;

typedef struct RowModule {
  uint32_t version;
  /* Compute the rows of an object that the profiler's own tables lack, by address. path: its
  ** file. Its build-id must be id. *row: the caller frees them by free(), NULL if there are
  ** none. Returns their number.
  */
  size_t (*rows)(const char *path, const uint8_t *id, size_t idlen, ModuleRow **row);
} RowModule;

/* Name of the module's one symbol, which is a RowModule. */
#define ROWMODULE_SYMBOL "luajit_sysprof_rows"

#endif
