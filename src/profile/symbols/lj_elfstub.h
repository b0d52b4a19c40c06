/*
** Stubs of the procedure linkage table (PLT): the functions that they jump to.
** Context: VM thread, outside of the handler.
**
** A stub jumps to the address in a slot of memory. The dynamic linker writes that address: a
** relocation of the slot has the name of the function. Stripped files have all this. Reads code
** of x86-64, as GNU ld, gold, lld and mold write it.
*/

#ifndef _LJ_ELFSTUB_H
#define _LJ_ELFSTUB_H

#include <stddef.h>
#include <stdint.h>

#include "lj_def.h"

/* A stub in an image of an ELF file. */
typedef struct ElfStub {
  uint64_t start;   /* Its address in the file. */
  const char *name; /* Name of the function, of at most max bytes. NULL: it is unknown. */
  size_t max;
} ElfStub;

/* Find the stub that contains an address of the file. The image has a valid header and section
** headers. Returns 0 if the address lies in no stub.
*/
LJ_FUNC int lj_elfstub_find(const uint8_t *image, size_t size, uint64_t addr,
			    ElfStub *stub);

#endif
