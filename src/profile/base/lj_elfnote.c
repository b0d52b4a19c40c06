/*
** Build-id of a loaded ELF object.
** Context: handler; see the header.
*/

#define lj_elfnote_c
#define LUA_CORE

#include <elf.h>
#include <link.h>
#include <string.h>

#include "profile/base/lj_elfnote.h"

/* Limit of notes of an object: (no build-id) */
#define NOTES_MAX 64
/* Limit of program headers of an object: (not read) */
#define PHDRS_MAX 128

static int load(SafeLoad *pk, void *to, const void *p, size_t sz)
{
  if (pk) return lj_safeload_copy(pk, to, p, sz);
  memcpy(to, p, sz);
  return 1;
}

const uint8_t *lj_elfnote_find(SafeLoad *pk, const uint8_t *notes, size_t sz, uint32_t *len)
{
  int i;
  for (i = 0; i < NOTES_MAX && sz >= sizeof(ElfW(Nhdr)); i++) {
    ElfW(Nhdr) n;
    const uint8_t *data = notes + sizeof(n);
    char owner[4];
    uint64_t name, desc;
    if (!load(pk, &n, notes, sizeof(n))) return NULL;
    sz -= sizeof(n);
    name = ((uint64_t)n.n_namesz + 3) & ~(uint64_t)3;
    desc = ((uint64_t)n.n_descsz + 3) & ~(uint64_t)3;
    if (sz < name || sz - name < n.n_descsz) return NULL;
    if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == sizeof(owner) && n.n_descsz > 0 &&
	n.n_descsz <= ELFNOTE_ID_MAX && load(pk, owner, data, sizeof(owner)) &&
	memcmp(owner, "GNU", sizeof(owner)) == 0) {
      *len = n.n_descsz;
      return data + name;
    }
    if (sz - name < desc) return NULL;
    notes = data + name + desc;
    sz -= name + desc;
  }
  return NULL;
}

const uint8_t *lj_elfnote_segments(SafeLoad *pk, const void *headers, uint32_t n,
				   uintptr_t bias, uint32_t *len)
{
  const ElfW(Phdr) *at = (const ElfW(Phdr) *)headers;
  const uint8_t *id = NULL;
  uint32_t i;
  for (i = 0; i < n && i < PHDRS_MAX && !id; i++, at++) {
    ElfW(Phdr) ph;
    if (!load(pk, &ph, at, sizeof(ph))) break;
    if (ph.p_type == PT_NOTE)
      id = lj_elfnote_find(pk, (const uint8_t *)(bias + ph.p_vaddr), ph.p_memsz, len);
  }
  return id;
}

const void *lj_elfnote_headers(SafeLoad *pk, uintptr_t start, uint32_t *n)
{
  ElfW(Ehdr) eh;
  if (!lj_safeload_copy(pk, &eh, (const void *)start, sizeof(eh)) ||
      memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 || eh.e_phentsize != sizeof(ElfW(Phdr)))
    return NULL;
  *n = eh.e_phnum;
  return (const void *)(start + eh.e_phoff);
}

uintptr_t lj_elfnote_bias(SafeLoad *pk, uintptr_t start, const void *headers, uint32_t n)
{
  const ElfW(Phdr) *at = (const ElfW(Phdr) *)headers;
  uint32_t i;
  for (i = 0; i < n && i < PHDRS_MAX; i++, at++) {
    ElfW(Phdr) ph;
    if (!lj_safeload_copy(pk, &ph, at, sizeof(ph))) break;
    if (ph.p_type == PT_LOAD) return start - (ph.p_vaddr & ~(uintptr_t)(SAFELOAD_PAGE - 1));
  }
  return start;
}
