/*
** Write buffer of the stream.
** Context: handler, VM thread; see the header.
*/

#define lj_wbuf_c
#define LUA_CORE

#include <errno.h>

#include "profile/format/lj_wbuf.h"

/* -- CRC-32 (IEEE 802.3, reflected polynomial 0xedb88320) -------------------- */

static uint32_t crc_table[256];

static void crc_init(void)
{
  uint32_t i, k;
  if (crc_table[1]) return; /* Handlers may use it. */
  for (i = 0; i < 256; i++) {
    uint32_t c = i;
    for (k = 0; k < 8; k++) c = (c >> 1) ^ (0xedb88320u & (0u - (c & 1)));
    crc_table[i] = c;
  }
}

/* Continue an inverted CRC. */
static uint32_t crc_update(uint32_t crc, const uint8_t *p, size_t n)
{
  while (n--) crc = crc_table[(crc ^ *p++) & 0xff] ^ (crc >> 8);
  return crc;
}

/* -- Chunks ------------------------------------------------------------------ */

static void put_u32(uint8_t *p, uint32_t v)
{
  p[0] = (uint8_t)v;
  p[1] = (uint8_t)(v >> 8);
  p[2] = (uint8_t)(v >> 16);
  p[3] = (uint8_t)(v >> 24);
}

/* Open a chunk at an offset of the buffer. */
static void chunk_open(WBuf *wb, size_t at)
{
  wb->chunk = at;
  wb->done = wb->pos = at + SPF_CHUNK_HEADER;
  wb->crc = ~(uint32_t)0;
  wb->overflow = 0;
}

void lj_wbuf_init(WBuf *wb, uint8_t *buf, size_t cap, size_t reserve,
		  luam_Sysprof_writer writer, void *ctx)
{
  static const uint8_t prologue[SPF_PROLOGUE_SIZE] = { 'l', 'j', 's', SPF_SYMTAB_VERSION,
						       0,   0,   0,   SPF_SYMTAB_END,
						       'l', 'j', 'p', SPF_VERSION,
						       0,   0,   0 };
  size_t i;
  crc_init();
  wb->buf = buf;
  wb->cap = cap < SPF_CHUNK_MAX ? cap : SPF_CHUNK_MAX;
  wb->reserve = reserve;
  wb->seq = 0;
  wb->writer = writer;
  wb->ctx = ctx;
  wb->err = wb->failed = 0;
  wb->bytes = 0;
  for (i = 0; i < SPF_PROLOGUE_SIZE; i++) buf[i] = prologue[i];
  chunk_open(wb, SPF_PROLOGUE_SIZE);
}

void lj_wbuf_byte(WBuf *wb, uint8_t b)
{
  if (LJ_UNLIKELY(wb->pos + wb->reserve >= wb->cap)) wb->overflow = 1;
  else wb->buf[wb->pos++] = b;
}

void lj_wbuf_uleb(WBuf *wb, uint64_t v)
{
  while (v >= 0x80) {
    lj_wbuf_byte(wb, (uint8_t)(v | 0x80));
    v >>= 7;
  }
  lj_wbuf_byte(wb, (uint8_t)v);
}

void lj_wbuf_signed(WBuf *wb, int64_t d)
{
  lj_wbuf_uleb(wb, wbuf_signed(d));
}

void lj_wbuf_bytes(WBuf *wb, const uint8_t *s, size_t len)
{
  if (LJ_UNLIKELY(wb->pos + wb->reserve + len > wb->cap)) {
    wb->overflow = 1;
    return;
  }
  memcpy(wb->buf + wb->pos, s, len);
  wb->pos += len;
}

void lj_wbuf_str(WBuf *wb, const char *s, size_t len)
{
  lj_wbuf_uleb(wb, len);
  lj_wbuf_bytes(wb, (const uint8_t *)s, len);
}

/* The length comes before the payload. It gets two bytes, which are enough for 16383
** bytes; lj_wbuf_def_end takes one back if the payload is short.
*/
size_t lj_wbuf_def_begin(WBuf *wb, uint8_t tag)
{
  lj_wbuf_byte(wb, tag);
  lj_wbuf_byte(wb, 0);
  lj_wbuf_byte(wb, 0);
  return wb->pos;
}

void lj_wbuf_def_end(WBuf *wb, size_t mark)
{
  size_t i, len;
  if (wb->overflow) return;
  len = wb->pos - mark;
  if (len < 0x80) {
    wb->buf[mark - 2] = (uint8_t)len;
    for (i = 0; i < len; i++) wb->buf[mark - 1 + i] = wb->buf[mark + i];
    wb->pos--;
  } else if (len < 0x4000) {
    wb->buf[mark - 2] = (uint8_t)(len | 0x80);
    wb->buf[mark - 1] = (uint8_t)(len >> 7);
  } else {
    wb->overflow = 1;
  }
}

size_t lj_wbuf_short_begin(WBuf *wb)
{
  lj_wbuf_byte(wb, 0);
  return wb->pos;
}

/* Most records are short: only a long one is moved, to make room behind its tag. */
void lj_wbuf_short_end(WBuf *wb, size_t mark, uint8_t tag, uint8_t mask)
{
  size_t i, len, end = wb->pos, room;
  if (wb->overflow) return;
  len = end - mark;
  if (len < mask) {
    wb->buf[mark - 1] = (uint8_t)(tag | len);
    return;
  }
  lj_wbuf_uleb(wb, len - mask); /* Only to learn its number of bytes. */
  if (wb->overflow) return;
  room = wb->pos - end;
  for (i = end; i-- > mark;) wb->buf[i + room] = wb->buf[i];
  wb->buf[mark - 1] = (uint8_t)(tag | mask);
  wb->pos = mark;
  lj_wbuf_uleb(wb, len - mask);
  wb->pos = end + room;
}

int lj_wbuf_commit(WBuf *wb)
{
  if (wb->overflow) {
    wb->overflow = 0;
    wb->pos = wb->done;
    return 0;
  }
  wb->crc = crc_update(wb->crc, wb->buf + wb->done, wb->pos - wb->done);
  wb->done = wb->pos;
  return 1;
}

void lj_wbuf_define(const DefSink *to, uint8_t tag, DefPayload put, const void *def)
{
  int tries;
  for (tries = 0; tries < 2; tries++) {
    size_t mark = lj_wbuf_def_begin(to->wb, tag);
    put(to->wb, def);
    lj_wbuf_def_end(to->wb, mark);
    if (to->commit(to->ctx)) return;
  }
}

int lj_wbuf_flush(WBuf *wb)
{
  uint8_t *head;
  uint32_t paylen;
  const void *data = wb->buf;
  size_t len = wb->done, taken;
  if (!lj_wbuf_isopen(wb)) return 0;
  head = wb->buf + wb->chunk;
  paylen = (uint32_t)(wb->done - wb->chunk - SPF_CHUNK_HEADER);
  head[0] = 'l';
  head[1] = 'j';
  head[2] = 'c';
  head[3] = SPF_VERSION;
  put_u32(head + 4, wb->seq);
  put_u32(head + 8, paylen);
  put_u32(head + 12, ~crc_update(wb->crc, head + 4, 8));
  errno = 0;
  taken = wb->writer(&data, len, wb->ctx);
  if (!wbuf_alltaken(taken, len)) {
    wb->failed = 1;
    wb->err = errno ? errno : EIO;
    return 0;
  }
  wb->bytes += len;
  wb->seq++;
  wb->buf = (uint8_t *)data;
  if (!wb->buf) { /* The writer ended the stream, so no byte fits now. */
    wb->cap = wb->done = wb->pos = 0;
    return 0;
  }
  chunk_open(wb, 0);
  return 1;
}
