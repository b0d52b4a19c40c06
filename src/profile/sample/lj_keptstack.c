/*
** Kept stack: the stack of a thread that sleeps, until its sample goes into the stream.
** Context: under the lock, outside of the handler.
*/

#define lj_keptstack_c
#define LUA_CORE

#include <string.h>

#include "lj_obj.h"
#include "profile/sample/lj_keptstack.h"
#include "profile/symbols/lj_symtab.h"

/* A definition. Its payload follows. */
typedef struct KeptDef {
  uint32_t fid, rank, len;
} KeptDef;

static void words_copy(FrameWord *to, uint32_t *n, const FrameList *fr)
{
  memcpy(to, fr->list, fr->len * sizeof(FrameWord));
  *n = fr->len;
}

void lj_keptstack_set(KeptStack *ks, const FrameList *lua, const FrameList *host)
{
  words_copy(ks->lua_word, &ks->nlua, lua);
  words_copy(ks->host_word, &ks->nhost, host);
}

int lj_keptstack_define(KeptStack *ks, const SleepFunc *fn, const FuncTab *ft,
			const FuncEntry *fe)
{
  FuncText text = { fe->fid,      &fn->head,  fn->chunk,
		    fn->chunklen, fe->name,   functab_path(ft, fe),
		    fe->namelen,  fe->pathlen };
  KeptDef head = { fe->fid, fe->rank, 0 };
  uint32_t at = ks->ndef + (uint32_t)sizeof(head);
  WBuf wb;
  memset(&wb, 0, sizeof(wb));
  if (at > KEPTSTACK_DEFS) return 0;
  wb.buf = ks->defs + at;
  wb.cap = KEPTSTACK_DEFS - at;
  lj_symtab_puttext(&wb, &text);
  if (wb.overflow) return 0;
  head.len = (uint32_t)wb.pos;
  memcpy(ks->defs + ks->ndef, &head, sizeof(head));
  ks->ndef = at + head.len;
  return 1;
}

int lj_keptstack_capture(const KeptStack *ks, Batch *b)
{
  uint32_t at = 0;
  while (at < ks->ndef) {
    KeptDef head;
    memcpy(&head, ks->defs + at, sizeof(head));
    at += (uint32_t)sizeof(head);
    if (lj_batch_find(b, SPF_LFUNC, head.fid) == BATCH_SIZE &&
	!lj_symtab_addpayload(b, head.fid, head.rank, ks->defs + at, head.len))
      return 0;
    at += head.len;
  }
  return 1;
}

void lj_keptstack_get(const KeptStack *ks, FrameWord leaf, FrameList *lua, FrameList *host)
{
  memcpy(lua->list, ks->lua_word, ks->nlua * sizeof(FrameWord));
  lua->list[0] = leaf;
  lua->len = lua->n = ks->nlua;
  memcpy(host->list, ks->host_word, ks->nhost * sizeof(FrameWord));
  host->len = host->n = ks->nhost;
}
