/*
** Stubs of the procedure linkage table (PLT): the functions that they jump to.
** Context: VM thread; see the header.
*/

#define lj_elfstub_c
#define LUA_CORE

#include <elf.h>
#include <link.h>
#include <string.h>

#include "profile/symbols/lj_elfstub.h"

#define STUB_SIZE  16 /* Bytes of a stub, */
#define SMALL_STUB 8  /* and of one in .plt.got. */

typedef struct Image {
  const uint8_t *p;
  size_t size;
  const ElfW(Shdr) * section;
  uint32_t nsection;
} Image;

/* Bytes of a section, NULL if they are not all in the file. */
static const uint8_t *section_bytes(const Image *im, const ElfW(Shdr) * s)
{
  return s->sh_type != SHT_NOBITS && s->sh_offset <= im->size &&
	     s->sh_size <= im->size - s->sh_offset && (s->sh_offset & 7) == 0
	   ? im->p + s->sh_offset
	   : NULL;
}

/* Section that is linked to another one. */
static const ElfW(Shdr) * section_link(const Image *im, const ElfW(Shdr) * s)
{
  return s->sh_link < im->nsection ? &im->section[s->sh_link] : NULL;
}

/* Is this a section of stubs: .plt, .plt.sec, .plt.got? */
static int has_stubs(const Image *im, const ElfW(Shdr) * s)
{
  static const char *const names[] = { ".plt", ".plt.sec", ".plt.got" };
  const ElfW(Ehdr) *eh = (const ElfW(Ehdr) *)im->p;
  const ElfW(Shdr) *strings = eh->e_shstrndx < im->nsection ? &im->section[eh->e_shstrndx]
							    : NULL;
  size_t i;
  if (!strings || strings->sh_offset > im->size ||
      strings->sh_size > im->size - strings->sh_offset || s->sh_name >= strings->sh_size)
    return 0;
  for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    size_t len = strlen(names[i]) + 1;
    if (len <= strings->sh_size - s->sh_name &&
	memcmp(im->p + strings->sh_offset + s->sh_name, names[i], len) == 0)
      return (s->sh_flags & SHF_EXECINSTR) != 0;
  }
  return 0;
}

/* -- The stub's slot ----------------------------------------------------------- */

/* Does code begin with these bytes? Then skip n bytes of it. */
static int skip(const uint8_t **p, const uint8_t *end, const void *bytes, size_t len,
		size_t n)
{
  if ((size_t)(end - *p) < n || memcmp(*p, bytes, len) != 0) return 0;
  *p += n;
  return 1;
}

/* Address of the slot that the stub at an address jumps by, 0 for none. */
static uint64_t stub_slot(const uint8_t *code, size_t size, uint64_t addr)
{
  const uint8_t *p = code, *end = code + size;
  int32_t distance;
  skip(&p, end, "\xf3\x0f\x1e\xfa", 4, 4); /* endbr64 */
  skip(&p, end, "A\xbb", 2, 6);            /* mov $number,%r11d */
  skip(&p, end, "\xf2", 1, 1);             /* bnd */
  if (!skip(&p, end, "\xff%", 2, 6)) return 0;
  memcpy(&distance, p - sizeof(distance), sizeof(distance));
  return addr + (uint64_t)(p - code) + (uint64_t)(int64_t)distance;
}

/* -- The slot's name ------------------------------------------------------------ */

/* Symbols of the dynamic linker, with their names. */
typedef struct Symbols {
  const ElfW(Shdr) * section;
  const ElfW(Sym) * list;
  uint64_t n;
  const char *names;
  uint64_t namesz;
} Symbols;

static int symbols_find(const Image *im, Symbols *sy)
{
  uint32_t i;
  for (i = 0; i < im->nsection; i++) {
    const ElfW(Shdr) *s = &im->section[i], *strings = section_link(im, s);
    if (s->sh_type != SHT_DYNSYM || !strings || strings->sh_offset > im->size ||
	strings->sh_size > im->size - strings->sh_offset)
      continue;
    sy->section = s;
    sy->list = (const ElfW(Sym) *)section_bytes(im, s);
    sy->n = s->sh_size / sizeof(*sy->list);
    sy->names = (const char *)(im->p + strings->sh_offset);
    sy->namesz = strings->sh_size;
    return sy->list != NULL;
  }
  return 0;
}

/* Symbol whose address the dynamic linker writes by a relocation, NULL if it has none. */
static const ElfW(Sym) *
  reloc_symbol(const Symbols *sy, const ElfW(Rela) * r, int is_of_symbols)
{
  uint64_t i, type = ELF64_R_TYPE(r->r_info);
  if (type == R_X86_64_IRELATIVE) { /* By the function that chooses the code. */
    for (i = 1; i < sy->n; i++)
      if (ELF64_ST_TYPE(sy->list[i].st_info) == STT_GNU_IFUNC &&
	  sy->list[i].st_value == (uint64_t)r->r_addend)
	return &sy->list[i];
    return NULL;
  }
  i = ELF64_R_SYM(r->r_info);
  return is_of_symbols && (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT) &&
	     i > 0 && i < sy->n
	   ? &sy->list[i]
	   : NULL;
}

static void slot_name(const Image *im, uint64_t slot, ElfStub *stub)
{
  Symbols sy;
  uint32_t i;
  if (slot == 0 || !symbols_find(im, &sy)) return;
  for (i = 0; i < im->nsection; i++) {
    const ElfW(Shdr) *s = &im->section[i];
    const ElfW(Rela) *r = s->sh_type == SHT_RELA ? (const ElfW(Rela) *)section_bytes(im, s)
						 : NULL;
    uint64_t k, n = r ? s->sh_size / sizeof(*r) : 0;
    for (k = 0; k < n; k++) {
      const ElfW(Sym) *sym = r[k].r_offset == slot
			       ? reloc_symbol(&sy, &r[k], section_link(im, s) == sy.section)
			       : NULL;
      if (!sym || sym->st_name >= sy.namesz || !sy.names[sym->st_name]) continue;
      stub->name = sy.names + sym->st_name;
      stub->max = sy.namesz - sym->st_name;
      return;
    }
  }
}

/* -- API ------------------------------------------------------------------------- */

int lj_elfstub_find(const uint8_t *image, size_t size, uint64_t addr, ElfStub *stub)
{
  const ElfW(Ehdr) *eh = (const ElfW(Ehdr) *)image;
  const Image im = { image, size, (const ElfW(Shdr) *)(image + eh->e_shoff), eh->e_shnum };
  uint32_t i;
  for (i = 0; i < im.nsection; i++) {
    const ElfW(Shdr) *s = &im.section[i];
    uint64_t each = s->sh_entsize == SMALL_STUB ? SMALL_STUB : STUB_SIZE, at;
    const uint8_t *code;
    if (addr < s->sh_addr || addr - s->sh_addr >= s->sh_size || !has_stubs(&im, s) ||
	!(code = section_bytes(&im, s)))
      continue;
    at = (addr - s->sh_addr) / each * each;
    stub->start = s->sh_addr + at;
    stub->name = NULL;
    slot_name(
      &im,
      stub_slot(code + at, s->sh_size - at < each ? s->sh_size - at : each, stub->start),
      stub);
    return 1;
  }
  return 0;
}
