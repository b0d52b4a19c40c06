/* The load map is brought up to date by the addresses of samples: what is known
** is not written again, what has changed is, and memory stays what it is.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For dl_iterate_phdr. */
#endif
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "lj_obj.h"
#include "profile/symbols/lj_loadmap.h"
#include "check.h"
#include "chunks.h"

#define HOST(addr) frame_word(SPF_FRAME_HOST, (uintptr_t)(addr))

static Modules ms;
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
  news = lj_loadmap_sample(&ms, &lua, &host, &wb, commit, NULL);
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

static Module *module_of(uintptr_t addr)
{
  uint32_t i;
  for (i = 0; i < ms.n; i++)
    if (addr >= ms.list[i].start && addr < ms.list[i].end) return &ms.list[i];
  return NULL;
}

static int check_order(void)
{
  uint32_t i;
  for (i = 0; i < ms.n; i++)
    if (ms.list[i].start >= ms.list[i].end || (i && ms.list[i - 1].end > ms.list[i].start))
      return 0;
  return ms.n <= LOADMAP_MAX;
}

static int count_objects(struct dl_phdr_info *info, size_t sz, void *n)
{
  (void)info;
  (void)sz;
  ++*(int *)n;
  return 0;
}

/* Find an object that is not one of those that stay. */
static Module *other_object(void)
{
  uint32_t i;
  for (i = 0; i < ms.n; i++)
    if (!ms.list[i].stays && ms.list[i].map) return &ms.list[i];
  return NULL;
}

int main(void)
{
  const uintptr_t own = (uintptr_t)&main;
  uintptr_t addr[3];
  uint8_t *hole = (uint8_t *)mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				  0);
  Record r, first;
  Module *m, fake;
  int objects = 0, i;
  REQUIRE(hole != MAP_FAILED);
  lj_wbuf_init(&wb, buf, sizeof(buf), 0, writer, NULL);
  dl_iterate_phdr(count_objects, &objects);

  /* At start: each object once. */
  lj_loadmap_note(&ms, &wb, commit, NULL);
  CHECK_EQ(records(buf + wb.chunk + SPF_CHUNK_HEADER, &r), objects);
  CHECK_EQ(ms.n, objects);
  CHECK(check_order());
  REQUIRE((m = module_of(own)) != NULL);
  CHECK(m->stays);
  i = (int)wb.pos;
  lj_loadmap_note(&ms, &wb, commit, NULL);
  CHECK_EQ(wb.pos, i);

  /* Known addresses, and those of no object. */
  m = other_object();
  REQUIRE(m != NULL);
  addr[0] = own;
  addr[1] = m->start;
  addr[2] = (uintptr_t)hole;
  CHECK_EQ(sample(3, addr, &r), 0);
  CHECK_EQ(sample_one(m->end - 1, &r), 0);
  CHECK_EQ(sample_one(0, &r), 0);
  CHECK_EQ(sample_one(~(uintptr_t)0 >> FRAME_KIND_BITS, &r), 0);

  /* Forgotten, so it is found again, and described as at start. */
  addr[0] = m->start + 8;
  memset(&first, 0, sizeof(first));
  ms.n = 0;
  lj_loadmap_note(&ms, &wb, commit, NULL);
  m = module_of(addr[0]);
  fake = *m;
  memmove(m, m + 1, (size_t)(&ms.list[--ms.n] - m) * sizeof(*m));
  CHECK_EQ(sample_one(addr[0], &r), 1);
  CHECK(r.start <= addr[0] && addr[0] < r.end);
  CHECK(r.pathlen > 1 && r.path[0] == '/');
  REQUIRE((m = module_of(addr[0])) != NULL);
  CHECK_EQ(m->start, fake.start);
  CHECK_EQ(m->end, fake.end);
  CHECK_EQ(m->idhash, fake.idhash);
  CHECK(r.idlen == 0 || (r.idlen == m->idlen && memcmp(r.id, m->id, m->idlen) == 0));
  first = r;
  CHECK_EQ(sample_one(addr[0], &r), 0);

  /* Another one was there: each of the signs tells. */
  for (i = 0; i < 5; i++) {
    m = module_of(addr[0]);
    switch (i) {
    case 0: m->idhash++; break;
    case 1: m->map = &m; break;
    case 2: m->eh_frame = &m; break;
    case 3: m->id = hole; break;  /* Not readable. */
    case 4: m->map = NULL; break; /* None. */
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
  m->idhash++;
  m->end = m->start + 16;
  CHECK_EQ(sample_one(addr[0], &r), 1);
  CHECK_EQ(r.end, first.end);

  /* Unloaded, and something runs there that is no object. */
  memset(&fake, 0, sizeof(fake));
  fake.start = (uintptr_t)hole;
  fake.end = fake.start + 65536;
  fake.map = &fake;
  for (i = 0; i < (int)ms.n && ms.list[i].start < fake.start; i++)
    ;
  memmove(&ms.list[i + 1], &ms.list[i], (ms.n - (uint32_t)i) * sizeof(fake));
  ms.list[i] = fake;
  ms.n++;
  REQUIRE(check_order());
  CHECK_EQ(sample_one(fake.start + 4096, &r), 1);
  CHECK_EQ(r.start, fake.start);
  CHECK_EQ(r.end, fake.end);
  CHECK(path_is(&r, "[anonymous]"));
  CHECK_EQ(sample_one(fake.start + 8192, &r), 0);

  /* What does not fit is noted, and not tried again with each sample. */
  full = 1;
  m = module_of(addr[0]);
  m->idhash++;
  CHECK_EQ(sample_one(addr[0], &r), 0);
  full = 0;
  CHECK_EQ(sample_one(addr[0], &r), 0);

  /* No room: some are forgotten, and found again. Those that stay, stay. */
  fake.map = NULL;
  for (i = 0; ms.n < LOADMAP_MAX; i++) {
    fake.start = fake.end + 0x1000000000u;
    fake.end = fake.start + 64;
    if (module_of(fake.start)) continue;
    for (m = ms.list; m < ms.list + ms.n && m->start < fake.start; m++)
      ;
    memmove(m + 1, m, (size_t)(&ms.list[ms.n] - m) * sizeof(fake));
    *m = fake;
    ms.n++;
  }
  CHECK(check_order());
  for (i = 0; i < 2 * LOADMAP_MAX; i++) {
    m = module_of(addr[0]);
    if (m) memmove(m, m + 1, (size_t)(&ms.list[--ms.n] - m) * sizeof(*m));
    while (ms.n < LOADMAP_MAX) { /* As many others were seen. */
      fake.start = fake.end = ms.list[ms.n - 1].end;
      fake.end += 64;
      ms.list[ms.n++] = fake;
    }
    CHECK_EQ(sample_one(addr[0], &r), 1);
    CHECK(ms.n <= LOADMAP_MAX);
    lj_wbuf_flush(&wb);
  }
  CHECK(check_order());
  REQUIRE((m = module_of(own)) != NULL);
  CHECK(m->stays);
  return check_status();
}
