/*
** Cache of call sites in Lua functions, by return PC.
** Context: handler.
**
** The return PC of a frame identifies its caller: function id, line, and distance to the
** caller's frame. All three come from memory of the VM that does not change while the
** prototype lives. The VM announces each freed prototype; then the cache is empty. The VM
** does change the instruction of a loop with an iterator, so for these the cache has no
** distance.
*/

#ifndef _LJ_LUASITES_H
#define _LJ_LUASITES_H

#include "lj_obj.h"
#include "lj_bc.h"
#include "profile/base/lj_hash.h"
#include "profile/capture/lj_framelist.h"
#include "profile/symbols/lj_functab.h"

#define LUASITES_BITS  10
#define LUASITES_SLOTS (1 << LUASITES_BITS) /* Cached places. */
#define LUASITES_HINTS 256                  /* Frames with a cached slot, a power of two. */

typedef struct LuaSite {
  uintptr_t pc;      /* PC behind the instruction, 0 if free. */
  const GCproto *pt; /* Prototype of the function. */
  FrameWord word;    /* Frame word of the function. */
  uint32_t freed;    /* FuncTab.freed when the place was cached. */
  uint16_t delta;    /* Distance from a frame that returns there to its caller, or 0. */
  uint16_t is_named; /* The function needs no name. */
} LuaSite;

/* The cache of one session. The caller clears it before use. */
typedef struct LuaSites {
  LJ_ALIGN(32) LuaSite slot[LUASITES_SLOTS];
  uint16_t hint[LUASITES_HINTS]; /* Last slot of a frame, by the frame's address. */
} LuaSites;

/* The two slots of a PC are side by side. */
static LJ_AINLINE LuaSite *lj_luasites_slots(LuaSites *ls, uintptr_t pc)
{
  return &ls->slot[hash_slot(pc, LUASITES_BITS) & ~1u];
}

/* Return a place, unless another function may have its PC by now. */
static LJ_AINLINE LuaSite *lj_luasites_valid(LuaSite *site, const FuncTab *ft)
{
  return LJ_LIKELY(site->freed == ft->freed &&
		   lj_functab_isrecent(ft, frame_payload_lo(site->word)))
	   ? site
	   : NULL;
}

/* Return the cached place of a PC that is not 0, or NULL. Async-signal-safe. */
static LJ_AINLINE LuaSite *lj_luasites_find(LuaSites *ls, const FuncTab *ft, uintptr_t pc)
{
  LuaSite *site = lj_luasites_slots(ls, pc);
  if (site->pc != pc && (++site)->pc != pc) return NULL;
  return lj_luasites_valid(site, ft);
}

/* Return the cached place for the frame at f. Usually the frame has the same place as in the
** last sample, so the processor need not wait for the PC.
*/
static LJ_AINLINE LuaSite *lj_luasites_at(LuaSites *ls, const FuncTab *ft, uintptr_t pc,
					  uintptr_t f)
{
  uint16_t *hint = &ls->hint[(f >> 3) & (LUASITES_HINTS - 1)];
  LuaSite *site = &ls->slot[*hint];
  if (LJ_UNLIKELY(site->pc != pc)) {
    site = lj_luasites_slots(ls, pc);
    if (site->pc != pc && (++site)->pc != pc) return NULL;
    *hint = (uint16_t)(site - ls->slot);
  }
  return lj_luasites_valid(site, ft);
}

/* Cache the place of a frame. pc must belong to the valid prototype, behind a readable
** instruction. Async-signal-safe.
*/
static LJ_AINLINE void lj_luasites_set(LuaSites *ls, const FuncTab *ft, const GCproto *pt,
				       uintptr_t pc, FrameWord word)
{
  LuaSite *site = lj_luasites_slots(ls, pc);
  const BCIns call = ((const BCIns *)pc)[-1];
  int is_constant = bc_op(call) == BC_CALL || bc_op(call) == BC_CALLM;
  if (site->pc != pc) site[1] = site[0];
  site->pc = pc;
  site->pt = pt;
  site->word = word;
  site->freed = ft->freed;
  site->delta = is_constant ? (uint16_t)((1 + LJ_FR2 + bc_a(call)) * sizeof(TValue)) : 0;
  site->is_named = 0;
}

#endif
