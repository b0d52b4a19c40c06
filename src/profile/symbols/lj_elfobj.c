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
#include "profile/symbols/lj_elfobj.h"

#define NOTES_MAX 64  /* Notes of an object that are read, */
#define PHDRS_MAX 128 /* and program headers. */

/* Path of code in the place of an object that was unloaded. */
#define NO_OBJECT_PATH "[anonymous]"

/* -- Identity ---------------------------------------------------------------- */

const uint8_t *lj_elfobj_buildid(SafeLoad *pk, const uint8_t *notes, size_t sz,
				 uint32_t *len)
{
  int i;
  for (i = 0; i < NOTES_MAX && sz >= sizeof(ElfW(Nhdr)); i++) {
    ElfW(Nhdr) n;
    const uint8_t *data = notes + sizeof(n);
    uint64_t name, desc;
    if (pk && !lj_safeload_ok(pk, notes, sizeof(n))) return NULL;
    memcpy(&n, notes, sizeof(n));
    sz -= sizeof(n);
    name = ((uint64_t)n.n_namesz + 3) & ~(uint64_t)3;
    desc = ((uint64_t)n.n_descsz + 3) & ~(uint64_t)3;
    if (sz < name || sz - name < n.n_descsz) return NULL;
    if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && n.n_descsz > 0 &&
	n.n_descsz <= ELFOBJ_ID_MAX && !(pk && !lj_safeload_ok(pk, data, 4 + n.n_descsz)) &&
	memcmp(data, "GNU", 4) == 0) {
      *len = n.n_descsz;
      return data + name;
    }
    if (sz - name < desc) return NULL;
    notes = data + name + desc;
    sz -= name + desc;
  }
  return NULL;
}

/* Hash of the bytes that tell an object from another one at the same place. */
static uint64_t id_hash(SafeLoad *pk, const ElfObj *o)
{
  const char *p = o->name;
  uint64_t h = o->idlen;
  uint32_t i;
  if (o->id && lj_safeload_ok(pk, o->id, o->idlen))
    for (i = 0; i < o->idlen; i++) h = hash_next(h, o->id[i]);
  for (i = 0; p && i < ELFOBJ_PATH_MAX; i++, p++) {
    if (!lj_safeload_ok(pk, p, 1) || !*p) break;
    h = hash_next(h, (uint8_t)*p);
  }
  return h;
}

/* Remember the identity of an object. */
static void take_id(SafeLoad *pk, ElfObj *o, const uint8_t *buildid, uint32_t len,
		    const char *name)
{
  if (buildid) {
    o->id = buildid;
    o->idlen = len;
  } else { /* Else the beginning of its unwind information, and its path. */
    o->id = (const uint8_t *)o->eh_frame;
    o->idlen = ELFOBJ_ID_MAX;
    o->name = name;
  }
  o->idhash = id_hash(pk, o);
}

int lj_elfobj_same(SafeLoad *pk, const ElfObj *o, const struct dl_find_object *dl)
{
  return o->map == (const void *)dl->dlfo_link_map &&
	 o->eh_frame == (const void *)dl->dlfo_eh_frame && o->idhash == id_hash(pk, o);
}

/* -- Paths ------------------------------------------------------------------- */

static size_t path_is(char *path, const char *name)
{
  size_t n = strlen(name);
  memcpy(path, name, n);
  return n;
}

/* Append the readable beginning of a name. */
static size_t path_append(SafeLoad *pk, char *path, size_t n, const char *name)
{
  for (; n < ELFOBJ_PATH_MAX - 1; n++, name++) {
    if (!lj_safeload_ok(pk, name, 1) || !*name) break;
    path[n] = *name;
  }
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
  if (start == (uintptr_t)getauxval(AT_SYSINFO_EHDR)) return path_is(path, "[vdso]");
  if (!name || !lj_safeload_ok(pk, name, 1)) return path_is(path, "[unknown]");
  if (!*name) return path_main(path);
  if (*name != '/') {
    long len = syscall(SYS_getcwd, path, ELFOBJ_PATH_MAX - 2);
    if (len > 1) { /* With the zero. */
      n = (size_t)len - 1;
      if (n > 1) path[n++] = '/';
    }
    if (lj_safeload_ok(pk, name, 2) && name[0] == '.' && name[1] == '/') name += 2;
  }
  return path_append(pk, path, n, name);
}

/* -- Descriptions ------------------------------------------------------------ */

/* Find the build-id by the program headers of an object. name is the dynamic
** linker's name for it.
*/
static void read_phdrs(SafeLoad *pk, ElfRecord *d, const ElfW(Phdr) * ph, int n,
		       const char *name)
{
  const uint8_t *id = NULL;
  uint32_t len = 0;
  int i;
  for (i = 0; i < n && i < PHDRS_MAX && !id; i++, ph++) {
    if (!lj_safeload_ok(pk, ph, sizeof(*ph))) break;
    if (ph->p_type == PT_NOTE)
      id = lj_elfobj_buildid(pk, (const uint8_t *)(d->bias + ph->p_vaddr), ph->p_memsz,
			     &len);
  }
  d->has_buildid = (id != NULL);
  take_id(pk, &d->obj, id, len, name);
}

void lj_elfobj_found(SafeLoad *pk, ElfRecord *d, const struct dl_find_object *dl)
{
  const struct link_map *map = dl->dlfo_link_map;
  const ElfW(Ehdr) *eh = (const ElfW(Ehdr) *)dl->dlfo_map_start;
  const ElfW(Phdr) *ph = NULL;
  const char *name;
  int n = 0;
  memset(&d->obj, 0, sizeof(d->obj));
  d->obj.start = (uintptr_t)dl->dlfo_map_start;
  d->obj.end = (uintptr_t)dl->dlfo_map_end;
  d->obj.map = map;
  d->obj.eh_frame = dl->dlfo_eh_frame;
  if (!lj_safeload_ok(pk, map, sizeof(*map))) map = NULL;
  d->bias = map ? map->l_addr : d->obj.start;
  /* The first segment begins with the headers of the file. */
  if (lj_safeload_ok(pk, eh, sizeof(*eh)) && memcmp(eh->e_ident, ELFMAG, SELFMAG) == 0 &&
      eh->e_phentsize == sizeof(*ph)) {
    ph = (const ElfW(Phdr) *)(d->obj.start + eh->e_phoff);
    n = eh->e_phnum;
  }
  name = map ? map->l_name : NULL;
  read_phdrs(pk, d, ph, n, name);
  d->pathlen = path_of(pk, d->path, d->obj.start, name);
}

void lj_elfobj_none(ElfRecord *d, const ElfObj *o)
{
  memset(&d->obj, 0, sizeof(d->obj));
  d->obj.start = o->start;
  d->obj.end = o->end;
  d->bias = 0;
  d->has_buildid = 0;
  d->pathlen = path_is(d->path, NO_OBJECT_PATH);
}

/* Does an object stay as long as this code does? */
static int stays(const ElfObj *o, const char *name)
{
  const uintptr_t own = (uintptr_t)&lj_elfobj_loaded, libc = (uintptr_t)&syscall;
  return !name[0] || o->start == (uintptr_t)getauxval(AT_SYSINFO_EHDR) ||
	 (own >= o->start && own < o->end) || (libc >= o->start && libc < o->end);
}

int lj_elfobj_range(const struct dl_phdr_info *info, uintptr_t *start, uintptr_t *end)
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

void lj_elfobj_loaded(SafeLoad *pk, ElfRecord *d, const struct dl_phdr_info *info,
		      const struct dl_find_object *dl)
{
  memset(&d->obj, 0, sizeof(d->obj));
  d->bias = info->dlpi_addr;
  lj_elfobj_range(info, &d->obj.start, &d->obj.end);
  if (dl) {
    d->obj.map = dl->dlfo_link_map;
    d->obj.eh_frame = dl->dlfo_eh_frame;
  }
  read_phdrs(pk, d, info->dlpi_phdr, info->dlpi_phnum, info->dlpi_name);
  d->obj.stays = stays(&d->obj, info->dlpi_name);
  d->pathlen = path_of(pk, d->path, d->obj.start, info->dlpi_name);
}
