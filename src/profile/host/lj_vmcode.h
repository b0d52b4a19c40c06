/*
** Machine code of the VM: what an address in it says about the C stack.
**
** The assembler VM's frame has a fixed layout, but in the instructions that
** build and remove it only parts of it are on the stack. These places are found
** by their bytes when the first profile starts. Compiled code is known by the
** areas that it is allocated in.
**
** Runs in the signal handler, but for the warmup: no lock, no allocation, every
** load checked. x86-64.
*/

#ifndef _LJ_VMCODE_H
#define _LJ_VMCODE_H

#include "lj_obj.h"
#include "profile/base/lj_safeload.h"

/* Parts of the assembler VM. */
typedef enum VMCode {
  VMCODE_NONE,        /* Other code, also lj_vm_ffi_call, a host function. */
  VMCODE_INTERP,      /* On the VM's frame: interpreter, ways in and out. */
  VMCODE_EXIT,        /* lj_vm_exit_handler: deeper by what it saves. */
  VMCODE_EXIT_INTERP, /* lj_vm_exit_interp: deeper at its start. */
  VMCODE_LEAF,        /* Helpers without a frame. */
  VMCODE_CALLBACK     /* On a frame that a C function has to link first. */
} VMCode;

/* Areas that compiled code was allocated in when it was last looked for, those that
** adjoin as one. All zero: none yet.
*/
#define VMCODE_RANGES 16

typedef struct VMCodeAreas {
  uintptr_t head; /* The newest one, 0 for none. */
  uint32_t frees; /* How often code had been freed. */
  uint32_t n;     /* Ranges, or more than there is room for. */
  uintptr_t size; /* Of all areas. */
  struct {
    uintptr_t begin, end;
  } range[VMCODE_RANGES];
} VMCodeAreas;

/* Study the machine code. Call it once outside of the handler; returns 0 if
** this build's code is not laid out as expected.
*/
LJ_FUNC int lj_vmcode_warmup(void);

/* Part of the assembler VM that an address is in. */
LJ_FUNC VMCode lj_vmcode_part(uintptr_t pc);

/* Interrupted where the frame is not complete: returns how many registers are
** on the stack, -1 at other places. The return address is above them.
*/
LJ_FUNC int lj_vmcode_partial(uintptr_t pc, const uint8_t **regs);

/* Likewise, in the trampoline of an FFI callback of this VM. */
LJ_FUNC int lj_vmcode_callback(SafeLoad *pk, const global_State *g, uintptr_t pc,
			       const uint8_t **regs);

/* Is this where the C library's unwinder lands? */
LJ_FUNC int lj_vmcode_islanding(uintptr_t pc);

/* All areas of compiled code of a VM have been freed. On its thread, outside of the
** handler.
*/
LJ_FUNC void lj_vmcode_freed(void);

/* Is an address in the compiled code of this VM: traces and exit stubs? The areas
** are those of this VM, kept from call to call, or NULL.
*/
LJ_FUNC int lj_vmcode_isjit(VMCodeAreas *va, SafeLoad *pk, const global_State *g,
			    uintptr_t pc);

/* Is an address in an exit stub of this VM? */
LJ_FUNC int lj_vmcode_isexitstub(const global_State *g, uintptr_t pc);

#endif
