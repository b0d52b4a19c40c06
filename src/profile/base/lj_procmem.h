/*
** Memory of the process: what is resident, and what LuaJIT's allocator has mapped.
** Context: any thread, outside of the handler.
**
** The allocator maps for all VMs of the process that use it. It has no function that tells how
** much. So edits of LuaJIT count where it maps and unmaps, from the first VM on.
*/

#ifndef _LJ_PROCMEM_H
#define _LJ_PROCMEM_H

#include "lj_def.h"

/* LuaJIT's allocator has mapped and unmapped so many bytes. */
LJ_FUNC void lj_procmem_count(size_t mapped, size_t unmapped);

/* Bytes that it has mapped now. */
LJ_FUNC uint64_t lj_procmem_mapped(void);

/* Resident bytes of the process, files included; 0 if the system does not tell. */
LJ_FUNC uint64_t lj_procmem_resident(void);

#endif
