/*
** Loaded ELF objects, by their headers in memory.
** Context: handler, VM thread; see the header.
*/

#define lj_elfobj_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For struct dl_find_object. */
#endif
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <unistd.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#include "profile/base/lj_hash.h"
#include "profile/base/lj_osobjects.h"
#include "profile/symbols/lj_elfobj.h"

/* Path of the code that follows an unloaded object at its addresses. */
#define NO_OBJECT_PATH "[anonymous]"

/* -- Identity ---------------------------------------------------------------- */

#define CHUNK 128 /* Bytes of a name that are copied at once. */

/* Copy the beginning of a string, less than max bytes, without the zero. Returns its
** length; the string ends early where it is not readable.
*/
static size_t string_copy(SafeLoad *pk, char *to, const char *p, size_t max)
{
  size_t n = 0;
  while (n < max - 1) {
    size_t k = SAFELOAD_PAGE - ((uintptr_t)(p + n) & (SAFELOAD_PAGE - 1)), len;
    if (k > CHUNK) k = CHUNK;
    if (k > max - 1 - n) k = max - 1 - n;
    if (!lj_safeload_copy(pk, to + n, p + n, k)) break;
    len = strnlen(to + n, k);
    n += len;
    if (len < k) break;
  }
  return n;
}

/* Hash of the bytes that distinguish an object from another one at the same addresses. */
static uint64_t id_hash(SafeLoad *pk, const ElfObj *o)
{
  uint8_t id[ELFOBJ_ID_MAX];
  char name[CHUNK];
  uint64_t h = o->idlen;
  size_t i, n = sizeof(name) - 1, at;
  if (o->id && lj_safeload_copy(pk, id, o->id, o->idlen))
    for (i = 0; i < o->idlen; i++) h = hash_next(h, id[i]);
  for (at = 0; o->name && n == sizeof(name) - 1 && at < ELFOBJ_PATH_MAX; at += n) {
    n = string_copy(pk, name, o->name + at, sizeof(name));
    for (i = 0; i < n; i++) h = hash_next(h, (uint8_t)name[i]);
  }
  return h;
}

/* Remember the identity of an object. */
static void take_id(SafeLoad *pk, ElfRecord *d, const uint8_t *buildid, uint32_t len,
		    const char *name)
{
  ElfObj *o = &d->obj;
  d->idlen = 0;
  if (buildid && lj_safeload_copy(pk, d->id, buildid, len)) {
    o->id = buildid;
    o->idlen = d->idlen = len;
  } else { /* Else the beginning of its unwind information, and its path. */
    o->id = (const uint8_t *)o->eh_frame;
    o->idlen = ELFOBJ_ID_MAX;
    o->name = name;
  }
  o->idhash = id_hash(pk, o);
}

int lj_elfobj_remains(SafeLoad *pk, const ElfObj *o)
{
  return o->idhash == id_hash(pk, o);
}

int lj_elfobj_same(SafeLoad *pk, const ElfObj *o, const struct dl_find_object *dl)
{
  return o->map == (const void *)dl->dlfo_link_map &&
	 o->eh_frame == (const void *)dl->dlfo_eh_frame && lj_elfobj_remains(pk, o);
}

/* -- Paths ------------------------------------------------------------------- */

static size_t path_is(char *path, const char *name)
{
  size_t n = strlen(name);
  memcpy(path, name, n);
  return n;
}

/* The path of the program, even if its file was deleted. */
static size_t path_main(char *path)
{
  static const char deleted[] = " (deleted)";
  const size_t dn = sizeof(deleted) - 1;
  ssize_t n = readlink("/proc/self/exe", path, ELFOBJ_PATH_MAX - 1);
  if (n <= 0) return path_is(path, "[main]");
  if ((size_t)n > dn && memcmp(path + n - dn, deleted, dn) == 0) n -= (ssize_t)dn;
  return (size_t)n;
}

/* The path of an object, from the dynamic linker's name for it. A relative name begins
** at the current folder, where the program has most often loaded it.
*/
static size_t path_of(SafeLoad *pk, char *path, uintptr_t start, const char *name)
{
  size_t n = 0;
  char first[2] = { 0, 0 };
  if (start == (uintptr_t)getauxval(AT_SYSINFO_EHDR)) return path_is(path, "[vdso]");
  if (!name || !lj_safeload_copy(pk, first, name, 1)) return path_is(path, "[unknown]");
  if (!first[0]) return path_main(path);
  if (first[0] != '/') {
    long len = syscall(SYS_getcwd, path, ELFOBJ_PATH_MAX - 2);
    if (len > 1) { /* With the zero. */
      n = (size_t)len - 1;
      if (n > 1) path[n++] = '/';
    }
    if (lj_safeload_copy(pk, first, name, 2) && first[0] == '.' && first[1] == '/')
      name += 2;
  }
  return n + string_copy(pk, path + n, name, ELFOBJ_PATH_MAX - n);
}

/* -- Descriptions ------------------------------------------------------------ */

void lj_elfobj_found(SafeLoad *pk, ElfRecord *d, const struct dl_find_object *dl)
{
  struct link_map map;
  const void *ph;
  const uint8_t *id = NULL;
  const char *name = NULL;
  uint32_t n = 0, len = 0;
  memset(&d->obj, 0, sizeof(d->obj));
  d->obj.start = (uintptr_t)dl->dlfo_map_start;
  d->obj.end = (uintptr_t)dl->dlfo_map_end;
  d->obj.map = dl->dlfo_link_map;
  d->obj.eh_frame = dl->dlfo_eh_frame;
  d->bias = d->obj.start;
  if (lj_safeload_copy(pk, &map, dl->dlfo_link_map, sizeof(map))) {
    d->bias = map.l_addr;
    name = map.l_name;
  }
  /* The first segment begins with the headers of the file. */
  ph = lj_elfnote_headers(pk, d->obj.start, &n);
  if (ph) id = lj_elfnote_segments(pk, ph, n, d->bias, &len);
  take_id(pk, d, id, len, name);
  d->pathlen = path_of(pk, d->path, d->obj.start, name);
}

void lj_elfobj_none(ElfRecord *d, const ElfObj *o)
{
  memset(&d->obj, 0, sizeof(d->obj));
  d->obj.start = o->start;
  d->obj.end = o->end;
  d->bias = 0;
  d->idlen = 0;
  d->pathlen = path_is(d->path, NO_OBJECT_PATH);
}

void lj_elfobj_loaded(SafeLoad *pk, ElfRecord *d, const struct dl_phdr_info *info,
		      const struct dl_find_object *dl)
{
  const uint8_t *id;
  uint32_t len = 0;
  memset(&d->obj, 0, sizeof(d->obj));
  d->bias = info->dlpi_addr;
  lj_osobjects_range(info, &d->obj.start, &d->obj.end);
  if (dl) d->obj.map = dl->dlfo_link_map;
  d->obj.eh_frame = lj_osobjects_ehframe(info);
  id = lj_elfnote_segments(pk, info->dlpi_phdr, info->dlpi_phnum, d->bias, &len);
  take_id(pk, d, id, len, info->dlpi_name);
  d->obj.stays = lj_osobjects_stay(d->obj.start);
  d->pathlen = path_of(pk, d->path, d->obj.start, info->dlpi_name);
}
