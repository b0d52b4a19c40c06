/*
** Machine code of the VM: the state of the C stack at an address in it.
** Context: handler, unless a function says otherwise.
**
** The frame of the assembler VM has a fixed layout. During the instructions that build or
** remove it, only a part of it is on the stack. lj_vmcode_warmup finds these places by
** their bytes. The VM's list of areas shows which code is compiled.
**
** Takes no lock, allocates nothing, checks every load. x86-64.
*/

#ifndef _LJ_VMCODE_H
#define _LJ_VMCODE_H

#include "lj_obj.h"
#include "profile/base/lj_safeload.h"

/* Parts of the assembler VM. */
typedef enum VMCode {
  VMCODE_NONE,        /* Other code, and lj_vm_ffi_call, a host function. */
  VMCODE_INTERP,      /* On the VM's frame: interpreter, ways in and out. */
  VMCODE_EXIT,        /* lj_vm_exit_handler: deeper, by saved registers. */
  VMCODE_EXIT_INTERP, /* lj_vm_exit_interp: deeper at its start. */
  VMCODE_LEAF,        /* Helpers without a frame. */
  VMCODE_CALLBACK     /* On a frame that a C function has to link first. */
} VMCode;

/* Areas of compiled code at the last search; neighbours count as one. Zero at first. */
#define VMCODE_RANGES 16

typedef struct VMCodeAreas {
  int by_copy;    /* Another thread may free them. Set by the caller. */
  uintptr_t head; /* The newest one, 0 for none. */
  uint32_t frees; /* Number of lj_vmcode_freed calls then. */
  uint32_t n;     /* Ranges, or more than there is room for. */
  uintptr_t size; /* Of all areas. */
  struct {
    uintptr_t begin, end;
  } range[VMCODE_RANGES];
} VMCodeAreas;

/* Study the machine code, once, before the first sample. Returns 0 if the layout of this
** build's code is unknown. VM thread.
*/
LJ_FUNC int lj_vmcode_warmup(void);

/* Part of the assembler VM that an address is in. */
LJ_FUNC VMCode lj_vmcode_part(uintptr_t pc);

/* Is the frame incomplete at this interrupted instruction? Returns the number of registers
** on the stack, -1 at other places. The return address is above them.
*/
LJ_FUNC int lj_vmcode_partial(uintptr_t pc, const uint8_t **regs);

/* The same in the trampoline of an FFI callback of this VM. */
LJ_FUNC int lj_vmcode_callback(SafeLoad *pk, const global_State *g, uintptr_t pc,
			       const uint8_t **regs);

/* Does the C library's unwinder land here? */
LJ_FUNC int lj_vmcode_islanding(uintptr_t pc);

/* A VM has freed all its areas of compiled code. VM thread. */
LJ_FUNC void lj_vmcode_freed(void);

/* Is an address in the compiled code of this VM: traces and exit stubs? va: the areas of
** this VM from the last call, or NULL.
*/
LJ_FUNC int lj_vmcode_isjit(VMCodeAreas *va, SafeLoad *pk, const global_State *g,
			    uintptr_t pc);

/* Is an address in the compiled code of another VM? Another thread may close that VM. */
LJ_FUNC int lj_vmcode_isforeign(SafeLoad *pk, const global_State *g, uintptr_t pc);

/* Is an address in an exit stub of this VM? */
LJ_FUNC int lj_vmcode_isexitstub(const global_State *g, uintptr_t pc);

#endif
