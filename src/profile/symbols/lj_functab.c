/*
** Function ids: a small number for each Lua function that samples refer to.
** Context: handler; see the header.
*/

#define lj_functab_c
#define LUA_CORE

#include <string.h>

#include "lj_obj.h"
#include "profile/base/lj_hash.h"
#include "profile/capture/lj_framelist.h"
#include "profile/symbols/lj_functab.h"

#define INDEX_BITS (FUNCTAB_BITS + 1) /* Of the hash table. */
#define INDEX_MASK (FUNCTAB_FUNCS * 2 - 1)

/* First slot of a prototype. Entries of one prototype have different keys. */
static uint32_t func_slot(const GCproto *pt)
{
  return hash_slot((uintptr_t)pt, INDEX_BITS);
}

uint64_t lj_functab_key(const GCproto *pt, const GCproto *head, const GCstr *name)
{
  uint64_t key = hash_next(0, (uintptr_t)pt);
  key = hash_next(key, (uintptr_t)proto_chunkname(head));
  key = hash_next(key, ((uint64_t)name->hash << 32) | name->len);
  key = hash_next(key,
		  ((uint64_t)(uint32_t)head->firstline << 32) | (uint32_t)head->numline);
  return hash_next(key, head->sizebc);
}

/* Has the entry of an id a function that was not freed? */
static int is_live(FuncTab *ft, uint32_t fid)
{
  const FuncEntry *fe = lj_functab_entry(ft, fid);
  return fe->fid != 0 && fe->pt != NULL;
}

/* Return the next id whose entry is free or may be replaced, 0 if there are no more ids. Entries
** become live only here. So a run of them was seen when it was half a table ahead, before any
** could be replaced, and the loop ends.
*/
static uint32_t next_id(FuncTab *ft)
{
  uint32_t fid = ft->nfid;
  do {
    if (fid == FRAME_PAYLOAD_LO_MAX) return 0;
    fid++;
    ft->run = is_live(ft, fid + FUNCTAB_FUNCS / 2) ? ft->run + 1 : 0;
    if (ft->run == FUNCTAB_RUN) ft->is_full = 1;
  } while (!ft->is_full && is_live(ft, fid));
  return fid;
}

FuncEntry *lj_functab_see(FuncTab *ft, SafeLoad *pk, const GCproto *pt)
{
  const GCstr *name = proto_chunkname(pt);
  if (!lj_safeload_vm(pk, name, sizeof(GCstr))) return NULL;
  return lj_functab_get(ft, pt, lj_functab_key(pt, pt, name));
}

FuncEntry *lj_functab_get(FuncTab *ft, const GCproto *pt, uint64_t key)
{
  uint32_t i, home = func_slot(pt), slot = ~(uint32_t)0, fid;
  FuncEntry *fe, *old = NULL;
  for (i = 0; i < FUNCTAB_PROBES; i++) {
    uint32_t s = (home + i) & INDEX_MASK, e = ft->index[s];
    if (e == 0) {
      if (slot == ~(uint32_t)0) slot = s;
      break;
    }
    fe = &ft->func[e - 1];
    if (fe->key == key && fe->pt == pt) {
      /* The same sample might replace an old entry later: renew it. */
      if (lj_functab_isrecent(ft, fe->fid)) return fe;
      old = fe;
      slot = s;
      break;
    }
    if ((!fe->pt || ft->at[e - 1] != s) && slot == ~(uint32_t)0)
      slot = s; /* Its function was freed, or has another slot. */
  }
  fid = next_id(ft);
  if (fid == 0) return NULL;
  if (slot == ~(uint32_t)0) slot = home;
  ft->nfid = fid;
  fe = lj_functab_entry(ft, fid);
  if (old && old != fe) { /* Keeps its name. */
    *fe = *old;
    if (old->pathlen) memcpy(ft->path[fe - ft->func], functab_path(ft, old), old->pathlen);
  } else {
    fe->body = 0;
    fe->site = fe->tries = fe->rank = fe->namelen = fe->pathlen = fe->height = 0;
  }
  fe->key = key;
  fe->pt = pt;
  fe->fid = fid;
  fe->batch = 0;
  ft->index[slot] = (uint16_t)(fe - ft->func + 1);
  ft->at[fe - ft->func] = (uint16_t)slot;
  return fe;
}

FuncEntry *lj_functab_find(FuncTab *ft, const GCproto *pt)
{
  uint32_t i, home = func_slot(pt);
  FuncEntry *found = NULL;
  for (i = 0; i < FUNCTAB_PROBES; i++) {
    uint32_t e = ft->index[(home + i) & INDEX_MASK];
    if (e == 0) break;
    if (ft->func[e - 1].pt == pt && (!found || ft->func[e - 1].fid > found->fid))
      found = &ft->func[e - 1];
  }
  return found;
}

void lj_functab_drop(FuncTab *ft, uint32_t fid)
{
  FuncEntry *fe = lj_functab_entry(ft, fid);
  if (fe->fid == fid) fe->pt = NULL;
}

void lj_functab_free(FuncTab *ft, const GCproto *pt)
{
  uint32_t i, home = func_slot(pt);
  /* A thread that adds an entry meanwhile sees that, or this thread sees the entry. */
  __atomic_add_fetch(&ft->freed, 1, __ATOMIC_SEQ_CST);
  for (i = 0; i < FUNCTAB_PROBES; i++) {
    uint32_t e = ft->index[(home + i) & INDEX_MASK];
    if (e == 0) break;
    if (ft->func[e - 1].pt == pt) ft->func[e - 1].pt = NULL;
  }
}

void lj_functab_marked(FuncTab *ft, global_State *g)
{
  if (lj_cfunctab_marked(&ft->cfuncs, g))
    __atomic_add_fetch(&ft->freed, 1, __ATOMIC_SEQ_CST);
}

void lj_functab_join(NameText *to, const NamePart *part, uint32_t n, char last)
{
  uint32_t i, j, len = 0;
  for (i = 0; i < n; i++) {
    if (i && len < FUNCTAB_NAME_MAX) to->s[len++] = i + 1 == n ? last : '.';
    for (j = 0; j < part[i].len && len < FUNCTAB_NAME_MAX; j++) to->s[len++] = part[i].s[j];
  }
  to->len = (uint8_t)len;
}

/* Set the name. Returns 0 if there is one of this or a better rank. */
static int set_name(FuncEntry *fe, NameRank rank, const NameText *name)
{
  if (rank <= fe->rank) return 0;
  memcpy(fe->name, name->s, name->len);
  fe->namelen = name->len;
  fe->pathlen = 0;
  fe->rank = (uint8_t)rank;
  fe->batch = 0; /* To be defined anew. */
  return 1;
}

void lj_functab_settext(FuncTab *ft, FuncEntry *fe, NameRank rank, const NameText *name,
			const NameText *path)
{
  if (!set_name(fe, rank, name) || !path) return;
  memcpy(ft->path[fe - ft->func], path->s, path->len);
  fe->pathlen = path->len;
}

void lj_functab_setname(FuncEntry *fe, NameRank rank, const NamePart *part, uint32_t n)
{
  NameText name;
  if (rank <= fe->rank || n == 0) return;
  lj_functab_join(&name, part, n, '.');
  set_name(fe, rank, &name);
}

int lj_functab_ismain(const GCproto *pt)
{
  return pt->firstline == 0 &&
	 (pt->numline != 0 ||
	  ((pt->flags & PROTO_VARARG) && pt->numparams == 0 && pt->sizeuv == 0));
}
