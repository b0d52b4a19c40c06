/*
** Entries of a file's section .debug_frame: the file, the entries, their instructions.
** Context: any thread, outside of the handler; see the header.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "libunwind/debug_frame.h"

#define SECTION ".debug_frame"
/* Limit of a section `.debug_frame`, in bytes: (not read) */
#define SECTION_MAX (64u << 20)
/* Limit of sections of a file with `.debug_frame`: (not read) */
#define SECTIONS_MAX 65535
/* Limit of program headers of a file with `.debug_frame`: (not read) */
#define PROGRAM_MAX 64
/* Limit of notes of a file with `.debug_frame`, in bytes: (not read) */
#define NOTES_MAX 65536
/* Limit of entries of `.debug_frame`: (not read) */
#define ENTRIES_MAX (1u << 20)
/* Limit of the instructions of an entry of `.debug_frame`, in bytes: (left out) */
#define CODE_MAX 4096
/* Limit of the code of an entry of `.debug_frame`, in bytes: (left out) */
#define FUNCTION_MAX (64u << 20)
/* Limit of the depth of remember_state in `.debug_frame`: (left out) */
#define STATES_MAX 8
/* Limit of a number in the instructions of `.debug_frame`: (left out) */
#define OPERAND_MAX    (1u << 28)
#define CIE_ID         0xffffffffu
#define LENGTH_64      0xfffffff0u /* Lengths from here on mean something else. */
#define RETURN_ADDRESS 16

/* -- Bytes --------------------------------------------------------------------- */

/* A bounded run of bytes. After an overrun, bad is set and reads give 0. */
typedef struct Reader {
  const uint8_t *p, *end;
  int bad;
} Reader;

static uint64_t read_uint(Reader *r, size_t size)
{
  uint64_t v = 0;
  if ((size_t)(r->end - r->p) < size) {
    r->bad = 1;
    return 0;
  }
  memcpy(&v, r->p, size);
  r->p += size;
  return v;
}

/* An unsigned LEB128, or the bits of a signed one. */
static uint64_t read_leb(Reader *r, int is_signed)
{
  uint64_t v = 0;
  unsigned shift = 0;
  while (r->p < r->end) {
    uint8_t c = *r->p++;
    if (shift < 64) v |= (uint64_t)(c & 0x7f) << shift;
    shift += 7;
    if (c & 0x80) continue;
    if (is_signed && shift < 64 && (c & 0x40)) v |= ~(uint64_t)0 << shift;
    return v;
  }
  r->bad = 1;
  return 0;
}

/* -- The file ------------------------------------------------------------------- */

typedef struct File {
  int fd;
  uint64_t size;
  Elf64_Ehdr eh;
  Elf64_Phdr ph[PROGRAM_MAX];
} File;

static int read_at(const File *f, uint64_t ofs, void *to, size_t len)
{
  return ofs <= f->size && len <= f->size - ofs &&
	 pread(f->fd, to, len, (off_t)ofs) == (ssize_t)len;
}

/* A new copy of a part of the file, or NULL. */
static void *read_new(const File *f, uint64_t ofs, uint64_t len, uint64_t max)
{
  void *p = len > 0 && len <= max && len <= f->size ? malloc((size_t)len) : NULL;
  if (p && !read_at(f, ofs, p, (size_t)len)) {
    free(p);
    p = NULL;
  }
  return p;
}

static int file_open(File *f, const char *path)
{
  struct stat st;
  f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (f->fd < 0) return 0;
  if (fstat(f->fd, &st) == 0 && S_ISREG(st.st_mode)) {
    f->size = (uint64_t)st.st_size;
    if (read_at(f, 0, &f->eh, sizeof(f->eh)) &&
	memcmp(f->eh.e_ident, ELFMAG, SELFMAG) == 0 &&
	f->eh.e_ident[EI_CLASS] == ELFCLASS64 && f->eh.e_machine == EM_X86_64 &&
	f->eh.e_phentsize == sizeof(Elf64_Phdr) && f->eh.e_phnum <= PROGRAM_MAX &&
	f->eh.e_shentsize == sizeof(Elf64_Shdr) &&
	read_at(f, f->eh.e_phoff, f->ph, f->eh.e_phnum * sizeof(Elf64_Phdr)))
      return 1;
  }
  close(f->fd);
  return 0;
}

/* Is the build-id in these notes? align: of notes, 4 or 8. */
static int notes_have(const uint8_t *p, uint64_t len, uint64_t align, const uint8_t *id,
		      size_t idlen)
{
  Elf64_Nhdr nh;
  uint64_t at = 0, name, desc;
  while (at <= len && len - at >= sizeof(nh)) {
    memcpy(&nh, p + at, sizeof(nh));
    name = at + sizeof(nh);
    desc = (name + nh.n_namesz + align - 1) & ~(align - 1);
    if (desc > len || nh.n_descsz > len - desc) return 0;
    if (nh.n_type == NT_GNU_BUILD_ID && nh.n_namesz == sizeof(ELF_NOTE_GNU) &&
	memcmp(p + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0)
      return nh.n_descsz == idlen && memcmp(p + desc, id, idlen) == 0;
    at = (desc + nh.n_descsz + align - 1) & ~(align - 1);
  }
  return 0;
}

static int file_hasid(const File *f, const uint8_t *id, size_t idlen)
{
  int i, found = 0;
  for (i = 0; i < f->eh.e_phnum && !found; i++) {
    const Elf64_Phdr *ph = &f->ph[i];
    uint8_t *notes;
    if (ph->p_type != PT_NOTE) continue;
    notes = (uint8_t *)read_new(f, ph->p_offset, ph->p_filesz, NOTES_MAX);
    if (!notes) continue;
    found = notes_have(notes, ph->p_filesz, ph->p_align == 8 ? 8 : 4, id, idlen);
    free(notes);
  }
  return found;
}

/* Copy the section. Returns NULL without one, or if it is compressed. */
static uint8_t *section_read(const File *f, size_t *len)
{
  uint64_t n = f->eh.e_shnum, i;
  Elf64_Shdr *sh;
  uint8_t *p = NULL;
  char name[sizeof(SECTION)];
  if (f->eh.e_shstrndx >= n) return NULL;
  sh = (Elf64_Shdr *)read_new(f, f->eh.e_shoff, n * sizeof(*sh),
			      SECTIONS_MAX * sizeof(*sh));
  for (i = 0; sh && i < n; i++) {
    if (sh[i].sh_type == SHT_NOBITS || (sh[i].sh_flags & SHF_COMPRESSED) ||
	!read_at(f, sh[f->eh.e_shstrndx].sh_offset + sh[i].sh_name, name, sizeof(name)) ||
	memcmp(name, SECTION, sizeof(name)) != 0)
      continue;
    *len = (size_t)sh[i].sh_size;
    p = (uint8_t *)read_new(f, sh[i].sh_offset, sh[i].sh_size, SECTION_MAX);
    break;
  }
  free(sh);
  return p;
}

/* -- Entries ---------------------------------------------------------------------- */

typedef struct Section {
  const File *file;
  const uint8_t *p;
  size_t len;
} Section;

/* Set r to the entry at an offset, behind its length. Returns 0 if it is not inside. */
static int entry_at(const Section *s, uint64_t ofs, Reader *r)
{
  uint32_t len;
  if (ofs > s->len || s->len - ofs < sizeof(len)) return 0;
  memcpy(&len, s->p + ofs, sizeof(len));
  if (len >= LENGTH_64 || len > s->len - ofs - sizeof(len)) return 0;
  r->p = s->p + ofs + sizeof(len);
  r->end = r->p + len;
  r->bad = 0;
  return 1;
}

/* Read a common entry. Augmentations change the meaning of what follows: they are refused. */
static int cie_parse(const Section *s, uint64_t ofs, FrameEntry *e)
{
  Reader r;
  unsigned version;
  uint64_t ret;
  if (!entry_at(s, ofs, &r) || read_uint(&r, 4) != CIE_ID) return 0;
  version = (unsigned)read_uint(&r, 1);
  if ((version != 1 && version != 3 && version != 4) || read_uint(&r, 1) != 0) return 0;
  if (version == 4 && read_uint(&r, 2) != sizeof(uint64_t)) return 0; /* No segments. */
  e->code_align = read_leb(&r, 0);
  e->data_align = (int64_t)read_leb(&r, 1);
  ret = version == 1 ? read_uint(&r, 1) : read_leb(&r, 0);
  e->cie.p = r.p;
  e->cie.len = (size_t)(r.end - r.p);
  return !r.bad && ret == RETURN_ADDRESS && e->code_align > 0 && e->code_align <= 16 &&
	 e->data_align >= -16 && e->data_align <= 16 && e->data_align != 0 &&
	 e->cie.len <= CODE_MAX;
}

/* Is it all in the code of the object? The linker sets addresses of dropped functions to 0. */
static int is_code(const File *f, uint64_t begin, uint64_t size)
{
  int i;
  for (i = 0; i < f->eh.e_phnum; i++) {
    const Elf64_Phdr *ph = &f->ph[i];
    if (ph->p_type == PT_LOAD && (ph->p_flags & PF_X) && begin >= ph->p_vaddr &&
	begin - ph->p_vaddr < ph->p_memsz && size <= ph->p_memsz - (begin - ph->p_vaddr))
      return 1;
  }
  return 0;
}

static void ignore(void *arg, uint64_t place)
{
  (void)arg;
  (void)place;
}

/* Read the entry behind its length. Returns 0 if it is not a usable one of a function. */
static int fde_parse(const Section *s, Reader r, FrameEntry *e)
{
  uint64_t cie = read_uint(&r, 4);
  if (r.bad || cie == CIE_ID || !cie_parse(s, cie, e)) return 0;
  e->begin = read_uint(&r, 8);
  e->size = read_uint(&r, 8);
  e->fde.p = r.p;
  e->fde.len = (size_t)(r.end - r.p);
  return !r.bad && e->size > 0 && e->size <= FUNCTION_MAX && e->fde.len <= CODE_MAX &&
	 is_code(s->file, e->begin, e->size) && debug_frame_places(e, ignore, NULL);
}

/* Read all entries to list, or only count them. */
static size_t entries_read(const Section *s, FrameEntry *list)
{
  uint64_t ofs = 0;
  size_t n = 0;
  FrameEntry e;
  Reader r;
  for (; n < ENTRIES_MAX && entry_at(s, ofs, &r); ofs = (uint64_t)(r.end - s->p)) {
    if (!fde_parse(s, r, &e)) continue;
    if (list) list[n] = e;
    n++;
  }
  return n;
}

static int entry_compare(const void *a, const void *b)
{
  const FrameEntry *x = (const FrameEntry *)a, *y = (const FrameEntry *)b;
  return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Drop sorted entries that overlap: it is unknown which of them holds. */
static size_t drop_overlaps(FrameEntry *e, size_t n)
{
  size_t i, kept = 0;
  uint64_t end = 0; /* Of the entries so far. */
  for (i = 0; i < n; i++) {
    int overlaps = e[i].begin < end ||
		   (i + 1 < n && e[i + 1].begin - e[i].begin < e[i].size);
    if (e[i].begin + e[i].size > end) end = e[i].begin + e[i].size;
    if (!overlaps) e[kept++] = e[i];
  }
  return kept;
}

static int file_entries(DebugFrame *df, const File *f)
{
  Section s = { f, NULL, 0 };
  s.p = df->section = section_read(f, &s.len);
  df->n = s.p ? entries_read(&s, NULL) : 0;
  df->entry = df->n ? (FrameEntry *)malloc(df->n * sizeof(*df->entry)) : NULL;
  if (df->entry) {
    entries_read(&s, df->entry);
    qsort(df->entry, df->n, sizeof(*df->entry), entry_compare);
    df->n = drop_overlaps(df->entry, df->n);
    if (df->n) return 1;
  }
  debug_frame_free(df);
  return 0;
}

static int path_entries(DebugFrame *df, const char *path, const uint8_t *id, size_t idlen)
{
  File f;
  int ok;
  if (!file_open(&f, path)) return 0;
  ok = file_hasid(&f, id, idlen) && file_entries(df, &f);
  close(f.fd);
  return ok;
}

int debug_frame_read(DebugFrame *df, const char *path, const uint8_t *id, size_t idlen)
{
  char debug[256] = "/usr/lib/debug/.build-id/";
  size_t n = strlen(debug), i;
  if (path_entries(df, path, id, idlen)) return 1;
  if (idlen < 2 || n + 2 * idlen + sizeof("/.debug") > sizeof(debug)) return 0;
  for (i = 0; i < idlen; i++)
    n += (size_t)sprintf(debug + n, i == 1 ? "/%02x" : "%02x", id[i]);
  strcpy(debug + n, ".debug");
  return path_entries(df, debug, id, idlen);
}

void debug_frame_free(DebugFrame *df)
{
  free(df->section);
  free(df->entry);
  memset(df, 0, sizeof(*df));
}

/* -- Instructions ------------------------------------------------------------------ */

/* DWARF 5 table 7.29, and one of GNU. */
/* clang-format off */
enum {
  CFA_ADVANCE_LOC = 0x40, CFA_OFFSET = 0x80, CFA_RESTORE = 0xc0,
  CFA_NOP = 0x00, CFA_ADVANCE_LOC1 = 0x02, CFA_ADVANCE_LOC2, CFA_ADVANCE_LOC4,
  CFA_OFFSET_EXTENDED, CFA_RESTORE_EXTENDED, CFA_UNDEFINED, CFA_SAME_VALUE,
  CFA_REMEMBER_STATE = 0x0a, CFA_RESTORE_STATE, CFA_DEF_CFA, CFA_DEF_CFA_REGISTER,
  CFA_DEF_CFA_OFFSET, CFA_OFFSET_EXTENDED_SF = 0x11, CFA_DEF_CFA_SF,
  CFA_DEF_CFA_OFFSET_SF, CFA_GNU_ARGS_SIZE = 0x2e
};
/* clang-format on */

/* Skip operands: one letter each, u or s for a LEB128. */
static int operands_skip(Reader *r, const char *kinds)
{
  for (; *kinds; kinds++) {
    int64_t v = (int64_t)read_leb(r, *kinds == 's');
    if (v > (int64_t)OPERAND_MAX || v < -(int64_t)OPERAND_MAX) return 0;
  }
  return !r->bad;
}

/* Operands of an instruction that moves no location, NULL if it is not a simple one. */
static const char *operands_of(unsigned op)
{
  switch (op) {
  case CFA_NOP:
  case CFA_REMEMBER_STATE:
  case CFA_RESTORE_STATE: return "";
  case CFA_OFFSET_EXTENDED:
  case CFA_DEF_CFA: return "uu";
  case CFA_OFFSET_EXTENDED_SF:
  case CFA_DEF_CFA_SF: return "us";
  case CFA_RESTORE_EXTENDED:
  case CFA_UNDEFINED:
  case CFA_SAME_VALUE:
  case CFA_DEF_CFA_REGISTER:
  case CFA_DEF_CFA_OFFSET:
  case CFA_GNU_ARGS_SIZE: return "u";
  case CFA_DEF_CFA_OFFSET_SF: return "s";
  default: return NULL;
  }
}

/* Check one instruction. *advance: how far it moves the location, *depth: states remembered. */
static int op_check(Reader *r, uint64_t *advance, int *depth)
{
  unsigned op = (unsigned)read_uint(r, 1);
  const char *kinds;
  *advance = 0;
  switch (op & 0xc0) {
  case CFA_ADVANCE_LOC: *advance = op & 0x3f; return 1;
  case CFA_OFFSET: return operands_skip(r, "u");
  case CFA_RESTORE: return 1;
  default: break;
  }
  if (op >= CFA_ADVANCE_LOC1 && op <= CFA_ADVANCE_LOC4) {
    *advance = read_uint(r, (size_t)1 << (op - CFA_ADVANCE_LOC1));
    return !r->bad;
  }
  *depth += (op == CFA_REMEMBER_STATE) - (op == CFA_RESTORE_STATE);
  kinds = operands_of(op);
  return *depth >= 0 && *depth <= STATES_MAX && kinds && operands_skip(r, kinds);
}

static int code_check(const FrameEntry *e, const FrameCode *code, uint64_t *loc, int *depth,
		      void (*visit)(void *arg, uint64_t place), void *arg)
{
  Reader r = { code->p, code->p + code->len, 0 };
  while (r.p < r.end) {
    uint64_t advance;
    if (!op_check(&r, &advance, depth)) return 0;
    *loc += advance * e->code_align;
    if (advance && *loc < e->size) visit(arg, *loc);
  }
  return 1;
}

int debug_frame_places(const FrameEntry *e, void (*visit)(void *arg, uint64_t place),
		       void *arg)
{
  uint64_t loc = 0;
  int depth = 0;
  visit(arg, 0);
  return code_check(e, &e->cie, &loc, &depth, ignore, NULL) && loc == 0 && depth == 0 &&
	 code_check(e, &e->fde, &loc, &depth, visit, arg);
}
