/*
** Chunk parser for tests of the stream's writer. Follows the description of the format, and
** shares no code with the profiler.
*/

#ifndef CHUNKS_H
#define CHUNKS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* CRC-32 of IEEE 802.3, bit by bit. */
static inline uint32_t chunks_crc32(uint32_t crc, const uint8_t *p, size_t n)
{
  int k;
  crc = ~crc;
  while (n--) {
    crc ^= *p++;
    for (k = 0; k < 8; k++) crc = (crc & 1) ? (crc >> 1) ^ 0xedb88320u : crc >> 1;
  }
  return ~crc;
}

static inline uint32_t chunks_u32(const uint8_t *p)
{
  return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

typedef struct Chunk {
  uint32_t seq;
  const uint8_t *records;
  size_t len;
} Chunk;

/* Read the chunk at p. Returns its size, 0 if the chunk is cut. */
static inline size_t chunks_read(const uint8_t *p, size_t n, Chunk *c)
{
  uint8_t tail[8];
  uint32_t crc;
  if (n < 16 || memcmp(p, "ljc\4", 4) != 0) return 0;
  c->seq = chunks_u32(p + 4);
  c->len = chunks_u32(p + 8);
  c->records = p + 16;
  if (c->len > n - 16) return 0;
  memcpy(tail, p + 4, 8);
  crc = chunks_crc32(0, c->records, c->len);
  crc = chunks_crc32(crc, tail, 8);
  return crc == chunks_u32(p + 12) ? 16 + c->len : 0;
}

/* Read a ULEB128. Returns the number of bytes read, 0 if the number is cut. */
static inline size_t chunks_uleb(const uint8_t *p, size_t n, uint64_t *v)
{
  size_t i;
  *v = 0;
  for (i = 0; i < n && i < 10; i++) {
    *v |= (uint64_t)(p[i] & 0x7f) << (7 * i);
    if (!(p[i] & 0x80)) return i + 1;
  }
  return 0;
}

#endif
