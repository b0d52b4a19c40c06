/*
** Symbol table of a session: functions, host addresses and builtins that were seen.
** Context: handler.
**
** The handler remembers all functions and addresses of the samples. At stop, the VM thread
** writes their names (lj_symrecords). Holds the function ids and the load map.
** Fixed memory.
*/

#ifndef _LJ_SYMTAB_H
#define _LJ_SYMTAB_H

#include "lj_obj.h"
#include "profile/format/lj_framelist.h"
#include "profile/format/lj_wbuf.h"
#include "profile/symbols/lj_functab.h"
#include "profile/symbols/lj_loadmap.h"

#define SYMTAB_ADDR_BITS 15
#define SYMTAB_ADDRS     (1 << SYMTAB_ADDR_BITS) /* Host addresses remembered. */
#define SYMTAB_PROBES    16                      /* Slots of that table tried. */

/* Clear it before use. */
typedef struct Symtab {
  FuncTab funcs;                /* Lua functions. */
  int vm_readable;              /* At stop: the prototypes are readable. */
  uint32_t naddr;               /* Addresses remembered. */
  uint8_t ffid[256];            /* Builtin functions seen. */
  uintptr_t addr[SYMTAB_ADDRS]; /* Hash table of addresses. */
  LoadMap loadmap;
} Symtab;

/* Append the definition of a Lua function, unless this epoch has it already.
** Only in the sample that has got its id.
*/
LJ_FUNC void lj_symtab_define(Symtab *st, WBuf *wb, uint32_t fid, uint32_t epoch);

/* Append the payload of that definition. A DefPayload of a FuncEntry, whose prototype
** can be read.
*/
LJ_FUNC void lj_symtab_putfunc(WBuf *wb, const void *func);

/* Remember the address or builtin function of a frame. */
LJ_FUNC void lj_symtab_see(Symtab *st, FrameWord w);

#endif
