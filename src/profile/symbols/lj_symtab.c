/*
** Symbol table of a session: functions, addresses and builtins that were seen.
** Context: handler.
*/

#define lj_symtab_c
#define LUA_CORE

#include <string.h>

#include "lj_obj.h"
#include "profile/base/lj_hash.h"
#include "profile/symbols/lj_symtab.h"

/* Append the name: "" for a main chunk, and "?" for a nameless function without lines. */
static void put_name(WBuf *wb, const FuncText *t)
{
  if (lj_functab_ismain(t->head)) lj_wbuf_str(wb, "", 0);
  else if (t->namelen == 0 && t->head->firstline == 0) lj_wbuf_str(wb, "?", 1);
  else lj_wbuf_str(wb, t->name, t->namelen);
}

void lj_symtab_puttext(WBuf *wb, const FuncText *t)
{
  lj_wbuf_uleb(wb, t->fid);
  if (t->head->firstline == ~(BCLine)0) { /* Builtin function made of bytecode. */
    lj_wbuf_uleb(wb, 1);
    lj_wbuf_uleb(wb, 1);
    lj_wbuf_str(wb, "=builtin", 8);
    if (functab_isbuiltin(t->name, t->namelen, t->chunk, t->chunklen))
      lj_wbuf_str(wb, t->name, t->namelen);
    else lj_wbuf_str(wb, t->chunk, t->chunklen < 64 ? t->chunklen : 64);
  } else {
    lj_wbuf_uleb(wb, (uint32_t)t->head->firstline);
    lj_wbuf_uleb(wb, (uint32_t)(t->head->firstline + t->head->numline));
    lj_wbuf_str(wb, t->chunk,
		t->chunklen < FUNCTAB_CHUNK_MAX ? t->chunklen : FUNCTAB_CHUNK_MAX);
    put_name(wb, t);
    if (t->pathlen) lj_wbuf_str(wb, t->path, t->pathlen);
  }
}

void lj_symtab_putfunc(WBuf *wb, const void *named)
{
  const NamedFunc *nf = (const NamedFunc *)named;
  const FuncEntry *fe = nf->fe;
  const GCstr *chunk = proto_chunkname(fe->pt);
  FuncText text = { fe->fid,     fe->pt,     strdata(chunk),
		    chunk->len,  fe->name,   functab_path(nf->ft, fe),
		    fe->namelen, fe->pathlen };
  lj_symtab_puttext(wb, &text);
}

/* -- Definitions of functions ------------------------------------------------ */

int lj_symtab_addfunc(const FuncTab *ft, Batch *b, FuncEntry *fe)
{
  NamedFunc named = { ft, fe };
  size_t mark;
  if (!fe->pt) return 1; /* Freed: no sample can have it. */
  lj_batch_def_begin(b);
  mark = lj_wbuf_def_begin(&b->def, SPF_LFUNC);
  lj_symtab_putfunc(&b->def, &named);
  lj_wbuf_def_end(&b->def, mark);
  if (!lj_batch_def_end(b, fe->fid, fe->rank)) return 0;
  fe->batch = b->number;
  return 1;
}

int lj_symtab_addpayload(Batch *b, uint32_t fid, uint32_t rank, const uint8_t *payload,
			 uint32_t len)
{
  size_t mark;
  lj_batch_def_begin(b);
  mark = lj_wbuf_def_begin(&b->def, SPF_LFUNC);
  lj_wbuf_bytes(&b->def, payload, len);
  lj_wbuf_def_end(&b->def, mark);
  return lj_batch_def_end(b, fid, rank);
}

static FuncDef *def_of(Symtab *st, uint32_t fid)
{
  FuncDef *d = symtab_def(st, fid);
  if (d->fid != fid) {
    memset(d, 0, sizeof(*d));
    d->fid = fid;
  }
  return d;
}

void lj_symtab_note(Symtab *st, const Batch *b, uint32_t at)
{
  const RawDef *raw = (const RawDef *)batch_at(b, at);
  FuncDef *d = def_of(st, raw->id);
  st->has_funcs = 1;
  if (raw->rank > d->rank) d->epoch = 0; /* To be defined anew. */
  d->batch = b->number;
  d->at = at;
}

void lj_symtab_define(Symtab *st, const Batch *b, WBuf *wb, uint32_t fid, uint32_t epoch)
{
  FuncDef *d = def_of(st, fid);
  const RawDef *raw;
  if (d->epoch == epoch) return;
  if (d->batch != b->number) {
    d->at = lj_batch_find(b, SPF_LFUNC, fid);
    d->batch = b->number;
  }
  if (d->at == BATCH_SIZE) return;
  raw = (const RawDef *)batch_at(b, d->at);
  d->epoch = epoch;
  d->rank = raw->rank;
  lj_wbuf_bytes(wb, rawdef_bytes(raw), raw->len);
}

/* -- Addresses and builtins --------------------------------------------------- */

/* Add an address to a table. Returns 1 if the table did not have it, -1 without room. */
static int addr_add(uintptr_t *table, int bits, uintptr_t addr)
{
  uint32_t i, slot = hash_slot(addr, bits);
  for (i = 0; i < SYMTAB_PROBES; i++, slot = (slot + 1) & ((1u << bits) - 1)) {
    if (table[slot] == addr) return 0;
    if (table[slot] == 0) {
      table[slot] = addr;
      return 1;
    }
  }
  return -1;
}

static int addr_has(const uintptr_t *table, int bits, uintptr_t addr)
{
  uint32_t i, slot = hash_slot(addr, bits);
  for (i = 0; i < SYMTAB_PROBES; i++, slot = (slot + 1) & ((1u << bits) - 1))
    if (table[slot] == addr || table[slot] == 0) return table[slot] == addr;
  return 0;
}

int lj_symtab_has(const Symtab *st, uintptr_t addr)
{
  return st->has_moved ? addr_has(st->more->addr, SYMTAB_MORE_BITS, addr)
		       : addr_has(st->addr, SYMTAB_BITS, addr);
}

/* Without room, all addresses move to the larger table. */
static void addr_see(Symtab *st, uintptr_t addr)
{
  int added = -1;
  uint32_t i;
  if (!st->has_moved) {
    added = addr_add(st->addr, SYMTAB_BITS, addr);
    if (added < 0 && st->more) {
      for (i = 0; i < SYMTAB_ADDRS; i++)
	if (st->addr[i]) addr_add(st->more->addr, SYMTAB_MORE_BITS, st->addr[i]);
      st->has_moved = 1;
    }
  }
  if (st->has_moved) added = addr_add(st->more->addr, SYMTAB_MORE_BITS, addr);
  if (added > 0) st->naddr++;
}

void lj_symtab_see(Symtab *st, FrameWord w)
{
  switch (frame_kind(w)) {
  case SPF_FRAME_HOST:
  case SPF_FRAME_CFUNC:
  case SPF_FRAME_CLOSURE: addr_see(st, frame_addr(w)); break;
  case SPF_FRAME_FFUNC: st->ffid[frame_payload(w) & 0xff] = 1; break;
  default: break;
  }
}
