/*
** Main chunk that has returned: its local variables, which its frame has left on the stack.
** Context: VM thread, outside of the handler, while no function of the VM runs.
*/

#define lj_luamain_c
#define LUA_CORE

#include <stdlib.h>

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_frame.h"
#include "profile/base/lj_safeload.h"
#include "profile/lua/lj_luamain.h"
#include "profile/symbols/lj_bcname.h"
#include "profile/symbols/lj_functab.h"

#define SLOTS_MAX 1000 /* Below the frame: arguments of the chunk, and a few of the host. */

/* Is this the frame of a main chunk? It has variable arguments: the interpreter copies the function above
** them, and links the frames by their distance. o: the function's slot.
*/
static int is_frame(const lua_State *L, const TValue *o)
{
  const TValue *base = o + 2;
  ptrdiff_t delta = base[-1].ftsz;
  return tvisfunc(o) && isluafunc(funcV(o)) && lj_functab_ismain(funcproto(funcV(o))) &&
	 (delta & FRAME_TYPEP) == FRAME_VARG && delta > 0 &&
	 delta <= (ptrdiff_t)((const char *)base - (const char *)tvref(L->stack));
}

static int is_tailcall(BCOp op)
{
  return op == BC_CALLT || op == BC_CALLMT;
}

/* May a chunk end before its last instruction? Then nobody knows which of its variables were set. A tail
** call at its end leaves none.
*/
static int has_returns(const GCproto *pt)
{
  BCPos i;
  for (i = 1; i + 1 < pt->sizebc; i++) {
    BCOp op = bc_op(proto_bc(pt)[i]);
    if (bc_isret(op) || is_tailcall(op)) return 1;
  }
  return is_tailcall(bc_op(proto_bc(pt)[pt->sizebc - 1]));
}

TValue *lj_luamain_end(lua_State *L, int *is_hidden)
{
  TValue *o = L->top, *end = tvref(L->maxstack);
  const GCproto *pt;
  SafeLoad *peek;
  *is_hidden = 0;
  if (L->base != tvref(L->stack) + 1 + LJ_FR2) return NULL; /* A function runs. */
  *is_hidden = 1;
  if (end - o > SLOTS_MAX) end = o + SLOTS_MAX;
  while (o + 2 < end && !is_frame(L, o)) o++;
  if (o + 2 >= end) return NULL;
  pt = funcproto(funcV(o));
  o += 2;
  if (pt->framesize > tvref(L->maxstack) - o || has_returns(pt)) return NULL;
  if ((peek = (SafeLoad *)calloc(1, sizeof(SafeLoad))) == NULL) return NULL;
  o += lj_bcname_nlocal(peek, pt, pt->sizebc - 1);
  free(peek);
  *is_hidden = (proto_varinfo(pt) == NULL); /* The chunk is stripped. */
  return o;
}
