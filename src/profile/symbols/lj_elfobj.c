/*
** What is loaded: ELF objects, as they are in memory.
** Runs in the signal handler and, at start and stop, outside of it; see the
** header.
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

#include "profile/symbols/lj_elfobj.h"

#define NOTES_MAX 64  /* Notes of an object that are looked at, */
#define PHDRS_MAX 128 /* and program headers. */

/* Where an object was that is gone, something else runs now. */
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
	n.n_descsz <= LOADMAP_ID_MAX &&
	!(pk && !lj_safeload_ok(pk, data, 4 + n.n_descsz)) && memcmp(data, "GNU", 4) == 0) {
      *len = n.n_descsz;
      return data + name;
    }
    if (sz - name < desc) return NULL;
    notes = data + name + desc;
    sz -= name + desc;
  }
  return NULL;
}

static LJ_AINLINE uint64_t hash_next(uint64_t h, uint8_t b)
{
  h = (h ^ b) * U64x(9e3779b9, 7f4a7c15);
  return h ^ (h >> 29);
}

/* Hash of what tells an object from another one at the same place. */
static uint64_t id_hash(Modules *ms, const Module *m)
{
  const char *p = m->name;
  uint64_t h = m->idlen;
  uint32_t i;
  if (m->id && lj_safeload_ok(&ms->pk, m->id, m->idlen))
    for (i = 0; i < m->idlen; i++) h = hash_next(h, m->id[i]);
  for (i = 0; p && i < LOADMAP_PATH_MAX; i++, p++) {
    if (!lj_safeload_ok(&ms->pk, p, 1) || !*p) break;
    h = hash_next(h, (uint8_t)*p);
  }
  return h;
}

/* Note by what to recognise an object. */
static void take_id(Modules *ms, Module *m, const uint8_t *buildid, uint32_t len,
		    const char *name)
{
  if (buildid) {
    m->id = buildid;
    m->idlen = len;
  } else { /* How its unwind information begins, and its path, have to do. */
    m->id = (const uint8_t *)m->eh_frame;
    m->idlen = LOADMAP_ID_MAX;
    m->name = name;
  }
  m->idhash = id_hash(ms, m);
}

int lj_elfobj_same(Modules *ms, const Module *m, const struct dl_find_object *obj)
{
  return m->map == (const void *)obj->dlfo_link_map &&
	 m->eh_frame == (const void *)obj->dlfo_eh_frame && m->idhash == id_hash(ms, m);
}

/* -- Paths ------------------------------------------------------------------- */

static size_t path_is(Modules *ms, const char *name)
{
  size_t n = strlen(name);
  memcpy(ms->path, name, n);
  return n;
}

/* Append to the path what can be read of a name. */
static size_t path_append(Modules *ms, size_t n, const char *name)
{
  for (; n < LOADMAP_PATH_MAX - 1; n++, name++) {
    if (!lj_safeload_ok(&ms->pk, name, 1) || !*name) break;
    ms->path[n] = *name;
  }
  return n;
}

/* The path of the program: that of a file that was deleted is still its own. */
static size_t path_main(Modules *ms)
{
  static const char deleted[] = " (deleted)";
  const size_t dn = sizeof(deleted) - 1;
  ssize_t n = readlink("/proc/self/exe", ms->path, LOADMAP_PATH_MAX - 1);
  if (n <= 0) return path_is(ms, "[main]");
  if ((size_t)n > dn && memcmp(ms->path + n - dn, deleted, dn) == 0) n -= (ssize_t)dn;
  return (size_t)n;
}

/* The path of an object by the dynamic linker's name for it. A relative one is
** taken from the current folder, which is usually where it was loaded from.
*/
static size_t path_of(Modules *ms, uintptr_t start, const char *name)
{
  size_t n = 0;
  if (start == (uintptr_t)getauxval(AT_SYSINFO_EHDR)) return path_is(ms, "[vdso]");
  if (!name || !lj_safeload_ok(&ms->pk, name, 1)) return path_is(ms, "[unknown]");
  if (!*name) return path_main(ms);
  if (*name != '/') {
    long len = syscall(SYS_getcwd, ms->path, LOADMAP_PATH_MAX - 2);
    if (len > 1) { /* With the zero. */
      n = (size_t)len - 1;
      if (n > 1) ms->path[n++] = '/';
    }
    if (lj_safeload_ok(&ms->pk, name, 2) && name[0] == '.' && name[1] == '/') name += 2;
  }
  return path_append(ms, n, name);
}

/* -- Descriptions ------------------------------------------------------------ */

/* Find the build-id by the program headers of an object. name is the dynamic
** linker's name for it.
*/
static void read_phdrs(Modules *ms, ObjectRecord *d, const ElfW(Phdr) * ph, int n,
		       const char *name)
{
  const uint8_t *id = NULL;
  uint32_t len = 0;
  int i;
  for (i = 0; i < n && i < PHDRS_MAX && !id; i++, ph++) {
    if (!lj_safeload_ok(&ms->pk, ph, sizeof(*ph))) break;
    if (ph->p_type == PT_NOTE)
      id = lj_elfobj_buildid(&ms->pk, (const uint8_t *)(d->bias + ph->p_vaddr), ph->p_memsz,
			     &len);
  }
  d->has_buildid = (id != NULL);
  take_id(ms, &d->m, id, len, name);
}

void lj_elfobj_found(Modules *ms, ObjectRecord *d, const struct dl_find_object *obj)
{
  const struct link_map *map = obj->dlfo_link_map;
  const ElfW(Ehdr) *eh = (const ElfW(Ehdr) *)obj->dlfo_map_start;
  const ElfW(Phdr) *ph = NULL;
  const char *name;
  int n = 0;
  memset(d, 0, sizeof(*d));
  d->m.start = (uintptr_t)obj->dlfo_map_start;
  d->m.end = (uintptr_t)obj->dlfo_map_end;
  d->m.map = map;
  d->m.eh_frame = obj->dlfo_eh_frame;
  if (!lj_safeload_ok(&ms->pk, map, sizeof(*map))) map = NULL;
  d->bias = map ? map->l_addr : d->m.start;
  /* The first segment begins with the headers of the file. */
  if (lj_safeload_ok(&ms->pk, eh, sizeof(*eh)) &&
      memcmp(eh->e_ident, ELFMAG, SELFMAG) == 0 && eh->e_phentsize == sizeof(*ph)) {
    ph = (const ElfW(Phdr) *)(d->m.start + eh->e_phoff);
    n = eh->e_phnum;
  }
  name = map ? map->l_name : NULL;
  read_phdrs(ms, d, ph, n, name);
  d->pathlen = path_of(ms, d->m.start, name);
}

void lj_elfobj_none(Modules *ms, ObjectRecord *d, const Module *m)
{
  memset(d, 0, sizeof(*d));
  d->m.start = m->start;
  d->m.end = m->end;
  d->pathlen = path_is(ms, NO_OBJECT_PATH);
}

/* Does an object stay as long as this code does? */
static int stays(const Module *m, const char *name)
{
  const uintptr_t own = (uintptr_t)&lj_elfobj_loaded, libc = (uintptr_t)&syscall;
  return !name[0] || m->start == (uintptr_t)getauxval(AT_SYSINFO_EHDR) ||
	 (own >= m->start && own < m->end) || (libc >= m->start && libc < m->end);
}

int lj_elfobj_range(const struct dl_phdr_info *info, ObjectRecord *d)
{
  int i;
  memset(d, 0, sizeof(*d));
  d->bias = info->dlpi_addr;
  d->m.start = ~(uintptr_t)0;
  for (i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
    uintptr_t at = d->bias + ph->p_vaddr;
    if (ph->p_type != PT_LOAD) continue;
    if (at < d->m.start) d->m.start = at;
    if (at + ph->p_memsz > d->m.end) d->m.end = at + ph->p_memsz;
  }
  return d->m.start < d->m.end;
}

void lj_elfobj_loaded(Modules *ms, ObjectRecord *d, const struct dl_phdr_info *info,
		      const struct dl_find_object *obj)
{
  if (obj) {
    d->m.map = obj->dlfo_link_map;
    d->m.eh_frame = obj->dlfo_eh_frame;
  }
  read_phdrs(ms, d, info->dlpi_phdr, info->dlpi_phnum, info->dlpi_name);
  d->m.stays = stays(&d->m, info->dlpi_name);
  d->pathlen = path_of(ms, d->m.start, info->dlpi_name);
}
