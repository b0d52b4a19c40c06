/*
** Host stack walk: the C frames of a sample, and the VM's C frames among them.
** Context: handler, unless a function says otherwise.
**
** Starts at the interrupted instruction and unwinds to the outermost frame. It crosses C
** code by call frame information (lj_cfi.h), and the VM's frames by their fixed layout.
** The CFI of the assembler VM holds only between its prologue and epilogue. Compiled traces
** have no CFI. Below a trace, the chain of lua_State.cframe leads to the VM's frame.
**
** Takes no lock, allocates nothing, checks every load.
*/

#ifndef _LJ_HOSTWALK_H
#define _LJ_HOSTWALK_H

#include "lj_obj.h"
#include "profile/host/lj_cframe.h"
#include "profile/host/lj_cficache.h"
#include "profile/capture/lj_framelist.h"
#include "profile/host/lj_hostmemo.h"
#include "profile/host/lj_rowtab.h"
#include "profile/host/lj_vmcode.h"

#define HOSTWALK_VMFRAMES 256  /* VM frames stored for the Lua walk. */
#define HOSTWALK_FEW      4    /* Enough VM frames to find the top Lua frame. */
#define HOSTWALK_STEPS    8192 /* Frames unwound at most. */

/* Place of the interrupted instruction. A handler of the program may have interrupted the
** VM's code, and our handler then that handler: then this is the VM's instruction.
*/
typedef enum LeafPlace {
  LEAF_HOST, /* C code, or unknown code. */
  LEAF_VM,   /* The interpreter, or another part of the assembler VM. */
} LeafPlace;

typedef struct HostWalk {
  /* Set by the caller, the rest cleared. */
  SafeLoad *pk;                 /* Fault-safe loads. */
  global_State *g;              /* The VM. */
  FrameList *frames;            /* Gets the frames, or NULL. */
  int few_vm_frames;            /* Stop as soon as the top Lua frame can be found. */
  int no_vm_access;             /* The walk must not read the VM. */
  int cross_thread;             /* The VM may run on another thread. */
  int is_remote;                /* Another thread walks the stack of one that sleeps. */
  int has_rows;                 /* Ask lj_rowtab where our own tables have no step. */
  uintptr_t stack_lo, stack_hi; /* The thread's C stack; 0: not known. */
  /* Results. */
  LeafPlace leaf;                /* Place of the interrupted instruction. */
  WalkRegs regs;                 /* Registers there, if it is LEAF_VM. */
  int broken;                    /* SPF_BROKEN_* of the first gap, or -1. */
  int refused;                   /* SPF_REFUSED_* of that gap. */
  uint32_t nvm;                  /* VM frames crossed. */
  VMFrame vm[HOSTWALK_VMFRAMES]; /* The innermost of them. */
  /* Of all walks. */
  CfiCache cfi;      /* Steps by their addresses. */
  HostMemo memo;     /* Steps of the last walk. */
  VMCodeAreas areas; /* Of the VM's compiled code. */
  RowMemo rows;      /* Object of the last row. */
} HostWalk;

/* Walk the stack of this thread, from the registers of its innermost frame: all those that a
** signal interrupted, or the preserved ones of a function that has called here. Or, with
** is_remote, that of another thread, from its stack pointer and PC: then cross_thread is set,
** and the stack is not known. Needs lj_hostwalk_warmup.
*/
LJ_FUNC void lj_hostwalk_walk(HostWalk *hs, const WalkRegs *regs);

#define HOSTWALK_UNKNOWN "the layout of this VM's machine code is unknown"

/* Prepare for walks, once. Returns 0 if the layout of the VM's machine code is unknown.
** VM thread.
*/
LJ_FUNC int lj_hostwalk_warmup(void);

/* Is an address in the part of the VM that runs on the VM's C frame? */
#define lj_hostwalk_isvm(pc) (lj_vmcode_part((pc)) != VMCODE_NONE)

/* Is an address outside of the C stack that the thread began with? */
static LJ_AINLINE int lj_hostwalk_iselsewhere(const HostWalk *hs, uintptr_t addr)
{
  return hs->stack_hi != 0 && addr - hs->stack_lo >= hs->stack_hi - hs->stack_lo;
}

#endif
