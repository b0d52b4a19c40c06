/*
** Kept stack: the stack of a thread that sleeps, until its sample goes into the stream.
** Context: under the lock, outside of the handler.
**
** The functions on it may be freed before. So it has their definitions, too.
*/

#ifndef _LJ_KEPTSTACK_H
#define _LJ_KEPTSTACK_H

#include "profile/capture/lj_batch.h"
#include "profile/labels/lj_labelread.h"
#include "profile/lua/lj_luasleep.h"

#define KEPTSTACK_DEFS 16384 /* Bytes of definitions. */

typedef struct KeptStack {
  int state; /* SPF_VMST_*. */
  LuaResult lua;
  int host_broken, host_refused; /* As in HostWalk. */
  LabelCopy labels;
  uint32_t nlua, nhost;
  FrameWord lua_word[FRAMELIST_MAX], host_word[FRAMELIST_MAX];
  uint32_t ndef; /* Bytes of defs. */
  uint8_t defs[KEPTSTACK_DEFS];
} KeptStack;

/* Keep a walked stack: completed lists of frames, whose Lua functions have their ids. The first word
** of the Lua side is the place of the leaf. Its definitions have been added.
*/
LJ_FUNC void lj_keptstack_set(KeptStack *ks, const FrameList *lua, const FrameList *host);

/* Add the definition of a Lua function. Returns 0 if there is no room. */
LJ_FUNC int lj_keptstack_define(KeptStack *ks, const SleepFunc *fn, const FuncTab *ft,
				const FuncEntry *fe);

/* Append the definitions to a batch. Returns 0 if it has no room. */
LJ_FUNC int lj_keptstack_capture(const KeptStack *ks, Batch *b);

/* Fill in the lists of a sample, with the leaf of the Lua side. */
LJ_FUNC void lj_keptstack_get(const KeptStack *ks, FrameWord leaf, FrameList *lua,
			      FrameList *host);

#endif
