/*
** Unwind table index for a program without one.
** Context: VM thread, under the lock; see the header.
*/

#define lj_ehindex_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For _dl_find_object. */
#endif
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/auxv.h>

#include "profile/base/lj_osloaded.h"
#include "profile/host/lj_ehframe.h"
#include "profile/host/lj_ehindex.h"

/* Limit of sections of a static program: (no unwind information) */
#define SECTIONS_MAX 4096
#define NAME         ".eh_frame"

/* -- Finding the section ------------------------------------------------------ */

static int read_at(int fd, uint64_t ofs, void *p, size_t len)
{
  return pread(fd, p, len, (off_t)ofs) == (ssize_t)len;
}

/* Find the section in the file. Returns 0 if there is none. */
static int section_find(int fd, Elf64_Ehdr *eh, Elf64_Shdr *sh)
{
  Elf64_Shdr names;
  char name[sizeof(NAME)];
  unsigned i;
  if (!read_at(fd, 0, eh, sizeof(*eh)) || memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0 ||
      eh->e_ident[EI_CLASS] != ELFCLASS64 || eh->e_shentsize != sizeof(*sh) ||
      eh->e_shnum > SECTIONS_MAX || eh->e_shstrndx >= eh->e_shnum ||
      !read_at(fd, eh->e_shoff + eh->e_shstrndx * sizeof(*sh), &names, sizeof(names)))
    return 0;
  for (i = 0; i < eh->e_shnum; i++)
    if (read_at(fd, eh->e_shoff + i * sizeof(*sh), sh, sizeof(*sh)) &&
	(sh->sh_flags & SHF_ALLOC) && sh->sh_type != SHT_NOBITS &&
	read_at(fd, names.sh_offset + sh->sh_name, name, sizeof(name)) &&
	memcmp(name, NAME, sizeof(name)) == 0)
      return 1;
  return 0;
}

/* Is this part of the program in its memory, and nobody writes it? */
static int is_loaded(uintptr_t bias, uintptr_t begin, uintptr_t size)
{
  const Elf64_Phdr *ph = (const Elf64_Phdr *)getauxval(AT_PHDR);
  unsigned long i, n = getauxval(AT_PHNUM);
  for (i = 0; ph && i < n; i++)
    if (ph[i].p_type == PT_LOAD && (ph[i].p_flags & PF_R) &&
	begin - (bias + ph[i].p_vaddr) <= ph[i].p_filesz &&
	size <= ph[i].p_filesz - (begin - (bias + ph[i].p_vaddr)))
      return 1;
  return 0;
}

/* -- Making the index ----------------------------------------------------------- */

static int entry_compare(const void *a, const void *b)
{
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return x < y ? -1 : x > y;
}

/* Write pairs as in .eh_frame_hdr, relative to begin. Returns how many there are. */
static uint32_t entries_write(const uint8_t *begin, size_t size, int32_t (*entry)[2])
{
  const uint8_t *p = begin, *end = begin + size;
  uint32_t n = 0, len;
  for (; (size_t)(end - p) >= 2 * sizeof(len); p += sizeof(len) + len) {
    uintptr_t pc;
    intptr_t to;
    memcpy(&len, p, sizeof(len));
    if (len > (size_t)(end - p) - sizeof(len)) break;
    if (!lj_ehframe_begin(p, &pc)) continue; /* A CIE, or the end. */
    to = (intptr_t)(pc - (uintptr_t)begin);
    if (to != (int32_t)to) continue;
    if (entry) {
      entry[n][0] = (int32_t)to;
      entry[n][1] = (int32_t)(p - begin);
    }
    n++;
  }
  return n;
}

static void index_make(const uint8_t *begin, size_t size, EhObject *obj)
{
  uint32_t n = entries_write(begin, size, NULL);
  int32_t(*entry)[2] = n ? (int32_t(*)[2])malloc(n * sizeof(*entry)) : NULL;
  if (!entry) return;
  entries_write(begin, size, entry);
  qsort(entry, n, sizeof(*entry), entry_compare);
  obj->hdr = begin;
  obj->table = (const uint8_t *)entry;
  obj->count = n;
  lj_ehframe_setindex(obj);
}

static int is_tried;

void lj_ehindex_warmup(void)
{
  struct dl_find_object found;
  uintptr_t entry = (uintptr_t)getauxval(AT_ENTRY);
  EhObject obj;
  Elf64_Ehdr eh;
  Elf64_Shdr sh;
  int fd;
  if (is_tried) return; /* Handlers may read the index by now. */
  is_tried = 1;
  if (osloaded_find(NULL, entry, &found) != 0 || found.dlfo_eh_frame) return;
  obj.map = found.dlfo_link_map;
  obj.stays = 1;
  obj.begin = (uintptr_t)found.dlfo_map_start;
  obj.end = (uintptr_t)found.dlfo_map_end;
  fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  if (section_find(fd, &eh, &sh)) {
    uintptr_t bias = entry - eh.e_entry;
    if (is_loaded(bias, bias + sh.sh_addr, sh.sh_size))
      index_make((const uint8_t *)(bias + sh.sh_addr), sh.sh_size, &obj);
  }
  close(fd);
}
