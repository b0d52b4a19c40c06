/*
** Types of allocations: what a block is for, by the function of the VM that allocates it.
** Context: VM thread, ordinary code.
**
** The VM writes the header of an object only after the allocation. But each of its functions
** allocates for one purpose. So the innermost known function on the C stack tells, and for
** a table its object from its parts: lj_mem_newgco allocates objects. The unwind tables
** tell which function an address is in. Where a compiler has inlined a function into
** another, the one around it is known, too, or the last rules decide.
**
** Users look for the line that allocates, not for functions such as lj_tab_resize. So samples
** leave out the VM's frames for the allocation: all C frames if Lua code allocates, those up
** to the outermost known function if a C function does. The compiler's and the collector's
** frames stay: they say what the VM does.
*/

#ifndef _LJ_ALLOCTYPE_H
#define _LJ_ALLOCTYPE_H

#include "lj_obj.h"
#include "profile/host/lj_cficache.h"

typedef enum AllocType {
  ALLOC_STRING = 1,
  ALLOC_TABLE,
  ALLOC_TABLE_PART, /* Array or hash part. */
  ALLOC_FUNCTION,
  ALLOC_UPVALUE,
  ALLOC_THREAD, /* Coroutine, or its Lua stack. */
  ALLOC_CDATA,
  ALLOC_USERDATA,
  ALLOC_BUFFER,
  ALLOC_PROTOTYPE,
  ALLOC_TRACE, /* Of the compiler. */
  ALLOC_VM,    /* Tables of the VM itself, and of its parser. */
  ALLOC_OTHER, /* C code called the allocator of the VM. */
  ALLOC__MAX
} AllocType;

#define ALLOCTYPE_BITS 8

/* Clear it before use. */
typedef struct AllocTypes {
  struct {
    uintptr_t pc;
    uint8_t rule;
  } known[1 << ALLOCTYPE_BITS]; /* Rules by address. */
  uintptr_t stack_lo, stack_hi; /* The thread's C stack. */
  SafeLoad pk;
  CfiCache cfi;
} AllocTypes;

/* Where a block is allocated. */
typedef struct AllocSite {
  AllocType type;
  uint32_t inner;  /* Innermost C frames that belong to the allocation. */
  int is_compiler; /* The compiler allocates it, for itself. */
} AllocSite;

/* Find the site of a block of a VM. regs: of the call of its allocator. osize: of the old block,
** or 0.
*/
LJ_FUNC AllocSite lj_alloctype_find(AllocTypes *at, const WalkRegs *regs,
				    const global_State *g, size_t osize, size_t size);

/* Name of a type, as users see it. */
LJ_FUNC const char *lj_alloctype_name(AllocType type);

#endif
