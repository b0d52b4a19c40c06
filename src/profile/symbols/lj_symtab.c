/*
** Symbols of a profile: what the handler notes about functions and addresses.
** Runs in the signal handler; the names are made in lj_symrecords.c.
*/

#define lj_symtab_c
#define LUA_CORE

#include "lj_obj.h"
#include "profile/symbols/lj_symtab.h"

/* Mix a value into a hash (the finalizer of SplitMix64). */
static uint64_t hash_mix(uint64_t h, uint64_t v)
{
  h ^= v;
  h = (h ^ (h >> 30)) * U64x(bf58476d, 1ce4e5b9);
  h = (h ^ (h >> 27)) * U64x(94d049bb, 133111eb);
  return h ^ (h >> 31);
}

/* First slot of a prototype. Its entries are told apart by their keys. */
static uint32_t lfunc_slot(const GCproto *pt)
{
  return (uint32_t)hash_mix(0, (uintptr_t)pt) & (SYMTAB_LFUNCS * 2 - 1);
}

uint32_t lj_symtab_lfunc(Symtab *st, SafeLoad *pk, const GCproto *pt)
{
  const uint32_t mask = SYMTAB_LFUNCS * 2 - 1;
  const GCstr *name = proto_chunkname(pt);
  uint64_t key;
  uint32_t i, home = lfunc_slot(pt), slot = ~(uint32_t)0;
  SymLFunc *lf, *old = NULL;
  if (!lj_safeload_vm(pk, name, sizeof(GCstr))) return 0;
  key = hash_mix((uintptr_t)pt, (uintptr_t)name);
  key = hash_mix(key, ((uint64_t)name->hash << 32) | name->len);
  key = hash_mix(key, ((uint64_t)(uint32_t)pt->firstline << 32) | (uint32_t)pt->numline);
  key = hash_mix(key, pt->sizebc);
  for (i = 0; i < SYMTAB_PROBES; i++) {
    uint32_t s = (home + i) & mask, e = st->index[s];
    if (e == 0) {
      if (slot == ~(uint32_t)0) slot = s;
      break;
    }
    lf = &st->lfunc[e - 1];
    if (lf->key == key && lf->pt == pt) {
      /* An old entry might be replaced later in the same sample: renew it. */
      if (lj_symtab_isrecent(st, lf->fid)) {
	st->last = e - 1;
	return lf->fid;
      }
      old = lf;
      slot = s;
      break;
    }
    if (!lf->pt && slot == ~(uint32_t)0) slot = s; /* Was freed. */
  }
  if (st->nfid == FRAME_PAYLOAD_LO_MAX) return 0;
  if (slot == ~(uint32_t)0) slot = home;
  st->nfid++;
  st->last = st->nfid % SYMTAB_LFUNCS;
  lf = &st->lfunc[st->last];
  if (old && old != lf) *lf = *old; /* Keeps its name. */
  else lf->site = lf->tries = lf->rank = lf->namelen = 0;
  lf->key = key;
  lf->pt = pt;
  lf->fid = st->nfid;
  lf->epoch = 0;
  st->index[slot] = (uint16_t)(st->last + 1);
  return lf->fid;
}

SymLFunc *lj_symtab_find(Symtab *st, const GCproto *pt)
{
  uint32_t i, home = lfunc_slot(pt);
  SymLFunc *found = NULL;
  for (i = 0; i < SYMTAB_PROBES; i++) {
    uint32_t e = st->index[(home + i) & (SYMTAB_LFUNCS * 2 - 1)];
    if (e == 0) break;
    if (st->lfunc[e - 1].pt == pt && (!found || st->lfunc[e - 1].fid > found->fid))
      found = &st->lfunc[e - 1];
  }
  return found;
}

void lj_symtab_free(Symtab *st, const GCproto *pt)
{
  uint32_t i, home = lfunc_slot(pt);
  st->freed++;
  for (i = 0; i < SYMTAB_PROBES; i++) {
    uint32_t e = st->index[(home + i) & (SYMTAB_LFUNCS * 2 - 1)];
    if (e == 0) break;
    if (st->lfunc[e - 1].pt == pt) st->lfunc[e - 1].pt = NULL;
  }
}

void lj_symtab_setname(SymLFunc *lf, SymNameRank rank, const NamePart *part, uint32_t n)
{
  uint32_t i, j, len = 0;
  if (rank <= lf->rank || n == 0) return;
  for (i = 0; i < n; i++) {
    if (i && len < SYMTAB_NAME_MAX) lf->name[len++] = '.';
    for (j = 0; j < part[i].len && len < SYMTAB_NAME_MAX; j++)
      lf->name[len++] = part[i].s[j];
  }
  lf->namelen = (uint8_t)len;
  lf->rank = (uint8_t)rank;
  lf->epoch = 0; /* To be defined anew. */
}

int lj_symtab_ismain(const GCproto *pt)
{
  return pt->firstline == 0 &&
	 (pt->numline != 0 ||
	  ((pt->flags & PROTO_VARARG) && pt->numparams == 0 && pt->sizeuv == 0));
}

/* The name as it is written: a main chunk needs none, and what has no lines has one. */
static void define_name(WBuf *wb, const SymLFunc *lf, const GCproto *pt)
{
  if (lj_symtab_ismain(pt)) lj_wbuf_str(wb, "", 0);
  else if (lf->namelen == 0 && pt->firstline == 0) lj_wbuf_str(wb, "?", 1);
  else lj_wbuf_str(wb, lf->name, lf->namelen);
}

void lj_symtab_define(Symtab *st, WBuf *wb, uint32_t fid, uint32_t epoch)
{
  SymLFunc *lf = &st->lfunc[fid % SYMTAB_LFUNCS];
  const GCproto *pt = lf->pt;
  const GCstr *chunk;
  size_t mark;
  if (lf->fid != fid || lf->epoch == epoch || !pt) return;
  lf->epoch = epoch;
  chunk = proto_chunkname(pt);
  mark = lj_wbuf_def_begin(wb, SPF_LFUNC);
  lj_wbuf_uleb(wb, fid);
  if (pt->firstline == ~(BCLine)0) { /* Builtin function made of bytecode. */
    lj_wbuf_uleb(wb, 1);
    lj_wbuf_uleb(wb, 1);
    lj_wbuf_str(wb, "=builtin", 8);
    lj_wbuf_str(wb, strdata(chunk), chunk->len < 64 ? chunk->len : 64);
  } else {
    lj_wbuf_uleb(wb, (uint32_t)pt->firstline);
    lj_wbuf_uleb(wb, (uint32_t)(pt->firstline + pt->numline));
    lj_wbuf_str(wb, strdata(chunk),
		chunk->len < SYMTAB_CHUNK_MAX ? chunk->len : SYMTAB_CHUNK_MAX);
    define_name(wb, lf, pt);
  }
  lj_wbuf_def_end(wb, mark);
}

static void addr_see(Symtab *st, uintptr_t addr)
{
  const uint32_t mask = SYMTAB_ADDRS - 1;
  uint32_t i, slot = (uint32_t)hash_mix(0, addr) & mask;
  for (i = 0; i < SYMTAB_PROBES; i++, slot = (slot + 1) & mask) {
    if (st->addr[slot] == addr) return;
    if (st->addr[slot] == 0) {
      st->addr[slot] = addr;
      st->naddr++;
      return;
    }
  }
}

void lj_symtab_see(Symtab *st, FrameWord w)
{
  switch (frame_kind(w)) {
  case SPF_FRAME_HOST:
  case SPF_FRAME_CFUNC: addr_see(st, (uintptr_t)frame_payload(w)); break;
  case SPF_FRAME_FFUNC: st->ffid[frame_payload(w) & 0xff] = 1; break;
  default: break;
  }
}
