/*
** Names of addresses in a library whose file is gone: the dynamic linker's symbols in memory
** give them. A library whose hash table leads out of it gives none.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

#include "lj_obj.h"
#include "profile/symbols/lj_elfsym.h"
#include "check.h"

#define NAME "replaced_call"
#define COPY "damaged.so"

static uint8_t buf[4096], written[4096];
static size_t nwritten;

static size_t take(const void **data, size_t len, void *ctx)
{
  (void)ctx;
  REQUIRE(nwritten + len <= sizeof(written));
  memcpy(written + nwritten, *data, len);
  nwritten += len;
  *data = buf;
  return len;
}

static int commit(void *ctx)
{
  return lj_wbuf_commit((WBuf *)ctx);
}

static int no_start(void *ctx, uintptr_t addr, uintptr_t *begin, uintptr_t *size)
{
  (void)ctx, (void)addr, (void)begin, (void)size;
  return 0;
}

static int is_known;

/* Is the object in the load map? */
static int has_object(void *ctx, const struct dl_phdr_info *info)
{
  (void)ctx, (void)info;
  return is_known;
}

/* Does the address get its name? */
static int has_name(uintptr_t addr)
{
  WBuf wb;
  DefSink to = { &wb, commit, &wb };
  CodeStarts starts = { no_start, NULL, has_object };
  nwritten = 0;
  lj_wbuf_init(&wb, buf, sizeof(buf), 0, take, NULL);
  REQUIRE(lj_elfsym_put(&addr, 1, 1, &starts, &to));
  REQUIRE(lj_wbuf_flush(&wb));
  return memmem(written, nwritten, NAME, strlen(NAME)) != NULL;
}

static void copy_file(const char *from, const char *to)
{
  FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
  int c;
  REQUIRE(in != NULL && out != NULL);
  while ((c = getc(in)) != EOF) putc(c, out);
  fclose(in);
  REQUIRE(fclose(out) == 0);
}

static void make_writable(const void *p, size_t len)
{
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)p & ~(page - 1);
  REQUIRE(mprotect((void *)begin, (uintptr_t)p + len - begin,
		   PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
}

/* Value of an entry of the dynamic section. The dynamic linker has relocated it. */
static ElfW(Addr) * dynamic(const struct link_map *map, ElfW(Sxword) tag)
{
  ElfW(Dyn) *d = map->l_ld;
  while (d->d_tag != tag && d->d_tag != DT_NULL) d++;
  return d->d_tag == tag ? &d->d_un.d_ptr : NULL;
}

int main(void)
{
  char path[1024];
  const ElfW(Sym) * sym;
  ElfW(Sym) * first;
  struct link_map *map;
  ElfW(Addr) * hash, *symbols;
  uint32_t *header, *bucket;
  Dl_info info;
  void *lib, *addr;
  REQUIRE(getenv("SYSPROF_BUILD") != NULL);
  snprintf(path, sizeof(path), "%s/test/replaced_a.so", getenv("SYSPROF_BUILD"));
  copy_file(path, COPY);
  lib = dlopen("./" COPY, RTLD_NOW);
  if (!lib) printf("%s\n", dlerror());
  REQUIRE(lib != NULL);
  addr = dlsym(lib, NAME);
  REQUIRE(addr != NULL);
  REQUIRE(dladdr1(addr, &info, (void **)&sym, RTLD_DL_SYMENT) != 0 && sym != NULL);
  REQUIRE(dlinfo(lib, RTLD_DI_LINKMAP, &map) == 0);
  CHECK(!has_name((uintptr_t)addr)); /* The load map has another object there. */
  is_known = 1;
  CHECK(has_name((uintptr_t)addr));
  REQUIRE(unlink(COPY) == 0);
  CHECK(has_name((uintptr_t)addr));

  hash = dynamic(map, DT_GNU_HASH);
  symbols = dynamic(map, DT_SYMTAB);
  REQUIRE(symbols != NULL);
  if (!hash) {
    puts("skipped: the linker makes no GNU hash table");
    return 77;
  }
  header = (uint32_t *)*hash;
  bucket = header + 4 + header[2] * sizeof(ElfW(Addr)) / sizeof(*header);
  first = (ElfW(Sym) *)*symbols;
  make_writable(bucket, header[0] * sizeof(*bucket));
  make_writable(first, sizeof(*first));
  *first = *sym; /* It was empty: a table of one symbol would have named nothing. */
  CHECK(has_name((uintptr_t)addr));
  *bucket = 1u << 30; /* The chain begins behind the library. */
  CHECK(!has_name((uintptr_t)addr));
  memset(bucket, 0, header[0] * sizeof(*bucket)); /* No chain at all. */
  CHECK(!has_name((uintptr_t)addr));
  return check_status(); /* Unloading would need the symbols. */
}
