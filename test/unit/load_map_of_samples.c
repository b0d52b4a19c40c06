/* The addresses of samples keep the load map up to date. It does not write known objects
** again, writes changed ones, and keeps its memory.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For dl_iterate_phdr. */
#endif
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "lj_obj.h"
#include "profile/base/lj_osloaded.h"
#include "profile/base/lj_osobjects.h"
#include "profile/symbols/lj_loadmap.h"
#include "check.h"
#include "chunks.h"

#define HOST(addr) frame_word(SPF_FRAME_HOST, (uintptr_t)(addr))

static LoadMap lm;
static SafeLoad peek;
static WBuf wb;
static uint8_t buf[256 * 1024];
static FrameList lua, host;
static int full; /* Nothing fits. */

static size_t writer(const void **data, size_t len, void *ctx)
{
  (void)data;
  (void)ctx;
  return len;
}

static int commit(void *ctx)
{
  (void)ctx;
  if (full) wb.overflow = 1;
  return lj_wbuf_commit(&wb);
}

static const DefSink sink = { &wb, commit, NULL };

/* A record of a module. */
typedef struct Record {
  uint64_t start, end, bias, idlen, pathlen;
  const uint8_t *id, *path;
} Record;

static const uint8_t *number(const uint8_t *p, uint64_t *v)
{
  size_t n = chunks_uleb(p, 10, v);
  REQUIRE(n > 0);
  return p + n;
}

/* Read the records from p to the end of the buffer. Returns their number, and
** the last one.
*/
static int records(const uint8_t *p, Record *r)
{
  int n = 0;
  while (p < buf + wb.pos) {
    uint64_t len;
    const uint8_t *end;
    CHECK_EQ(*p, SPF_MODULE);
    p = number(p + 1, &len);
    end = p + len;
    p = number(number(number(p, &r->start), &r->end), &r->bias);
    r->id = number(p, &r->idlen);
    r->path = number(r->id + r->idlen, &r->pathlen);
    p = r->path + r->pathlen;
    REQUIRE(p == end);
    n++;
  }
  return n;
}

/* Take a sample of some addresses. Returns the number of new records. */
static int sample(int n, const uintptr_t *addr, Record *r)
{
  const uint8_t *p = buf + wb.pos;
  int i, written, news;
  lj_framelist_reset(&lua);
  lj_framelist_reset(&host);
  for (i = 0; i < n; i++) lj_framelist_push(&host, HOST(addr[i]));
  lj_framelist_push(&lua, frame_word(SPF_FRAME_CFUNC, addr[0]));
  lj_framelist_push(&lua, frame_word(SPF_FRAME_CBOUND, 0));
  lj_framelist_finish(&lua);
  lj_framelist_finish(&host);
  news = lj_loadmap_sample(&lm, &lua, &host, &sink);
  written = records(p, r);
  CHECK(full || news == (written > 0));
  return written;
}

static int sample_one(uintptr_t addr, Record *r)
{
  return sample(1, &addr, r);
}

static int path_is(const Record *r, const char *path)
{
  return r->pathlen == strlen(path) && memcmp(r->path, path, r->pathlen) == 0;
}

static LoadedObj *module_of(uintptr_t addr)
{
  uint32_t i;
  for (i = 0; i < lm.n; i++)
    if (addr >= lm.list[i].obj.start && addr < lm.list[i].obj.end) return &lm.list[i];
  return NULL;
}

static int check_order(void)
{
  uint32_t i;
  for (i = 0; i < lm.n; i++)
    if (lm.list[i].obj.start >= lm.list[i].obj.end ||
	(i && lm.list[i - 1].obj.end > lm.list[i].obj.start))
      return 0;
  return lm.n <= LOADMAP_MAX;
}

static int count_objects(struct dl_phdr_info *info, size_t sz, void *n)
{
  (void)info;
  (void)sz;
  ++*(int *)n;
  return 0;
}

static int count_known(struct dl_phdr_info *info, size_t sz, void *n)
{
  (void)sz;
  *(int *)n += lj_loadmap_has(&lm, info);
  return 0;
}

/* Number of the loaded objects that the map has. */
static int known(void)
{
  int n = 0;
  dl_iterate_phdr(count_known, &n);
  return n;
}

/* Find an object that is not one of those that stay. */
static LoadedObj *other_object(void)
{
  uint32_t i;
  for (i = 0; i < lm.n; i++)
    if (!lm.list[i].obj.stays && lm.list[i].obj.map) return &lm.list[i];
  return NULL;
}

int main(void)
{
  const uintptr_t own = (uintptr_t)&main;
  uintptr_t addr[3];
  uint8_t *hole = (uint8_t *)mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				  0);
  char path[1024];
  Record r, first;
  LoadedObj *m, fake;
  int objects = 0, i;
  REQUIRE(hole != MAP_FAILED);
  lj_wbuf_init(&wb, buf, sizeof(buf), 0, writer, NULL);
  REQUIRE(getenv("SYSPROF_BUILD") != NULL);
  snprintf(path, sizeof(path), "%s/test/replaced_a.so", getenv("SYSPROF_BUILD"));
  REQUIRE(dlopen(path, RTLD_NOW) != NULL);
  lj_osobjects_warmup();
  dl_iterate_phdr(count_objects, &objects);

  /* At start: each object once. */
  lm.pk = &peek;
  lj_loadmap_note(&lm, &sink);
  CHECK_EQ(records(buf + wb.chunk + SPF_CHUNK_HEADER, &r), objects);
  CHECK_EQ(lm.n, objects);
  CHECK(check_order());
  REQUIRE((m = module_of(own)) != NULL);
  CHECK(m->obj.stays);
  i = (int)wb.pos;
  lj_loadmap_note(&lm, &sink);
  CHECK_EQ(wb.pos, i);

  /* Known addresses, and addresses outside of all objects: our own table notes their pages. */
  m = other_object();
  REQUIRE(m != NULL);
  addr[0] = own;
  addr[1] = m->obj.start;
  addr[2] = (uintptr_t)hole;
  CHECK_EQ(sample(3, addr, &r), lj_osloaded_isown);
  CHECK_EQ(sample(3, addr, &r), 0);
  CHECK_EQ(sample_one(m->obj.end - 1, &r), 0);
  CHECK_EQ(sample_one(0, &r), 0);
  CHECK_EQ(sample_one(~(uintptr_t)0 >> FRAME_KIND_BITS, &r), lj_osloaded_isown);

  /* Forgotten, so it is found again, and described as at start. */
  addr[0] = m->obj.start + 8;
  memset(&first, 0, sizeof(first));
  lm.n = 0;
  lj_loadmap_note(&lm, &sink);
  m = module_of(addr[0]);
  fake = *m;
  memmove(m, m + 1, (size_t)(&lm.list[--lm.n] - m) * sizeof(*m));
  CHECK_EQ(sample_one(addr[0], &r), 1);
  CHECK(r.start <= addr[0] && addr[0] < r.end);
  CHECK(r.pathlen > 1 && r.path[0] == '/');
  REQUIRE((m = module_of(addr[0])) != NULL);
  CHECK_EQ(m->obj.start, fake.obj.start);
  CHECK_EQ(m->obj.end, fake.obj.end);
  CHECK_EQ(m->obj.idhash, fake.obj.idhash);
  CHECK(r.idlen == 0 ||
	(r.idlen == m->obj.idlen && memcmp(r.id, m->obj.id, m->obj.idlen) == 0));
  first = r;
  CHECK_EQ(sample_one(addr[0], &r), 0);
  CHECK_EQ(known(), objects); /* However it was described. */
  m->obj.idhash++;
  CHECK_EQ(known(), objects - 1);
  m->obj.idhash--;

  /* Another object was there: each of these differences is enough. */
  for (i = 0; i < 5; i++) {
    m = module_of(addr[0]);
    switch (i) {
    case 0: m->obj.idhash++; break;
    case 1: m->obj.map = &m; break;
    case 2: m->obj.eh_frame = &m; break;
    case 3: m->obj.id = hole; break;  /* Not readable. */
    case 4: m->obj.map = NULL; break; /* No object was there. */
    }
    CHECK_EQ(sample_one(addr[0], &r), 1);
    CHECK_EQ(r.start, first.start);
    CHECK_EQ(r.end, first.end);
    CHECK_EQ(r.bias, first.bias);
    CHECK(r.idlen == first.idlen && memcmp(r.id, first.id, r.idlen) == 0);
    CHECK(r.pathlen == first.pathlen && memcmp(r.path, first.path, r.pathlen) == 0);
    CHECK_EQ(sample_one(addr[0], &r), 0);
    CHECK(check_order());
  }

  /* It was there with another size, next to others. */
  m = module_of(addr[0]);
  m->obj.idhash++;
  m->obj.end = m->obj.start + 16;
  CHECK_EQ(sample_one(addr[0], &r), 1);
  CHECK_EQ(r.end, first.end);

  /* Unloaded; other code runs there, outside of all objects. */
  memset(&fake, 0, sizeof(fake));
  fake.obj.start = (uintptr_t)hole;
  fake.obj.end = fake.obj.start + 65536;
  fake.obj.map = &fake;
  for (i = 0; i < (int)lm.n && lm.list[i].obj.start < fake.obj.start; i++)
    ;
  memmove(&lm.list[i + 1], &lm.list[i], (lm.n - (uint32_t)i) * sizeof(fake));
  lm.list[i] = fake;
  lm.n++;
  REQUIRE(check_order());
  CHECK_EQ(sample_one(fake.obj.start + 4096, &r), 1);
  CHECK_EQ(r.start, fake.obj.start);
  CHECK_EQ(r.end, fake.obj.end);
  CHECK(path_is(&r, "[anonymous]"));
  CHECK_EQ(sample_one(fake.obj.start + 8192, &r), 0);

  /* What does not fit is noted, and not tried again with each sample. */
  full = 1;
  m = module_of(addr[0]);
  m->obj.idhash++;
  CHECK_EQ(sample_one(addr[0], &r), 0);
  full = 0;
  CHECK_EQ(sample_one(addr[0], &r), 0);

  /* No room: some are forgotten, and found again. Those that stay, stay. */
  fake.obj.map = NULL;
  for (i = 0; lm.n < LOADMAP_MAX; i++) {
    fake.obj.start = fake.obj.end + 0x1000000000u;
    fake.obj.end = fake.obj.start + 64;
    if (module_of(fake.obj.start)) continue;
    for (m = lm.list; m < lm.list + lm.n && m->obj.start < fake.obj.start; m++)
      ;
    memmove(m + 1, m, (size_t)(&lm.list[lm.n] - m) * sizeof(fake));
    *m = fake;
    lm.n++;
  }
  CHECK(check_order());
  for (i = 0; i < 2 * LOADMAP_MAX; i++) {
    m = module_of(addr[0]);
    if (m) memmove(m, m + 1, (size_t)(&lm.list[--lm.n] - m) * sizeof(*m));
    while (lm.n < LOADMAP_MAX) { /* As many others were seen. */
      fake.obj.start = fake.obj.end = lm.list[lm.n - 1].obj.end;
      fake.obj.end += 64;
      lm.list[lm.n++] = fake;
    }
    CHECK_EQ(sample_one(addr[0], &r), 1);
    CHECK(lm.n <= LOADMAP_MAX);
    lj_wbuf_flush(&wb);
  }
  CHECK(check_order());
  REQUIRE((m = module_of(own)) != NULL);
  CHECK(m->obj.stays);
  return check_status();
}
