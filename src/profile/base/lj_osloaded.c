/*
** Loaded objects by address: the table for C libraries without _dl_find_object(3).
** Context: handler, under the lock for renew; see the header.
*/

#define lj_osloaded_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For dl_iterate_phdr, _dl_find_object. */
#endif
#include <link.h>
#include <string.h>

#include "profile/base/lj_elfnote.h"
#include "profile/base/lj_hash.h"
#include "profile/base/lj_osloaded.h"
#include "profile/base/lj_osobjects.h"
#include "profile/base/lj_relaxed.h"

#define TRIES_MAX 4 /* Searches of the table for one address. */

#define ASKED_BITS  6
#define PAGENO_BITS (SAFELOAD_ADDR_BITS - SAFELOAD_PAGE_BITS)

/* The first words of the dynamic linker's description: l_addr and l_name. */
typedef struct MapHead {
  uintptr_t addr;
  uintptr_t name;
} MapHead;

typedef struct Loaded {
  uintptr_t begin, end; /* Addresses, from the first page on. */
  void *map;            /* The dynamic linker's description, or NULL. */
  void *eh_frame;       /* Index of the unwind information, or NULL. */
  MapHead head;
  const uint8_t *id;    /* Bytes that tell it from another object. */
  uint64_t idhash;      /* Hash of them. */
  uint32_t idlen;       /* Number of them, 0: nobody unloads the object. */
  uint32_t has_buildid; /* They are its build-id. */
} Loaded;

typedef struct Table {
  uint32_t n;
  Loaded list[OSLOADED_MAX]; /* By address, without overlaps. */
} Table;

int lj_osloaded_isown;

/* Tables of an even and of an odd number. The one in use has the number of the last change. */
static Table tables[2];
static uint32_t generation;

/* -- Identity ---------------------------------------------------------------- */

/* Hash the identity as the memory is now. Returns 0 if it is not readable. */
static int identity(SafeLoad *pk, const Loaded *o, uint64_t *hash)
{
  uint8_t id[ELFNOTE_ID_MAX];
  if (!lj_safeload_copy(pk, id, o->id, o->idlen)) return 0;
  *hash = hash_bytes(0, id, id + o->idlen);
  return 1;
}

/* Is the object still at its addresses? */
static int remains(SafeLoad *pk, const Loaded *o)
{
  uint64_t hash;
  return o->idlen == 0 || (identity(pk, o, &hash) && hash == o->idhash);
}

/* Does the dynamic linker still describe it there? */
static int is_described(SafeLoad *pk, const Loaded *o)
{
  MapHead head;
  return o->idlen == 0 || o->has_buildid || !o->map ||
	 (lj_safeload_copy(pk, &head, o->map, sizeof(head)) && head.addr == o->head.addr &&
	  head.name == o->head.name);
}

/* Choose the bytes that identify an object. Returns 0 if they are not readable. */
static int identify(SafeLoad *pk, Loaded *o, const struct dl_phdr_info *info)
{
  uint32_t len = 0;
  o->idlen = 0;
  if (lj_osobjects_stay(o->begin)) return 1;
  o->id = lj_elfnote_segments(pk, info->dlpi_phdr, info->dlpi_phnum, info->dlpi_addr, &len);
  o->has_buildid = (o->id != NULL);
  o->idlen = o->id ? len : ELFNOTE_ID_MAX;
  if (!o->id) o->id = (const uint8_t *)(o->eh_frame ? o->eh_frame : (void *)o->begin);
  return identity(pk, o, &o->idhash);
}

/* -- Search ------------------------------------------------------------------ */

/* Index of the first object that ends above an address. */
static uint32_t find_index(const Table *t, uint32_t n, uintptr_t addr)
{
  uint32_t lo = 0, hi = n;
  while (lo < hi) {
    uint32_t mid = (lo + hi) >> 1;
    if (relaxed_get(&t->list[mid].end) <= addr) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/* Copy the object of an address. A renewal may overwrite the array during the search, but not
** in a single one: so this finds an array that stays as it is.
*/
static int table_search(uintptr_t addr, Loaded *o)
{
  int tries;
  for (tries = 0; tries < TRIES_MAX; tries++) {
    uint32_t number = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
    const Table *t = &tables[number & 1];
    uint32_t n = relaxed_get(&t->n), i = find_index(t, n, addr);
    if (i < n) *o = t->list[i];
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* The processor keeps the order of loads. */
    if (relaxed_get(&generation) == number)
      return i < n && o->begin <= addr && addr < o->end;
  }
  return 0;
}

int lj_osloaded_search(SafeLoad *pk, uintptr_t addr, struct dl_find_object *found,
		       int described)
{
  Loaded o;
  if (!table_search(addr, &o) || (pk && !remains(pk, &o)) ||
      (described && !is_described(pk, &o)))
    return -1;
  memset(found, 0, sizeof(*found));
  found->dlfo_map_start = (void *)o.begin;
  found->dlfo_map_end = (void *)o.end;
  found->dlfo_link_map = (struct link_map *)o.map;
  found->dlfo_eh_frame = o.eh_frame;
  return 0;
}

int lj_osloaded_miss(uintptr_t addr)
{
  static uint64_t asked[1 << ASKED_BITS];
  uint64_t pageno = addr >> SAFELOAD_PAGE_BITS;
  uint64_t now = (uint64_t)relaxed_get(&generation) << PAGENO_BITS | pageno;
  uint64_t *slot = &asked[hash_slot(pageno, ASKED_BITS)];
  if (!lj_osloaded_isown || relaxed_get(slot) == now) return 0;
  relaxed_set(slot, now);
  return 1;
}

/* -- Renewal ----------------------------------------------------------------- */

/* Under the lock, as all of this part. */
static const struct r_debug *debug;
static unsigned long long adds = ~0ull, subs; /* Objects loaded and unloaded so far. */

/* dl_iterate_phdr calls for one object after the other. No object changes meanwhile. */
typedef struct Scan {
  Table *to;                  /* NULL until there is a change. */
  const struct link_map *map; /* Description of the next object. */
  unsigned long long adds, subs;
} Scan;

/* The dynamic linker's description of an object. Both lists have the same order. */
static void *map_of(Scan *s, const struct dl_phdr_info *info)
{
  const struct link_map *m = s->map;
  while (m && !(m->l_addr == info->dlpi_addr && m->l_name == info->dlpi_name))
    m = m->l_next;
  if (m) s->map = m->l_next;
  return (void *)(uintptr_t)m;
}

static void table_add(Table *t, const Loaded *o)
{
  uint32_t i = find_index(t, t->n, o->begin);
  if (t->n == OSLOADED_MAX || (i < t->n && t->list[i].begin < o->end)) return;
  memmove(&t->list[i + 1], &t->list[i], (t->n - i) * sizeof(Loaded));
  t->list[i] = *o;
  t->n++;
}

/* Begin with the first object. Returns 0 if nothing has changed. */
static int scan_begin(Scan *s, const struct dl_phdr_info *info)
{
  if (info->dlpi_adds == adds && info->dlpi_subs == subs) return 0;
  s->adds = info->dlpi_adds;
  s->subs = info->dlpi_subs;
  s->map = debug ? debug->r_map : NULL;
  s->to = &tables[(generation + 1) & 1];
  s->to->n = 0;
  return 1;
}

/* Returns 1 to end the scan. */
static int scan_object(struct dl_phdr_info *info, size_t sz, void *arg)
{
  static SafeLoad pk;
  Scan *s = (Scan *)arg;
  Loaded o;
  UNUSED(sz);
  if (!s->to && !scan_begin(s, info)) return 1;
  memset(&o, 0, sizeof(o));
  o.map = map_of(s, info);
  if (!lj_osobjects_range(info, &o.begin, &o.end)) return 0;
  o.eh_frame = lj_osobjects_ehframe(info);
  o.head.addr = info->dlpi_addr;
  o.head.name = (uintptr_t)info->dlpi_name;
  lj_safeload_reset(&pk); /* It copies so many pages of each. */
  if (!identify(&pk, &o, info)) return 0;
  o.begin &= ~(uintptr_t)(SAFELOAD_PAGE - 1);
  table_add(s->to, &o);
  return 0;
}

void lj_osloaded_renew(void)
{
  Scan s = { NULL, NULL, 0, 0 };
  if (!lj_osloaded_isown) return;
  /* The array's last use ended before this renewal writes to it. */
  __atomic_signal_fence(__ATOMIC_SEQ_CST); /* The processor keeps the order of stores. */
  dl_iterate_phdr(scan_object, &s);
  if (!s.to) return;
  __atomic_store_n(&generation, generation + 1, __ATOMIC_RELEASE);
  adds = s.adds;
  subs = s.subs;
}

void lj_osloaded_use(const struct r_debug *maps)
{
  debug = maps;
  lj_osloaded_isown = 1;
}
