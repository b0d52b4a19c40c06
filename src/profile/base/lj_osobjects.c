/*
** Loaded objects that nobody can unload.
** Context: any thread, under the lock for the warmup; see the header.
*/

#define lj_osobjects_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For dl_iterate_phdr. */
#endif
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include "profile/base/lj_osobjects.h"

#define OBJECTS_MAX 512 /* Objects that stay; others count as unloadable. */

typedef struct Range {
  uintptr_t begin, end;
} Range;

/* By address, without overlaps. Written by the first start, before the first sample. */
static Range staying[OBJECTS_MAX];
static uint32_t nstaying;

/* Index of the first range that ends above an address. */
static uint32_t range_index(uintptr_t addr)
{
  uint32_t lo = 0, hi = nstaying;
  while (lo < hi) {
    uint32_t mid = (lo + hi) >> 1;
    if (staying[mid].end <= addr) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

int lj_osobjects_stay(uintptr_t addr)
{
  uint32_t i = range_index(addr);
  return i < nstaying && staying[i].begin <= addr;
}

int lj_osobjects_range(const struct dl_phdr_info *info, uintptr_t *start, uintptr_t *end)
{
  int i;
  *start = ~(uintptr_t)0;
  *end = 0;
  for (i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
    uintptr_t at = info->dlpi_addr + ph->p_vaddr;
    if (ph->p_type != PT_LOAD) continue;
    if (at < *start) *start = at;
    if (at + ph->p_memsz > *end) *end = at + ph->p_memsz;
  }
  return *start < *end;
}

void *lj_osobjects_ehframe(const struct dl_phdr_info *info)
{
  int i;
  for (i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
      return (void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
  return NULL;
}

/* -- The objects of the start -------------------------------------------------- */

/* An object in the list of dl_iterate_phdr, which keeps it loaded during the scan. */
typedef struct Listed {
  Range range;
  const ElfW(Dyn) * dynamic; /* Ends with DT_NULL. */
  const char *strings;       /* Its names, NULL without any. */
  const char *file;          /* Name of its file, without the folder. */
  const char *soname;        /* Its own name, "" without one. */
} Listed;

/* The dynamic linker loads what the first object needs, then what the second one needs, and
** so on. The scan follows it.
*/
typedef struct Scan {
  uint32_t n;               /* Objects listed, */
  uint32_t nstart;          /* the first ones are certainly of the start. */
  uint32_t at;              /* Object whose needs are compared, */
  const ElfW(Dyn) * needed; /* and its next entry; NULL: the first one. */
  Listed list[OBJECTS_MAX];
} Scan;

static const ElfW(Dyn) no_entries = { DT_NULL, { 0 } };

/* A string of an object, "" if it is not in the object. */
static const char *string_at(const Listed *o, uintptr_t ofs)
{
  uintptr_t s = (uintptr_t)o->strings + ofs;
  return o->strings && s - o->range.begin < o->range.end - o->range.begin ? (const char *)s
									  : "";
}

static const char *without_folder(const char *name)
{
  const char *slash = strrchr(name, '/');
  return slash ? slash + 1 : name;
}

/* Describe an object. The dynamic linker has replaced the offset of the string table by its
** address, except in the vDSO.
*/
static void listed_read(Listed *o, const struct dl_phdr_info *info)
{
  uintptr_t bias = info->dlpi_addr, soname = 0;
  const ElfW(Dyn) * d;
  int i;
  o->dynamic = &no_entries;
  o->strings = NULL;
  for (i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
      o->dynamic = (const ElfW(Dyn) *)(bias + info->dlpi_phdr[i].p_vaddr);
  for (d = o->dynamic; d->d_tag != DT_NULL; d++) {
    if (d->d_tag == DT_SONAME) soname = d->d_un.d_val;
    if (d->d_tag != DT_STRTAB) continue;
    o->strings = (const char *)(d->d_un.d_ptr +
				(d->d_un.d_ptr < o->range.begin ? bias : 0));
  }
  o->file = without_folder(info->dlpi_name);
  o->soname = soname ? string_at(o, soname) : "";
}

static int listed_hasname(const Listed *o, const char *name)
{
  return strcmp(o->file, name) == 0 || strcmp(o->soname, name) == 0;
}

/* Next name that an object of the start needs, and that none of the first n objects has.
** Returns NULL if there is none.
*/
static const char *scan_needs(Scan *s, uint32_t n)
{
  for (; s->at < s->nstart; s->at++, s->needed = NULL) {
    const Listed *o = &s->list[s->at];
    if (!s->needed) s->needed = o->dynamic;
    for (; s->needed->d_tag != DT_NULL; s->needed++) {
      const char *name;
      uint32_t i = 0;
      if (s->needed->d_tag != DT_NEEDED) continue;
      name = without_folder(string_at(o, s->needed->d_un.d_val));
      while (i < n && !listed_hasname(&s->list[i], name)) i++;
      if (i == n) return name;
    }
  }
  return NULL;
}

static int range_has(const Range *r, unsigned long auxv)
{
  return (uintptr_t)getauxval(auxv) - r->begin < r->end - r->begin;
}

/* Returns 1 to end the scan. */
static int scan_object(struct dl_phdr_info *info, size_t sz, void *arg)
{
  Scan *s = (Scan *)arg;
  Listed *o = &s->list[s->n];
  const char *name;
  UNUSED(sz);
  if (s->n == OBJECTS_MAX) return 1;
  if (!lj_osobjects_range(info, &o->range.begin, &o->range.end)) return 0;
  listed_read(o, info);
  if (s->n++ == 0) {
    s->nstart = 1;
    return info->dlpi_name[0] != '\0'; /* In a namespace of dlmopen(). */
  }
  name = scan_needs(s, s->n - 1);
  if (!name) return 1; /* Nothing more was loaded at the start. */
  if (listed_hasname(o, name)) {
    s->nstart = s->n;
    return 0;
  }
  /* These may stand anywhere. LD_PRELOAD comes before what the program needs. */
  return !range_has(&o->range, AT_BASE) && !range_has(&o->range, AT_SYSINFO_EHDR) &&
	 s->nstart > 1;
}

#define OWN 5

typedef struct Addition {
  uint32_t nstart;    /* The next ones of the list that are of the start. */
  uintptr_t own[OWN]; /* Addresses in other objects that stay. */
} Addition;

/* Add an object if it stays. */
static int add_object(struct dl_phdr_info *info, size_t sz, void *arg)
{
  Addition *a = (Addition *)arg;
  Range r;
  int stays = a->nstart > 0, i;
  uint32_t at;
  UNUSED(sz);
  if (!lj_osobjects_range(info, &r.begin, &r.end)) return 0;
  if (a->nstart) a->nstart--;
  for (i = 0; i < OWN; i++) stays |= a->own[i] - r.begin < r.end - r.begin;
  at = range_index(r.begin);
  if (!stays || nstaying == OBJECTS_MAX || (at < nstaying && staying[at].begin < r.end))
    return 0;
  memmove(&staying[at + 1], &staying[at], (nstaying - at) * sizeof(Range));
  staying[at] = r;
  nstaying++;
  return 0;
}

void lj_osobjects_warmup(void)
{
  static Scan scan;
  Addition a;
  if (nstaying) return; /* Handlers may read the ranges by now. */
  dl_iterate_phdr(scan_object, &scan);
  a.nstart = scan.nstart;
  a.own[0] = (uintptr_t)(void *)lj_osobjects_warmup;
  a.own[1] = (uintptr_t)getauxval(AT_ENTRY);
  a.own[2] = (uintptr_t)(void *)memmove;            /* The C library, */
  a.own[3] = (uintptr_t)getauxval(AT_BASE);         /* the dynamic linker, */
  a.own[4] = (uintptr_t)getauxval(AT_SYSINFO_EHDR); /* the vDSO. */
  dl_iterate_phdr(add_object, &a);
}
