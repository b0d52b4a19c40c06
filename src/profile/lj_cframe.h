/*
** C frames of the VM: their layout, and the chains that link them.
**
** Each coroutine has a chain: lua_State.cframe is its innermost frame, and each
** frame holds the one before it. Chains of several coroutines share a C stack,
** and a program that switches C stacks puts them on several, so addresses in a
** chain need not grow.
**
** Runs in the signal handler: no lock, no allocation, every load checked.
*/

#ifndef _LJ_CFRAME_H
#define _LJ_CFRAME_H

#include "lj_obj.h"
#include "lj_frame.h"
#include "profile/lj_peek.h"

/* From a frame's address upwards (lj_frame.h, CFRAME_*): locals, the saved
** registers, the return address.
*/
#define VMFRAME_R14	(CFRAME_SIZE - 5*8)
#define VMFRAME_R15	(CFRAME_SIZE - 4*8)
#define VMFRAME_BX	(CFRAME_SIZE - 3*8)
#define VMFRAME_BP	(CFRAME_SIZE - 2*8)
#define VMFRAME_PC	(CFRAME_SIZE - 1*8)
/* The way into a trace saves these two in and below the frame. */
#define VMFRAME_TRACE_R12	0
#define VMFRAME_TRACE_R13	(-8)

/* Stack that the interpreter uses below its frame. */
#define VMFRAME_SLACK	(CFRAME_SIZE_JIT - CFRAME_SIZE)

/* Stack that a trace, and the way out of it, use at most: slots that it spills
** to (GCtrace.spadjust), and registers that an exit saves.
*/
#define VMFRAME_TRACE_MAX	(65536 + 1024)

#define CFRAME_CHAINS		8	/* Coroutines remembered. */
#define CFRAME_LINKS_MAX	8192	/* Links followed during one walk. */

/* How far the chains of coroutines have been followed. */
typedef struct CFrameChains {
  struct {
    lua_State *L;		/* NULL if free. */
    uintptr_t next;		/* Next frame, 0 at the end. */
  } c[CFRAME_CHAINS];
  int turn;			/* Entry that is replaced next. */
  int links;			/* Links followed. */
} CFrameChains;

/* Is p a coroutine (or the main thread) of this VM? */
LJ_FUNC int lj_cframe_isthread(Peek *pk, const global_State *g, uintptr_t p);

/* VM of a coroutine, whichever it is; NULL if p is none. */
LJ_FUNC global_State *lj_cframe_vm(Peek *pk, uintptr_t p);

/* Coroutine that a frame at this address would run, NULL if there is none. */
LJ_FUNC lua_State *lj_cframe_L(Peek *pk, const global_State *g, uintptr_t cf);

/* Is there a frame of this coroutine which has not been passed yet? */
LJ_FUNC int lj_cframe_linked(Peek *pk, CFrameChains *cc, lua_State *L,
			     uintptr_t cf);

/* Was this frame, which is not linked, taken off its coroutine's chain? An error
** does that while the C frames are still there.
*/
LJ_FUNC int lj_cframe_unlinked(Peek *pk, CFrameChains *cc, lua_State *L,
			       uintptr_t cf);

/* Pass a linked frame. Returns the next one of its coroutine, or 0. */
LJ_FUNC uintptr_t lj_cframe_pass(Peek *pk, CFrameChains *cc, lua_State *L,
				 uintptr_t cf);

#endif
