/*
** C frames of the VM: their layout, and the chains that link them.
** Context: handler.
**
** Each coroutine has a chain: lua_State.cframe is its innermost frame, and each frame
** holds the one before it. Chains of several coroutines share a C stack. A program that
** switches C stacks puts them on several, so addresses in a chain need not grow.
**
** Takes no lock, allocates nothing, checks every load.
*/

#ifndef _LJ_CFRAME_H
#define _LJ_CFRAME_H

#include "lj_obj.h"
#include "lj_frame.h"
#include "profile/base/lj_safeload.h"

/* From a frame's address upwards (lj_frame.h, CFRAME_*): locals, the saved registers, the
** return address.
*/
#define VMFRAME_R14 (CFRAME_SIZE - 5 * 8)
#define VMFRAME_R15 (CFRAME_SIZE - 4 * 8)
#define VMFRAME_BX  (CFRAME_SIZE - 3 * 8)
#define VMFRAME_BP  (CFRAME_SIZE - 2 * 8)
#define VMFRAME_PC  (CFRAME_SIZE - 1 * 8)
/* The way into a trace saves these two in and below the frame. */
#define VMFRAME_TRACE_R12 0
#define VMFRAME_TRACE_R13 (-8)

/* Stack that the interpreter uses below its frame. */
#define VMFRAME_SLACK (CFRAME_SIZE_JIT - CFRAME_SIZE)

/* Stack that a trace and the way out of it use at most: its spill slots
** (GCtrace.spadjust), and the registers that an exit saves.
*/
#define VMFRAME_TRACE_MAX (65536 + 1024)

/* Code that ran on a C frame of the VM when it called or was interrupted.
**
** VMF_TRACE: code is in the machine code of a trace. sp includes the trace's adjustment,
** so it leads to the values that the trace keeps on its C frame. If the leaf is a helper
** of the VM without a frame, code is the call of that helper.
**
** VMF_EXIT: code is in
** - an exit stub: jit_base is set, vmstate is the trace, registers are its own;
** - lj_vm_exit_handler before it calls lj_trace_exit: it sets vmstate to EXIT, then
**   J->exitno, then J->parent, then L->base to jit_base, then jit_base to 0. Until
**   then, exitno and parent belong to an older exit;
** - lj_vm_exit_handler during that call or after it: jit_base is 0 and vmstate is
**   EXIT, unless C code called from there has changed them. L->base is that of the
**   trace's entry until lj_snap_restore changes it. When the call returns, the
**   interpreter's stack is complete, and L->base and the PC in the VM frame are
**   right. The registers are not right yet;
** - lj_vm_exit_interp, entered from the end of a trace: jit_base is set and vmstate
**   is still the trace. But the Lua stack and the interpreter's BASE and PC are
**   complete. Entered from lj_vm_exit_handler, the same code is VMF_INTERP, and
**   vmstate is EXIT for its first instructions.
**
** VMF_INTERP: all other code. The interpreter's registers are valid, except on the way
** into and out of it. vmstate does not distinguish it from a trace: the interpreter sets
** jit_base, and the trace sets vmstate later, with its first instructions.
*/
typedef enum VMPlace {
  VMF_INTERP, /* The interpreter, or another part of the assembler VM. */
  VMF_TRACE,  /* Compiled code. */
  VMF_EXIT    /* The way out of a trace: its exit stubs, lj_vm_exit_handler. */
} VMPlace;

/* A C frame of the VM: one call of lj_vm_call and the like. */
typedef struct VMFrame {
  uintptr_t cf;   /* Address, as in lua_State.cframe without flags. */
  lua_State *L;   /* Coroutine it runs. */
  VMPlace place;  /* Code that runs on it. */
  uintptr_t code; /* Address there, inside of the call if there was one; 0
			** behind a gap: then place is unknown, too. */
  uintptr_t sp;   /* Stack pointer there, or after that call, or 0. */
  uintptr_t pc;   /* Interpreter's PC when it left for C, or 0. */
  uintptr_t rb;   /* Interpreter's RB then, or 0. */
} VMFrame;

#define CFRAME_CHAINS    8    /* Coroutines at a time. */
#define CFRAME_LINKS_MAX 8192 /* Links followed during one walk. */

/* How far a walk has followed the chains of coroutines. */
typedef struct CFrameChains {
  struct {
    lua_State *L;   /* NULL if free. */
    uintptr_t next; /* Next frame, 0 at the end. */
  } c[CFRAME_CHAINS];
  int turn;  /* Entry that is replaced next. */
  int links; /* Links followed. */
} CFrameChains;

/* Is p a coroutine (or the main thread) of this VM? */
LJ_FUNC int lj_cframe_isthread(SafeLoad *pk, const global_State *g, uintptr_t p);

/* VM of any coroutine, NULL if p is not a coroutine. */
LJ_FUNC global_State *lj_cframe_vm(SafeLoad *pk, uintptr_t p);

/* Coroutine of a frame at this address, NULL if the address has no frame of this VM. */
LJ_FUNC lua_State *lj_cframe_L(SafeLoad *pk, const global_State *g, uintptr_t cf);

/* Is this a frame of the coroutine that the walk has not passed yet? */
LJ_FUNC int lj_cframe_linked(SafeLoad *pk, CFrameChains *cc, lua_State *L, uintptr_t cf);

/* Was this frame, which is not linked, unlinked from its coroutine's chain? An error
** unlinks C frames before they end.
*/
LJ_FUNC int lj_cframe_unlinked(SafeLoad *pk, CFrameChains *cc, lua_State *L, uintptr_t cf);

/* Pass a linked frame. Returns the next one of its coroutine, or 0. */
LJ_FUNC uintptr_t lj_cframe_pass(SafeLoad *pk, CFrameChains *cc, lua_State *L,
				 uintptr_t cf);

#endif
