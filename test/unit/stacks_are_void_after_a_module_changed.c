/*
** Another module stands at the addresses of a sample. A stack that the stream wrote
** before now means other code, so the stream writes it again, behind the new module. A dump
** may note the module before a sample does.
*/

#include <dlfcn.h>

#include "profile/base/lj_osobjects.h"
#include "profile/stream/lj_encoder.h"
#include "check.h"
#include "test_batch.h"
#include "chunks.h"

static Stream stream;
static Symtab symtab;
static SafeLoad peek;
static uint64_t counters[SPF_COUNTER__MAX], now;
static uint8_t buf[256 * 1024];

static int commit(void *ctx)
{
  REQUIRE(lj_batch_def_end(&batch, 0, 0));
  lj_batch_def_begin(&batch);
  (void)ctx;
  return 1;
}

static const DefSink sink = { &batch.def, commit, NULL };

static size_t writer(const void **data, size_t len, void *ctx)
{
  (void)data;
  (void)ctx;
  return len;
}

/* Take a sample at addr. Returns its definitions, first to last: m a module, s a stack. */
static const char *sample(uintptr_t addr)
{
  static FrameList lua, host;
  static char kinds[16];
  const uint8_t *p = buf + stream.wb.pos;
  RawSample *raw;
  int n = 0;
  lj_framelist_reset(&lua);
  lj_framelist_reset(&host);
  lj_framelist_push(&host, frame_word(SPF_FRAME_HOST, addr));
  lj_framelist_finish(&lua);
  lj_framelist_finish(&host);
  now += 1000;
  lj_batch_def_begin(&batch);
  lj_loadmap_sample(&symtab.loadmap, &lua, &host, &sink);
  raw = lj_batch_sample(&batch, now, NULL, 0, &lua, &host);
  REQUIRE(raw != NULL);
  raw->head.event = 0;
  raw->head.state = SPF_VMST_CFUNC;
  raw->weight = 1000;
  raw->labels = 0;
  lj_encoder_run(&stream, &batch);
  while (*p < SPF_SAMPLE) {
    int is_stack = *p >= SPF_STACK;
    uint64_t len = *p & SPF_STACK_LENGTH;
    REQUIRE(n < 15 && p < buf + stream.wb.pos);
    REQUIRE(is_stack || *p == SPF_MODULE);
    kinds[n++] = is_stack ? 's' : 'm';
    p++;
    if (is_stack) CHECK(len < SPF_STACK_LENGTH);
    else p += chunks_uleb(p, 10, &len);
    p += len;
  }
  kinds[n] = '\0';
  return kinds;
}

int main(void)
{
  const uintptr_t own = (uintptr_t)&main;
  uintptr_t other;
  LoadMap *lm = &symtab.loadmap;
  char path[1024];
  uint32_t i;
  REQUIRE(getenv("SYSPROF_BUILD") != NULL);
  snprintf(path, sizeof(path), "%s/test/replaced_a.so", getenv("SYSPROF_BUILD"));
  REQUIRE(dlopen(path, RTLD_NOW) != NULL);
  lj_osobjects_warmup();
  lj_stream_init(&stream, &symtab, counters, 1, buf, sizeof(buf), writer, NULL, 0);
  symtab.loadmap.pk = &peek;
  CHECK_EQ(lj_stream_begin(&stream), 0);
  for (i = 0; i < lm->n && (lm->list[i].obj.stays || !lm->list[i].obj.map);) i++;
  REQUIRE(i < lm->n);
  other = lm->list[i].obj.start + 8;
  CHECK(strcmp(sample(own), "s") == 0);
  CHECK(strcmp(sample(own), "") == 0);
  CHECK(strcmp(sample(other), "s") == 0);
  CHECK(strcmp(sample(own), "") == 0);
  lm->list[i].obj.idhash++; /* Another one was there. */
  CHECK(strcmp(sample(other), "ms") == 0);
  CHECK(strcmp(sample(other), "") == 0);
  CHECK(strcmp(sample(own), "s") == 0); /* All functions of the stack. */
  stream.age_us = 1000000;              /* Chunks keep the stacks of those before. */
  lm->list[i].obj.idhash++; /* A dump notes what is there now, before a sample does. */
  CHECK_EQ(lj_stream_dump(&stream), 0);
  CHECK(strcmp(sample(other), "s") == 0);
  CHECK(strcmp(sample(other), "") == 0);
  CHECK_EQ(lj_stream_end(&stream), 0);
  return check_status();
}
