/*
** Symbols of a profile: the load map, and names of what the handler saw.
** Never runs in the handler: opens files, maps and allocates memory.
**
** Names come from the ELF symbol tables of the files that are loaded: .symtab
** where there is one, because it knows static functions, else .dynsym.
*/

#define lj_symname_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* For dl_iterate_phdr. */
#endif
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "lj_obj.h"
#include "profile/lj_symtab.h"

#define SYM_NAME_MAX	400	/* Bytes of a symbol's name that are kept. */
#define SYM_RUN_MAX	32	/* Addresses of a symbol in one record. */

/* -- Loaded objects ---------------------------------------------------------- */

typedef struct Module {
  uintptr_t start, end, bias;	/* Addresses; bias is to be subtracted. */
  char path[PATH_MAX];		/* File, or a name in brackets. */
  const uint8_t *buildid;	/* GNU build id in memory, or NULL. */
  size_t buildid_len;
} Module;

static void module_buildid(Module *m, const uint8_t *p, size_t sz)
{
  while (sz >= sizeof(ElfW(Nhdr))) {
    const ElfW(Nhdr) *n = (const ElfW(Nhdr) *)p;
    size_t name = (n->n_namesz + 3) & ~(size_t)3;
    size_t desc = (n->n_descsz + 3) & ~(size_t)3;
    if (sz - sizeof(*n) < name || sz - sizeof(*n) - name < desc) return;
    if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 &&
	memcmp(p + sizeof(*n), "GNU", 4) == 0) {
      m->buildid = p + sizeof(*n) + name;
      m->buildid_len = n->n_descsz;
      return;
    }
    p += sizeof(*n) + name + desc;
    sz -= sizeof(*n) + name + desc;
  }
}

static void module_path(Module *m, const char *name)
{
  ssize_t n;
  if (m->start == (uintptr_t)getauxval(AT_SYSINFO_EHDR)) {
    strcpy(m->path, "[vdso]");
  } else if (name[0]) {
    strncpy(m->path, name, sizeof(m->path)-1);
    m->path[sizeof(m->path)-1] = '\0';
  } else {
    n = readlink("/proc/self/exe", m->path, sizeof(m->path)-1);
    if (n < 0) strcpy(m->path, "[main]");
    else m->path[n] = '\0';
  }
}

/* Describe one object of dl_iterate_phdr. Returns 0 if nothing is mapped. */
static int module_init(Module *m, const struct dl_phdr_info *info)
{
  int i;
  memset(m, 0, offsetof(Module, path));
  m->buildid = NULL;
  m->buildid_len = 0;
  m->start = ~(uintptr_t)0;
  m->bias = info->dlpi_addr;
  for (i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
    uintptr_t at = info->dlpi_addr + ph->p_vaddr;
    if (ph->p_type == PT_LOAD) {
      if (at < m->start) m->start = at;
      if (at + ph->p_memsz > m->end) m->end = at + ph->p_memsz;
    } else if (ph->p_type == PT_NOTE && !m->buildid) {
      module_buildid(m, (const uint8_t *)at, ph->p_memsz);
    }
  }
  if (m->end == 0) return 0;
  module_path(m, info->dlpi_name);
  return 1;
}

/* What both iterations over the loaded objects need. */
typedef struct Iter {
  Symtab *st;
  WBuf *wb;
  SymtabCommit commit;
  void *ctx;
  struct Seen *seen;		/* Sorted by address, only for names. */
  size_t nseen;
} Iter;

static void module_put(Iter *it, const Module *m)
{
  int tries;
  for (tries = 0; tries < 2; tries++) {
    size_t mark = lj_wbuf_def_begin(it->wb, SPF_MODULE);
    lj_wbuf_uleb(it->wb, m->start);
    lj_wbuf_uleb(it->wb, m->end);
    lj_wbuf_uleb(it->wb, m->bias);
    lj_wbuf_str(it->wb, (const char *)m->buildid, m->buildid_len);
    lj_wbuf_str(it->wb, m->path, strlen(m->path));
    lj_wbuf_def_end(it->wb, mark);
    if (it->commit(it->ctx)) return;
  }
}

static int modules_iter(struct dl_phdr_info *info, size_t sz, void *arg)
{
  Iter *it = (Iter *)arg;
  Symtab *st = it->st;
  Module m;
  uint32_t i;
  UNUSED(sz);
  if (!module_init(&m, info)) return 0;
  for (i = 0; i < st->nmodule; i++)
    if (st->module[i] == m.start) return 0;
  if (st->nmodule == SYMTAB_MODULES) return 1;
  st->module[st->nmodule++] = m.start;
  module_put(it, &m);
  return 0;
}

void lj_symtab_modules(Symtab *st, WBuf *wb, SymtabCommit commit, void *ctx)
{
  Iter it = { st, wb, commit, ctx, NULL, 0 };
  dl_iterate_phdr(modules_iter, &it);
}

/* -- Names of host addresses ------------------------------------------------- */

/* An address that was seen, and the best symbol for it so far. */
typedef struct Seen {
  uintptr_t addr;
  uintptr_t sym;		/* Start of the symbol, 0 for none. */
  int rank;			/* How good it is. */
  char *name;			/* Its name, allocated. */
} Seen;

static int seen_cmp(const void *a, const void *b)
{
  uintptr_t x = ((const Seen *)a)->addr, y = ((const Seen *)b)->addr;
  return x < y ? -1 : x > y;
}

/* First address that is not below addr. */
static size_t seen_find(const Iter *it, uintptr_t addr)
{
  size_t lo = 0, hi = it->nseen;
  while (lo < hi) {
    size_t mid = (lo + hi) / 2;
    if (it->seen[mid].addr < addr) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/* Of several symbols at one address, a global one is what users know. */
static int sym_rank(const ElfW(Sym) *sym)
{
  switch (ELF64_ST_BIND(sym->st_info)) {
  case STB_GLOBAL: return 3;
  case STB_WEAK: return 2;
  default: return 1;
  }
}

/* Offer the symbols of a table to the addresses that lie in them. */
static void symbols_offer(Iter *it, uintptr_t bias, const ElfW(Sym) *sym,
			  size_t nsym, const char *str, size_t strsz)
{
  size_t k;
  for (k = 0; k < nsym; k++, sym++) {
    uintptr_t start = bias + sym->st_value;
    size_t i;
    int type = ELF64_ST_TYPE(sym->st_info), rank = sym_rank(sym);
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || sym->st_size == 0 ||
	sym->st_shndx == SHN_UNDEF || sym->st_name >= strsz)
      continue;
    for (i = seen_find(it, start);
	 i < it->nseen && it->seen[i].addr - start < sym->st_size; i++) {
      Seen *s = &it->seen[i];
      const char *name = str + sym->st_name;
      size_t len = strnlen(name, strsz - sym->st_name);
      char *copy;
      /* The innermost symbol wins, then the better known. */
      if (s->name && (s->sym > start || (s->sym == start && s->rank >= rank)))
	continue;
      if (len > SYM_NAME_MAX) len = SYM_NAME_MAX;
      copy = (char *)malloc(len + 1);
      if (!copy) return;
      memcpy(copy, name, len);
      copy[len] = '\0';
      free(s->name);
      s->name = copy;
      s->sym = start;
      s->rank = rank;
    }
  }
}

/* Is [ofs, ofs+sz) inside of an image of the given size? */
static int image_has(size_t image, uint64_t ofs, uint64_t sz)
{
  return ofs <= image && sz <= image - ofs;
}

/* Read the symbol tables of an ELF image with section headers. */
static void image_symbols(Iter *it, uintptr_t bias, const uint8_t *p, size_t sz)
{
  const ElfW(Ehdr) *eh = (const ElfW(Ehdr) *)p;
  const ElfW(Shdr) *sh;
  int pass, i;
  if (sz < sizeof(*eh) || memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0 ||
      eh->e_ident[EI_CLASS] != ELFCLASS64 ||
      eh->e_shentsize != sizeof(*sh) || (eh->e_shoff & 7) != 0 ||
      !image_has(sz, eh->e_shoff, (uint64_t)eh->e_shnum*sizeof(*sh)))
    return;
  sh = (const ElfW(Shdr) *)(p + eh->e_shoff);
  for (pass = 0; pass < 2; pass++) {
    for (i = 0; i < eh->e_shnum; i++) {
      const ElfW(Shdr) *s = &sh[i], *str;
      if (s->sh_type != (pass == 0 ? SHT_SYMTAB : SHT_DYNSYM) ||
	  s->sh_link >= eh->e_shnum || (s->sh_offset & 7) != 0)
	continue;
      str = &sh[s->sh_link];
      if (!image_has(sz, s->sh_offset, s->sh_size) ||
	  !image_has(sz, str->sh_offset, str->sh_size))
	continue;
      symbols_offer(it, bias, (const ElfW(Sym) *)(p + s->sh_offset),
		    s->sh_size / sizeof(ElfW(Sym)),
		    (const char *)(p + str->sh_offset), str->sh_size);
    }
  }
}

static int symbols_iter(struct dl_phdr_info *info, size_t sz, void *arg)
{
  Iter *it = (Iter *)arg;
  Module m;
  size_t i;
  struct stat sb;
  void *p;
  int fd;
  UNUSED(sz);
  if (!module_init(&m, info)) return 0;
  i = seen_find(it, m.start);
  if (i == it->nseen || it->seen[i].addr >= m.end) return 0;  /* Not seen. */
  if (m.path[0] == '[') {  /* The vdso is a whole ELF file in memory. */
    if (m.start == (uintptr_t)getauxval(AT_SYSINFO_EHDR)) {
      size_t page = (size_t)sysconf(_SC_PAGESIZE);
      image_symbols(it, m.bias, (const uint8_t *)m.start,
		    (m.end - m.start + page-1) & ~(page-1));
    }
    return 0;
  }
  fd = open(m.path, O_RDONLY|O_CLOEXEC);
  if (fd < 0) return 0;
  if (fstat(fd, &sb) == 0 && S_ISREG(sb.st_mode) && sb.st_size > 0) {
    p = mmap(NULL, (size_t)sb.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p != MAP_FAILED) {
      image_symbols(it, m.bias, (const uint8_t *)p, (size_t)sb.st_size);
      munmap(p, (size_t)sb.st_size);
    }
  }
  close(fd);
  return 0;
}

/* Write the symbol of s[0], and the n addresses that lie in it. */
static void hsym_put(Iter *it, const Seen *s, size_t n)
{
  int tries;
  size_t i;
  for (tries = 0; tries < 2; tries++) {
    uintptr_t last = s->sym;
    size_t mark = lj_wbuf_def_begin(it->wb, SPF_HSYM);
    lj_wbuf_uleb(it->wb, s->sym);
    lj_wbuf_str(it->wb, s->name, strlen(s->name));
    for (i = 0; i < n; i++) {
      lj_wbuf_uleb(it->wb, s[i].addr - last);
      last = s[i].addr;
    }
    lj_wbuf_def_end(it->wb, mark);
    if (it->commit(it->ctx)) return;
  }
}

/* Number of addresses from s on that lie in the same symbol. */
static size_t hsym_run(const Seen *s, size_t most)
{
  size_t n = 1;
  if (most > SYM_RUN_MAX) most = SYM_RUN_MAX;
  while (n < most && s->name && s[n].name && s[n].sym == s->sym &&
	 strcmp(s[n].name, s->name) == 0)
    n++;
  return n;
}

static int hsyms_put(Iter *it)
{
  Symtab *st = it->st;
  size_t i;
  if (st->naddr == 0) return 1;
  it->seen = (Seen *)calloc(st->naddr, sizeof(Seen));
  if (!it->seen) return 0;
  for (i = 0; i < SYMTAB_ADDRS; i++)
    if (st->addr[i]) it->seen[it->nseen++].addr = st->addr[i];
  qsort(it->seen, it->nseen, sizeof(Seen), seen_cmp);
  dl_iterate_phdr(symbols_iter, it);
  for (i = 0; i < it->nseen; ) {
    size_t n = hsym_run(&it->seen[i], it->nseen - i);
    if (it->seen[i].name) hsym_put(it, &it->seen[i], n);
    while (n-- > 0) free(it->seen[i++].name);
  }
  free(it->seen);
  return 1;
}

/* -- Names of builtin functions ---------------------------------------------- */

static const char *const ffnames[] = {
  "Lua", "C",
#define FFDEF(name)	#name,
#include "lj_ffdef.h"
#undef FFDEF
};

/* How the internal names begin, and how users write that; the longer ones
** first.
*/
static const char *const libprefixes[][2] = {
  { "ffi_callback_", "callback:" }, { "ffi_meta_", "cdata." },
  { "ffi_clib_", "ffi.C." }, { "ffi_", "ffi." },
  { "io_method_", "file:" }, { "io_", "io." },
  { "jit_opt_", "jit.opt." }, { "jit_util_", "jit.util." },
  { "jit_profile_", "jit.profile." }, { "jit_", "jit." },
  { "buffer_method_", "buffer:" }, { "buffer_", "buffer." },
  { "math_", "math." }, { "bit_", "bit." }, { "string_", "string." },
  { "table_", "table." }, { "os_", "os." }, { "debug_", "debug." },
  { "coroutine_", "coroutine." }, { "package_", "package." },
  { "thread_", "thread." }
};

#define NLIBPREFIXES	(sizeof(libprefixes)/sizeof(libprefixes[0]))

/* Functions that a library function returns end in this. */
#define ITERATOR_SUFFIX	"_aux"

/* The name that users know a builtin function by. Returns its length. */
static size_t ffunc_name(const char *name, char *buf, size_t sz)
{
  size_t i, len = strlen(name), suffix = strlen(ITERATOR_SUFFIX);
  const char *pre = "";
  int iterator = len > suffix &&
		 strcmp(name + len - suffix, ITERATOR_SUFFIX) == 0;
  if (iterator) len -= suffix;
  for (i = 0; i < NLIBPREFIXES; i++) {
    size_t n = strlen(libprefixes[i][0]);
    if (strncmp(name, libprefixes[i][0], n) == 0) {
      pre = libprefixes[i][1];
      name += n;
      len -= n;
      break;
    }
  }
  return (size_t)snprintf(buf, sz, "%s%.*s%s", pre, (int)len, name,
			  iterator ? ".iterator" : "");
}

static void ffunc_put(Iter *it, unsigned ffid)
{
  char name[80];
  size_t len = ffunc_name(ffnames[ffid], name, sizeof(name));
  int tries;
  for (tries = 0; tries < 2; tries++) {
    size_t mark = lj_wbuf_def_begin(it->wb, SPF_FFUNC);
    lj_wbuf_uleb(it->wb, ffid);
    lj_wbuf_str(it->wb, name, len);
    lj_wbuf_def_end(it->wb, mark);
    if (it->commit(it->ctx)) return;
  }
}

/* -- Names of Lua functions ------------------------------------------------- */

/* Define the functions again that got a name after they were last defined. */
static void lfuncs_put(Iter *it)
{
  Symtab *st = it->st;
  uint32_t i, tries;
  if (!st->vm_readable) return;
  for (i = 0; i < SYMTAB_LFUNCS; i++) {
    SymLFunc *lf = &st->lfunc[i];
    if (lf->rank == SYMNAME_NONE || lf->epoch != 0 || !lf->pt ||
	lj_symtab_find(st, lf->pt) != lf)
      continue;
    for (tries = 0; tries < 2; tries++) {
      lj_symtab_define(st, it->wb, lf->fid, ~tries);
      if (it->commit(it->ctx)) break;
    }
  }
}

int lj_symtab_names(Symtab *st, WBuf *wb, SymtabCommit commit, void *ctx)
{
  Iter it = { st, wb, commit, ctx, NULL, 0 };
  unsigned i;
  for (i = 0; i < sizeof(ffnames)/sizeof(ffnames[0]); i++)
    if (st->ffid[i]) ffunc_put(&it, i);
  lfuncs_put(&it);
  return hsyms_put(&it);
}
