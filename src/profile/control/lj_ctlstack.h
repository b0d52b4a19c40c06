/*
** Stack of a VM thread that reaches no safe point, taken by the handler of the control signal.
** Context: new, free: background thread | take: handler, on the thread.
**
** Whoever offers a stack may wait in vain: the handler may never run, or never return. So the
** handler takes the offer by one atomic instruction. An offer that nobody has taken can be freed.
*/

#ifndef _LJ_CTLSTACK_H
#define _LJ_CTLSTACK_H

#include <ucontext.h>

#include "lj_obj.h"

#define CTLSTACK_FRAMES 200 /* Innermost frames of each side. */
#define CTLSTACK_NAME   64  /* Bytes of a name, */
#define CTLSTACK_CHUNK  240 /* and of a chunk's name. */

/* A frame. Its texts are copies: the function may be freed. */
typedef struct CtlFrame {
  int kind;       /* SPF_FRAME_*. */
  uint64_t value; /* Its payload: address, id of a builtin, reason. */
  uint32_t line;  /* Of a Lua function; 0: unknown. */
  int is_main;    /* It is a main chunk. */
  uint32_t namelen, chunklen;
  char name[CTLSTACK_NAME], chunk[CTLSTACK_CHUNK];
} CtlFrame;

typedef struct CtlStack {
  int is_done; /* The handler has filled it. */
  uint32_t nlua, nhost;
  CtlFrame lua[CTLSTACK_FRAMES], host[CTLSTACK_FRAMES];
} CtlStack;

/* Allocate an offer. Returns NULL without memory. */
LJ_FUNC CtlStack *lj_ctlstack_new(void);

LJ_FUNC void lj_ctlstack_free(CtlStack *cs);

/* Has the handler filled it? */
LJ_FUNC int lj_ctlstack_isdone(const CtlStack *cs);

/* Walk the stacks of this thread, which a signal has interrupted. Async-signal-safe. */
LJ_FUNC void lj_ctlstack_take(CtlStack *cs, global_State *g, const ucontext_t *uc);

#endif
