/*
** Load map of a session: which ELF objects are loaded, and where.
** Runs in the signal handler and, at start and stop, outside of it; see the
** header.
*/

#define lj_loadmap_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For dl_iterate_phdr, _dl_find_object. */
#endif
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "profile/symbols/lj_elfobj.h"

/* -- The map ----------------------------------------------------------------- */

/* Index of the first object that ends above an address. */
static uint32_t find_index(const Modules *ms, uintptr_t addr)
{
  uint32_t lo = 0, hi = ms->n;
  while (lo < hi) {
    uint32_t mid = (lo + hi) >> 1;
    if (ms->list[mid].end <= addr) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

static Module *find(Modules *ms, uintptr_t addr)
{
  uint32_t i = find_index(ms, addr);
  return i < ms->n && ms->list[i].start <= addr ? &ms->list[i] : NULL;
}

static void remove_at(Modules *ms, uint32_t i, uint32_t n)
{
  memmove(&ms->list[i], &ms->list[i + n], (ms->n - i - n) * sizeof(Module));
  ms->n -= n;
}

/* Make room for one more. What is forgotten is noted again when it is seen. */
static void forget_one(Modules *ms)
{
  uint32_t tries;
  for (tries = 0; tries < LOADMAP_MAX; tries++) {
    ms->oldest = (ms->oldest + 1) % LOADMAP_MAX;
    if (!ms->list[ms->oldest].stays) break;
  }
  remove_at(ms, ms->oldest, 1);
}

/* Take an object into the map, in place of those that it overlaps. */
static void insert(Modules *ms, const Module *m)
{
  uint32_t i = find_index(ms, m->start), n = 0;
  while (i + n < ms->n && ms->list[i + n].start < m->end) n++;
  if (n) remove_at(ms, i, n);
  if (ms->n == LOADMAP_MAX) {
    forget_one(ms);
    i = find_index(ms, m->start);
  }
  memmove(&ms->list[i + 1], &ms->list[i], (ms->n - i) * sizeof(Module));
  ms->list[i] = *m;
  ms->list[i].sample = ms->sample;
  ms->n++;
}

/* Write an object's record. It is noted also if that does not fit at all. */
static void put(Modules *ms, const ObjectRecord *d, WBuf *wb, DefCommit commit, void *ctx)
{
  int tries;
  insert(ms, &d->m);
  for (tries = 0; tries < 2; tries++) {
    size_t mark = lj_wbuf_def_begin(wb, SPF_MODULE);
    lj_wbuf_uleb(wb, d->m.start);
    lj_wbuf_uleb(wb, d->m.end);
    lj_wbuf_uleb(wb, d->bias);
    lj_wbuf_str(wb, (const char *)d->m.id, d->has_buildid ? d->m.idlen : 0);
    lj_wbuf_str(wb, ms->path, d->pathlen);
    lj_wbuf_def_end(wb, mark);
    if (commit(ctx)) return;
  }
}

/* -- At start and stop ------------------------------------------------------- */

typedef struct Note {
  Modules *ms;
  WBuf *wb;
  DefCommit commit;
  void *ctx;
} Note;

static int note_object(struct dl_phdr_info *info, size_t sz, void *arg)
{
  Note *note = (Note *)arg;
  Modules *ms = note->ms;
  struct dl_find_object obj;
  ObjectRecord d;
  Module *have;
  int found;
  UNUSED(sz);
  if (!lj_elfobj_range(info, &d)) return 0;
  found = _dl_find_object((void *)d.m.start, &obj) == 0;
  have = find(ms, d.m.start);
  if (have && (have->stays || (found ? lj_elfobj_same(ms, have, &obj) : !have->map)))
    return 0;
  lj_elfobj_loaded(ms, &d, info, found ? &obj : NULL);
  put(ms, &d, note->wb, note->commit, note->ctx);
  return 0;
}

void lj_loadmap_note(Modules *ms, WBuf *wb, DefCommit commit, void *ctx)
{
  Note note = { ms, wb, commit, ctx };
  lj_safeload_reset(&ms->pk);
  ms->sample++;
  dl_iterate_phdr(note_object, &note);
}

/* -- In the handler ---------------------------------------------------------- */

/* Compare an address that is not in a known range, or in one that was not
** looked at in this sample. Returns 1 if there is something new, described.
*/
static int is_new(Modules *ms, uintptr_t addr, Module *m, ObjectRecord *d)
{
  struct dl_find_object obj;
  if (_dl_find_object((void *)addr, &obj) != 0) {
    if (!m) return 0; /* In no object, as ever. */
    m->sample = ms->sample;
    if (!m->map) return 0;
    lj_elfobj_none(ms, d, m);
    return 1;
  }
  if (m && lj_elfobj_same(ms, m, &obj)) {
    m->sample = ms->sample;
    return 0;
  }
  lj_elfobj_found(ms, d, &obj);
  return d->m.start <= addr && addr < d->m.end;
}

/* Note the objects of one side. */
static int sample_side(Modules *ms, const FrameList *fr, WBuf *wb, DefCommit commit,
		       void *ctx)
{
  uintptr_t start = 0, end = 0; /* Of the object of the last frame. */
  uint32_t i;
  int news = 0;
  for (i = 0; i < fr->len; i++) {
    uintptr_t addr = (uintptr_t)frame_payload(fr->list[i]);
    int kind = frame_kind(fr->list[i]);
    ObjectRecord d;
    Module *m;
    if ((kind != SPF_FRAME_HOST && kind != SPF_FRAME_CFUNC) ||
	(addr >= start && addr < end))
      continue;
    m = find(ms, addr);
    if (!(m && (m->stays || m->sample == ms->sample)) && is_new(ms, addr, m, &d)) {
      put(ms, &d, wb, commit, ctx);
      m = find(ms, addr);
      news = 1;
    }
    start = m ? m->start : addr;
    end = m ? m->end : addr + 1;
  }
  return news;
}

int lj_loadmap_sample(Modules *ms, const FrameList *lua, const FrameList *host, WBuf *wb,
		      DefCommit commit, void *ctx)
{
  lj_safeload_reset(&ms->pk);
  ms->sample++;
  return sample_side(ms, lua, wb, commit, ctx) | sample_side(ms, host, wb, commit, ctx);
}
