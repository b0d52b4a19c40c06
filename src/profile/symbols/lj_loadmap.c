/*
** Load map of a session: which ELF objects are loaded, and where.
** Context: handler, VM thread; see the header.
*/

#define lj_loadmap_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For dl_iterate_phdr, _dl_find_object. */
#endif
#include <link.h>
#include <string.h>

#include "profile/base/lj_osloaded.h"
#include "profile/base/lj_osobjects.h"
#include "profile/symbols/lj_loadmap.h"

/* -- The map ----------------------------------------------------------------- */

/* Index of the first object that ends above an address. */
static uint32_t find_index(const LoadMap *lm, uintptr_t addr)
{
  uint32_t lo = 0, hi = lm->n;
  while (lo < hi) {
    uint32_t mid = (lo + hi) >> 1;
    if (lm->list[mid].obj.end <= addr) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

static LoadedObj *find(LoadMap *lm, uintptr_t addr)
{
  uint32_t i = find_index(lm, addr);
  return i < lm->n && lm->list[i].obj.start <= addr ? &lm->list[i] : NULL;
}

static void remove_at(LoadMap *lm, uint32_t i, uint32_t n)
{
  memmove(&lm->list[i], &lm->list[i + n], (lm->n - i - n) * sizeof(LoadedObj));
  lm->n -= n;
}

/* Make room for one more. The next sample in the removed object adds it again. */
static void forget_one(LoadMap *lm)
{
  uint32_t tries;
  for (tries = 0; tries < LOADMAP_MAX; tries++) {
    lm->oldest = (lm->oldest + 1) % LOADMAP_MAX;
    if (!lm->list[lm->oldest].obj.stays) break;
  }
  remove_at(lm, lm->oldest, 1);
}

/* Add an object to the map, and remove the objects that it overlaps. */
static void insert(LoadMap *lm, const ElfObj *o)
{
  uint32_t i = find_index(lm, o->start), n = 0;
  while (i + n < lm->n && lm->list[i + n].obj.start < o->end) n++;
  if (n) remove_at(lm, i, n);
  if (lm->n == LOADMAP_MAX) {
    forget_one(lm);
    i = find_index(lm, o->start);
  }
  memmove(&lm->list[i + 1], &lm->list[i], (lm->n - i) * sizeof(LoadedObj));
  lm->list[i].obj = *o;
  lm->list[i].sample = lm->sample;
  lm->n++;
}

/* Append the payload of an object's record. */
static void record_put(WBuf *wb, const void *def)
{
  const ElfRecord *d = (const ElfRecord *)def;
  lj_wbuf_uleb(wb, d->obj.start);
  lj_wbuf_uleb(wb, d->obj.end);
  lj_wbuf_uleb(wb, d->bias);
  lj_wbuf_str(wb, (const char *)d->id, d->idlen);
  lj_wbuf_str(wb, d->path, d->pathlen);
}

/* Add an object, and write its record. */
static void add(LoadMap *lm, const ElfRecord *d, const DefSink *to)
{
  insert(lm, &d->obj);
  lj_wbuf_define(to, SPF_MODULE, record_put, d);
}

/* -- At start and stop ------------------------------------------------------- */

typedef struct Note {
  LoadMap *lm;
  const DefSink *to;
} Note;

static int note_object(struct dl_phdr_info *info, size_t sz, void *arg)
{
  const Note *note = (const Note *)arg;
  LoadMap *lm = note->lm;
  struct dl_find_object dl;
  ElfRecord d;
  LoadedObj *have;
  uintptr_t start, end;
  int found;
  UNUSED(sz);
  if (!lj_osobjects_range(info, &start, &end)) return 0;
  lj_safeload_reset(lm->pk); /* It copies so many pages of each. */
  found = osloaded_describe(lm->pk, start, &dl) == 0;
  have = find(lm, start);
  if (have && (have->obj.stays || (found ? lj_elfobj_same(lm->pk, &have->obj, &dl)
					 : have->obj.id && !have->obj.map &&
					     lj_elfobj_remains(lm->pk, &have->obj))))
    return 0;
  d.path = lm->path;
  lj_elfobj_loaded(lm->pk, &d, info, found ? &dl : NULL);
  add(lm, &d, note->to);
  return 0;
}

void lj_loadmap_note(LoadMap *lm, const DefSink *to)
{
  Note note = { lm, to };
  lj_osloaded_renew();
  lm->sample++;
  dl_iterate_phdr(note_object, &note);
}

int lj_loadmap_has(LoadMap *lm, const struct dl_phdr_info *info)
{
  ElfRecord d;
  const LoadedObj *have;
  uintptr_t start, end;
  if (!lj_osobjects_range(info, &start, &end) || !(have = find(lm, start))) return 0;
  if (have->obj.stays) return 1;
  lj_safeload_reset(lm->pk);
  d.path = lm->path;
  lj_elfobj_loaded(lm->pk, &d, info, NULL);
  return have->obj.end == d.obj.end && have->obj.id == d.obj.id &&
	 have->obj.idhash == d.obj.idhash;
}

/* -- In the handler ---------------------------------------------------------- */

/* Our own table of objects is late: unknown code may be a library's. Without a place of its own, it would
** get the names of the library that is there later. So note the page of an address that is in no
** known object as none.
*/
static void page_of(const LoadMap *lm, uintptr_t addr, ElfRecord *d)
{
  uint32_t i = find_index(lm, addr);
  ElfObj o;
  o.start = addr & ~(uintptr_t)(SAFELOAD_PAGE - 1);
  o.end = o.start + SAFELOAD_PAGE;
  if (i > 0 && lm->list[i - 1].obj.end > o.start) o.start = lm->list[i - 1].obj.end;
  if (i < lm->n && lm->list[i].obj.start < o.end) o.end = lm->list[i].obj.start;
  lj_elfobj_none(d, &o);
}

/* Is the object of an address new? Describes it then. */
static int is_new(LoadMap *lm, uintptr_t addr, LoadedObj *have, ElfRecord *d)
{
  struct dl_find_object dl;
  d->path = lm->path;
  if (osloaded_describe(lm->pk, addr, &dl) != 0) {
    if (!have) { /* Still in no object. */
      if (LJ_LIKELY(!lj_osloaded_isown)) return 0;
      page_of(lm, addr, d);
      return 1;
    }
    have->sample = lm->sample;
    /* Already noted as none, or the dynamic linker tells of no such object. */
    if (!have->obj.map && lj_elfobj_remains(lm->pk, &have->obj)) return 0;
    lj_elfobj_none(d, &have->obj);
    return 1;
  }
  if (have && lj_elfobj_same(lm->pk, &have->obj, &dl)) {
    have->sample = lm->sample;
    return 0;
  }
  lj_elfobj_found(lm->pk, d, &dl);
  return d->obj.start <= addr && addr < d->obj.end;
}

/* Compare an address that is in no known object, or in one that this sample has not
** compared yet. Adds the object and returns 1 if it is new.
*/
static LJ_NOINLINE int compare(LoadMap *lm, uintptr_t addr, LoadedObj *have,
			       const DefSink *to)
{
  ElfRecord d;
  if (!is_new(lm, addr, have, &d)) return 0;
  add(lm, &d, to);
  return 1;
}

/* Add the objects of one side. */
static int sample_side(LoadMap *lm, const FrameList *fr, const DefSink *to)
{
  uintptr_t start = 0, end = 0; /* Of the object of the last frame. */
  uint32_t i;
  int news = 0;
  for (i = 0; i < fr->len; i++) {
    uintptr_t addr = frame_addr(fr->list[i]);
    LoadedObj *have;
    if (addr == 0 || (addr >= start && addr < end)) continue;
    have = find(lm, addr);
    if (!(have && (have->obj.stays || have->sample == lm->sample)) &&
	compare(lm, addr, have, to)) {
      have = find(lm, addr);
      news = 1;
    }
    start = have ? have->obj.start : addr;
    end = have ? have->obj.end : addr + 1;
  }
  return news;
}

int lj_loadmap_sample(LoadMap *lm, const FrameList *lua, const FrameList *host,
		      const DefSink *to)
{
  lj_safeload_reset(lm->pk);
  lm->sample++;
  return sample_side(lm, lua, to) | sample_side(lm, host, to);
}
