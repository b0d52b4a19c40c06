/*
** ELF symbols: names of host addresses.
** Context: VM thread.
**
** The names come from the file of an object, if that is still the loaded one. Both
** .symtab and .dynsym count; only .symtab has the static functions. Stubs are named after the
** functions that they jump to. If the file is gone or was replaced, the dynamic linker's symbols
** in memory give the names.
*/

#define lj_elfsym_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For dl_iterate_phdr. */
#endif
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "lj_obj.h"
#include "profile/symbols/lj_elfsym.h"
#include "profile/base/lj_osobjects.h"
#include "profile/base/lj_ownfd.h"
#include "profile/symbols/lj_elfobj.h"
#include "profile/symbols/lj_elfstub.h"

/* Limit of the name of a symbol, in bytes: (cut) */
#define SYM_NAME_MAX 400
#define SYM_RUN_MAX  32 /* Addresses of a symbol in one record. */
#define STUB_SUFFIX  "@plt"

/* A seen address, and the best symbol for it so far. */
typedef struct Seen {
  uintptr_t addr;
  uintptr_t sym; /* Start of the symbol or function, 0 if unknown. */
  int rank;      /* See sym_rank. */
  char *name;    /* Its name, allocated, or NULL. */
} Seen;

typedef struct Names {
  Seen *seen; /* Sorted by address. */
  size_t nseen;
  const CodeStarts *starts; /* NULL: all objects give names. */
} Names;

/* A loaded object in which some addresses lie. */
typedef struct Object {
  uintptr_t start, end, bias;
  const ElfW(Phdr) * phdr;
  int nphdr;
  Seen *seen; /* These addresses. */
  size_t nseen;
} Object;

static int seen_cmp(const void *a, const void *b)
{
  uintptr_t x = ((const Seen *)a)->addr, y = ((const Seen *)b)->addr;
  return x < y ? -1 : x > y;
}

/* Number of addresses that are below addr. */
static size_t seen_below(const Seen *seen, size_t n, uintptr_t addr)
{
  size_t lo = 0, hi = n;
  while (lo < hi) {
    size_t mid = (lo + hi) / 2;
    if (seen[mid].addr < addr) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/* -- Symbols ----------------------------------------------------------------- */

/* Of several symbols at one address, users know the global one. */
static int sym_rank(const ElfW(Sym) * sym)
{
  switch (ELF64_ST_BIND(sym->st_info)) {
  case STB_GLOBAL: return 3;
  case STB_WEAK: return 2;
  default: return 1;
  }
}

/* Offer a symbol to an address in it. Returns 0 without memory. */
static int symbol_offer(Seen *s, uintptr_t start, int rank, const char *name, size_t max,
			const char *suffix)
{
  size_t len, more = strlen(suffix) + 1;
  char *copy;
  /* The innermost symbol wins, then the better known. */
  if (s->name && (s->sym > start || (s->sym == start && s->rank >= rank))) return 1;
  len = strnlen(name, max < SYM_NAME_MAX ? max : SYM_NAME_MAX);
  copy = (char *)malloc(len + more);
  if (!copy) return 0;
  memcpy(copy, name, len);
  memcpy(copy + len, suffix, more);
  free(s->name);
  s->name = copy;
  s->sym = start;
  s->rank = rank;
  return 1;
}

/* Offer the symbols of a table to the addresses that lie in them. */
static void symbols_offer(Object *ob, const ElfW(Sym) * sym, size_t nsym, const char *str,
			  size_t strsz)
{
  const uintptr_t first = ob->seen[0].addr, last = ob->seen[ob->nseen - 1].addr;
  size_t k;
  for (k = 0; k < nsym; k++, sym++) {
    uintptr_t start = ob->bias + sym->st_value;
    size_t i;
    int type = ELF64_ST_TYPE(sym->st_info);
    if (start > last || start + sym->st_size <= first ||
	(type != STT_FUNC && type != STT_GNU_IFUNC) || sym->st_shndx == SHN_UNDEF ||
	sym->st_name >= strsz)
      continue;
    i = seen_below(ob->seen, ob->nseen, start);
    for (; i < ob->nseen && ob->seen[i].addr - start < sym->st_size; i++)
      if (!symbol_offer(&ob->seen[i], start, sym_rank(sym), str + sym->st_name,
			strsz - sym->st_name, ""))
	return;
  }
}

/* Offer the stubs of an image with section headers to the addresses without a symbol. */
static void stubs_offer(Object *ob, const uint8_t *p, size_t sz)
{
  size_t i;
  for (i = 0; i < ob->nseen; i++) {
    Seen *s = &ob->seen[i];
    ElfStub stub;
    if (s->name || !lj_elfstub_find(p, sz, s->addr - ob->bias, &stub)) continue;
    s->sym = ob->bias + stub.start;
    if (stub.name && !symbol_offer(s, s->sym, STB_LOCAL, stub.name, stub.max, STUB_SUFFIX))
      return;
  }
}

/* -- Files ------------------------------------------------------------------- */

/* Is [ofs, ofs+sz) inside of an image of the given size? */
static int image_has(size_t image, uint64_t ofs, uint64_t sz)
{
  return ofs <= image && sz <= image - ofs;
}

/* Address of n bytes of a loaded object, NULL if they are not all in it. The dynamic
** linker has replaced some offsets by addresses.
*/
static const void *object_bytes(const Object *ob, uintptr_t at, uint64_t n)
{
  if (at < ob->start) at += ob->bias;
  return at >= ob->start && at < ob->end && n <= ob->end - at ? (const void *)at : NULL;
}

/* Is this the loaded file? It has the same build-id or, without one, the same segments. */
static int image_fits(const Object *ob, const uint8_t *p, size_t sz)
{
  const ElfW(Ehdr) *eh = (const ElfW(Ehdr) *)p;
  const ElfW(Phdr) * ph;
  int i;
  if (sz < sizeof(*eh) || memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0 ||
      eh->e_ident[EI_CLASS] != ELFCLASS64 || eh->e_phentsize != sizeof(*ph) ||
      (eh->e_phoff & 7) != 0 || eh->e_phnum != ob->nphdr ||
      !image_has(sz, eh->e_phoff, (uint64_t)eh->e_phnum * sizeof(*ph)))
    return 0;
  ph = (const ElfW(Phdr) *)(p + eh->e_phoff);
  if (memcmp(ph, ob->phdr, (size_t)ob->nphdr * sizeof(*ph)) != 0) return 0;
  for (i = 0; i < ob->nphdr; i++, ph++) {
    const void *notes = object_bytes(ob, ob->bias + ph->p_vaddr, ph->p_filesz);
    const uint8_t *loaded, *id;
    uint32_t n, m;
    if (ph->p_type != PT_NOTE || !notes || !image_has(sz, ph->p_offset, ph->p_filesz))
      continue;
    loaded = lj_elfnote_find(NULL, (const uint8_t *)notes, ph->p_filesz, &n);
    if (!loaded) continue;
    id = lj_elfnote_find(NULL, p + ph->p_offset, ph->p_filesz, &m);
    return id && n == m && memcmp(loaded, id, n) == 0;
  }
  return 1;
}

/* Read the symbol tables of an ELF image with section headers. */
static void image_symbols(Object *ob, const uint8_t *p, size_t sz)
{
  const ElfW(Ehdr) *eh = (const ElfW(Ehdr) *)p;
  const ElfW(Shdr) * sh;
  int pass, i;
  if (eh->e_shentsize != sizeof(*sh) || (eh->e_shoff & 7) != 0 ||
      !image_has(sz, eh->e_shoff, (uint64_t)eh->e_shnum * sizeof(*sh)))
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
      symbols_offer(ob, (const ElfW(Sym) *)(p + s->sh_offset),
		    s->sh_size / sizeof(ElfW(Sym)), (const char *)(p + str->sh_offset),
		    str->sh_size);
    }
  }
  stubs_offer(ob, p, sz);
}

/* Read the symbol tables of a file. Returns 0 if it is not the loaded one. */
static int file_symbols(Object *ob, const char *path)
{
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), fits = 0;
  struct stat sb;
  OwnFd own;
  if (!lj_ownfd_borrow(&own, fd)) return 0;
  if (fstat(fd, &sb) == 0 && S_ISREG(sb.st_mode) && sb.st_size > 0) {
    size_t sz = (size_t)sb.st_size;
    void *p = mmap(NULL, sz, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p != MAP_FAILED) {
      fits = image_fits(ob, (const uint8_t *)p, sz);
      if (fits) image_symbols(ob, (const uint8_t *)p, sz);
      munmap(p, sz);
    }
  }
  lj_ownfd_close(&own);
  return fits;
}

/* -- Memory ------------------------------------------------------------------ */

/* Number of symbols, from the hash table of GNU: the index behind the last symbol of the
** last bucket.
*/
static uint32_t gnu_hash_symbols(const Object *ob, uintptr_t at)
{
  const uint32_t *h = (const uint32_t *)object_bytes(ob, at, 16), *bucket;
  uint32_t i, last = 0;
  if (!h) return 0;
  bucket = (const uint32_t *)object_bytes(
    ob, (uintptr_t)(h + 4) + (uint64_t)h[2] * sizeof(ElfW(Addr)), (uint64_t)h[0] * 4);
  if (!bucket) return 0;
  for (i = 0; i < h[0]; i++)
    if (bucket[i] > last) last = bucket[i];
  if (last < h[1]) return 0;
  for (;; last++) {
    const uint32_t *chain = (const uint32_t *)object_bytes(
      ob, (uintptr_t)(bucket + h[0]) + (uint64_t)(last - h[1]) * 4, 4);
    if (!chain) return 0;
    if (*chain & 1) return last + 1;
  }
}

/* Read the symbols that the dynamic linker uses. */
static void memory_symbols(Object *ob)
{
  const ElfW(Dyn) *dyn = NULL;
  uintptr_t tab = 0, str = 0, hash = 0, gnu_hash = 0;
  uint64_t i, ndyn = 0, strsz = 0, nsym = 0;
  const void *sym, *names;
  for (i = 0; i < (uint64_t)ob->nphdr; i++)
    if (ob->phdr[i].p_type == PT_DYNAMIC) {
      ndyn = ob->phdr[i].p_memsz / sizeof(*dyn);
      dyn = (const ElfW(Dyn) *)object_bytes(ob, ob->bias + ob->phdr[i].p_vaddr,
					    ndyn * sizeof(*dyn));
    }
  for (i = 0; dyn && i < ndyn && dyn[i].d_tag != DT_NULL; i++) switch (dyn[i].d_tag) {
    case DT_SYMTAB: tab = dyn[i].d_un.d_ptr; break;
    case DT_STRTAB: str = dyn[i].d_un.d_ptr; break;
    case DT_STRSZ: strsz = dyn[i].d_un.d_val; break;
    case DT_HASH: hash = dyn[i].d_un.d_ptr; break;
    case DT_GNU_HASH: gnu_hash = dyn[i].d_un.d_ptr; break;
    default: break;
    }
  if (!tab || !str) return;
  if (gnu_hash) {
    nsym = gnu_hash_symbols(ob, gnu_hash);
  } else if (hash) {
    const uint32_t *h = (const uint32_t *)object_bytes(ob, hash, 8);
    if (h) nsym = h[1];
  }
  sym = object_bytes(ob, tab, nsym * sizeof(ElfW(Sym)));
  names = object_bytes(ob, str, strsz);
  if (nsym && sym && names)
    symbols_offer(ob, (const ElfW(Sym) *)sym, nsym, (const char *)names, strsz);
}

/* -- Objects ----------------------------------------------------------------- */

/* Describe an object. Returns 0 if no address was seen in it. */
static int object_init(Object *ob, const Names *names, const struct dl_phdr_info *info)
{
  size_t i;
  ob->bias = info->dlpi_addr;
  ob->phdr = info->dlpi_phdr;
  ob->nphdr = info->dlpi_phnum;
  if (!lj_osobjects_range(info, &ob->start, &ob->end)) return 0;
  i = seen_below(names->seen, names->nseen, ob->start);
  ob->seen = names->seen + i;
  ob->nseen = seen_below(ob->seen, names->nseen - i, ob->end);
  return ob->nseen != 0;
}

static int object_names(struct dl_phdr_info *info, size_t sz, void *arg)
{
  Object ob;
  const Names *names = (const Names *)arg;
  const CodeStarts *starts = names->starts;
  UNUSED(sz);
  if (!object_init(&ob, names, info)) return 0;
  if (starts && starts->has && !starts->has(starts->ctx, info)) return 0;
  if (ob.start == (uintptr_t)getauxval(AT_SYSINFO_EHDR)) {
    /* The vdso is a whole ELF file in memory. */
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    image_symbols(&ob, (const uint8_t *)ob.start,
		  (ob.end - ob.start + page - 1) & ~(page - 1));
  } else if (!file_symbols(&ob, info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe")) {
    memory_symbols(&ob);
  }
  return 0;
}

/* -- Records ----------------------------------------------------------------- */

/* Find the starts of functions for the addresses without a symbol. */
static void starts_find(Names *names, const CodeStarts *starts)
{
  uintptr_t begin = 0, size = 0;
  size_t i;
  for (i = 0; i < names->nseen; i++) {
    Seen *s = &names->seen[i];
    if (s->sym) continue;
    if (s->addr - begin >= size && !starts->find(starts->ctx, s->addr, &begin, &size))
      size = 0;
    else s->sym = begin;
  }
}

static int has_same_name(const Seen *a, const Seen *b)
{
  return a->name && b->name ? strcmp(a->name, b->name) == 0 : a->name == b->name;
}

/* Number of addresses from s on that lie in the same symbol or function. */
static size_t same_symbol(const Seen *s, size_t most)
{
  size_t n = 1;
  if (most > SYM_RUN_MAX) most = SYM_RUN_MAX;
  while (n < most && s[n].sym == s->sym && has_same_name(&s[n], s)) n++;
  return n;
}

/* Addresses that lie in one symbol. */
typedef struct SymbolRun {
  const Seen *seen;
  size_t n;
} SymbolRun;

/* Append the payload of their symbol's definition. */
static void run_put(WBuf *wb, const void *def)
{
  const SymbolRun *run = (const SymbolRun *)def;
  const Seen *s = run->seen;
  const char *name = s->name ? s->name : "";
  uintptr_t last = s->sym;
  size_t i;
  lj_wbuf_uleb(wb, s->sym);
  lj_wbuf_str(wb, name, strlen(name));
  for (i = 0; i < run->n; i++) {
    lj_wbuf_uleb(wb, s[i].addr - last);
    last = s[i].addr;
  }
}

/* Find the symbols of n addresses, which are among size words. Returns 0 without memory. */
static int names_find(Names *names, const uintptr_t *addr, size_t size, size_t n)
{
  size_t i;
  names->nseen = 0;
  names->seen = (Seen *)calloc(n, sizeof(Seen));
  if (!names->seen) return 0;
  for (i = 0; i < size && names->nseen < n; i++)
    if (addr[i]) names->seen[names->nseen++].addr = addr[i];
  qsort(names->seen, names->nseen, sizeof(Seen), seen_cmp);
  dl_iterate_phdr(object_names, names);
  return 1;
}

int lj_elfsym_put(const uintptr_t *addr, size_t size, size_t n, const CodeStarts *starts,
		  const DefSink *to)
{
  Names names;
  size_t i;
  if (n == 0) return 1;
  names.starts = starts;
  if (!names_find(&names, addr, size, n)) return 0;
  starts_find(&names, starts);
  for (i = 0; i < names.nseen;) {
    SymbolRun run;
    run.seen = &names.seen[i];
    run.n = same_symbol(run.seen, names.nseen - i);
    if (run.seen->sym) lj_wbuf_define(to, SPF_HSYM, run_put, &run);
    while (run.n-- > 0) free(names.seen[i++].name);
  }
  free(names.seen);
  return 1;
}

int lj_elfsym_find(const uintptr_t *addr, size_t n,
		   void (*found)(void *ctx, uintptr_t addr, const char *name), void *ctx)
{
  Names names;
  size_t i;
  if (n == 0) return 1;
  names.starts = NULL;
  if (!names_find(&names, addr, n, n)) return 0;
  for (i = 0; i < names.nseen; i++) {
    if (names.seen[i].name) found(ctx, names.seen[i].addr, names.seen[i].name);
    free(names.seen[i].name);
  }
  free(names.seen);
  return 1;
}
