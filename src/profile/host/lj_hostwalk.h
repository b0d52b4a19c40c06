/*
** Host stack: the C frames of a sample, and the VM's own among them.
**
** Starts at the interrupted instruction and unwinds to the outermost frame.
** C code is crossed by its call frame information (lj_cfi.h); the VM's frames
** by their fixed layout, because the assembler VM's CFI holds only between its
** prologue and epilogue, and compiled traces have none: below a trace, the
** chain of lua_State.cframe says where the VM's frame is.
**
** Runs in the signal handler: no lock, no allocation, every load checked.
*/

#ifndef _LJ_HOSTWALK_H
#define _LJ_HOSTWALK_H

#include <ucontext.h>

#include "lj_obj.h"
#include "profile/host/lj_cframe.h"
#include "profile/host/lj_cficache.h"
#include "profile/format/lj_framelist.h"
#include "profile/host/lj_hostmemo.h"
#include "profile/host/lj_vmcode.h"

#define HOSTWALK_VMFRAMES 256  /* VM frames remembered for the Lua side. */
#define HOSTWALK_FEW      4    /* Enough VM frames to find the top Lua frame. */
#define HOSTWALK_STEPS    8192 /* FrameList unwound at most. */

/* Where the interrupted instruction is. */
typedef enum LeafPlace {
  LEAF_HOST, /* C code, or unknown code. */
  LEAF_VM,   /* The interpreter, or another part of the assembler VM. */
} LeafPlace;

typedef struct HostWalk {
  /* Set by the caller, the rest cleared. */
  SafeLoad *pk;                 /* Fault-safe loads. */
  global_State *g;              /* The VM. */
  FrameList *frames;            /* Where the frames go, or NULL. */
  int few_vm_frames;            /* Stop where the top Lua frame can be found. */
  int apart;                    /* Nothing of the VM may be looked at. */
  int strict;                   /* The VM may run on another thread. */
  uintptr_t stack_lo, stack_hi; /* The thread's C stack; 0: not known. */
  /* Results. */
  LeafPlace leaf;                /* Where the interrupted instruction is. */
  int broken;                    /* SPF_BROKEN_* of the first gap, or -1. */
  int refused;                   /* SPF_REFUSED_* of that gap. */
  uint32_t nvm;                  /* VM frames crossed. */
  VMFrame vm[HOSTWALK_VMFRAMES]; /* The innermost of them. */
  /* Kept from walk to walk. */
  CfiCache cfi;      /* Steps by their addresses. */
  HostMemo tail;     /* Steps of the last walk. */
  VMCodeAreas areas; /* Of the VM's compiled code. */
} HostWalk;

/* Walk the stack of an interrupted thread. Async-signal-safe after warmup. */
LJ_FUNC void lj_hostwalk_walk(HostWalk *hs, const ucontext_t *uc);

/* Prepare for walks. Call it once outside of the handler; returns 0 if the VM's
** machine code is not laid out as expected.
*/
LJ_FUNC int lj_hostwalk_warmup(void);

/* Is an address in the part of the VM that runs on the VM's C frame? */
#define lj_hostwalk_isvm(pc) (lj_vmcode_part((pc)) != VMCODE_NONE)

/* Is an address on another C stack than the one that the thread began with? */
static LJ_AINLINE int lj_hostwalk_iselsewhere(const HostWalk *hs, uintptr_t addr)
{
  return hs->stack_hi != 0 && addr - hs->stack_lo >= hs->stack_hi - hs->stack_lo;
}

/* Is p a coroutine (or the main thread) of this VM? Async-signal-safe. */
#define lj_hostwalk_isthread lj_cframe_isthread

#endif
