/*
** Output of a heap snapshot: a buffer, numbers, a checksum, limits of time and size.
** Context: child of a snapshot; see the header.
**
** The functions of the C library could be cancelled, so the calls go by syscall(2).
*/

#define lj_heapout_c
#define LUA_CORE

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "profile/base/lj_nanotime.h"
#include "profile/format/lj_heap_format.h"
#include "profile/heap/lj_heapout.h"

void lj_heapout_begin(HeapOut *o, int fd, int64_t deadline)
{
  o->fd = fd;
  o->deadline = deadline;
  o->sum = HPF_SUM;
}

static void write_all(HeapOut *o, const uint8_t *p, uint32_t len)
{
  while (len > 0) {
    long n = syscall(SYS_write, (long)o->fd, p, (size_t)len);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      o->err = n < 0 ? errno : ENOSPC;
      return;
    }
    p += n;
    len -= (uint32_t)n;
    o->bytes += (uint64_t)n;
  }
}

/* Write whole words. The rest stays in the buffer. */
void lj_heapout_flush(HeapOut *o)
{
  uint32_t len = o->n & ~7u, i;
  if (!o->err && mono_ms() > o->deadline) o->err = ETIME;
  if (o->err) {
    o->n = 0;
    return;
  }
  for (i = 0; i < len; i += 8) {
    uint64_t w;
    memcpy(&w, o->buf + i, 8);
    o->sum = (o->sum ^ w) * HPF_PRIME;
  }
  write_all(o, o->buf, len);
  memmove(o->buf, o->buf + len, o->n - len);
  o->n -= len;
}

void lj_heapout_uleb(HeapOut *o, uint64_t v)
{
  for (; v >= 0x80; v >>= 7) heapout_byte(o, (uint8_t)(v | 0x80));
  heapout_byte(o, (uint8_t)v);
}

void lj_heapout_bytes(HeapOut *o, const void *s, size_t len)
{
  const uint8_t *p = (const uint8_t *)s;
  while (len > 0 && !o->err) {
    size_t n = HEAPOUT_BYTES - o->n;
    if (n > len) n = len;
    memcpy(o->buf + o->n, p, n);
    o->n += (uint32_t)n;
    p += n;
    len -= n;
    if (len > 0) lj_heapout_flush(o);
  }
}

void lj_heapout_end(HeapOut *o)
{
  while (o->n & 7) heapout_byte(o, 0);
  lj_heapout_flush(o);
  if (o->err) return;
  memcpy(o->buf, &o->sum, 8);
  write_all(o, o->buf, 8);
}
