/*
** Output of a heap snapshot: a buffer, numbers, a checksum, limits of time and size.
** Context: child of a snapshot. System calls only.
**
** After a failure, all puts do nothing.
*/

#ifndef _LJ_HEAPOUT_H
#define _LJ_HEAPOUT_H

#include "lj_def.h"

#define HEAPOUT_BYTES (256 * 1024) /* A multiple of 8. */

typedef struct HeapOut {
  int fd;
  int err;          /* errno of the first failure, or 0. ETIME: the deadline is over. */
  int64_t deadline; /* In ms, see mono_ms. */
  uint64_t sum;     /* Checksum of the bytes that are written. */
  uint64_t bytes;   /* Their number. */
  uint32_t n;       /* Bytes of the buffer. */
  uint8_t buf[HEAPOUT_BYTES + 8];
} HeapOut;

/* Begin. All fields are zero. */
LJ_FUNC void lj_heapout_begin(HeapOut *o, int fd, int64_t deadline);

LJ_FUNC void lj_heapout_flush(HeapOut *o);
LJ_FUNC void lj_heapout_uleb(HeapOut *o, uint64_t v);
LJ_FUNC void lj_heapout_bytes(HeapOut *o, const void *s, size_t len);

/* Write zeros, the sum, and what is left. */
LJ_FUNC void lj_heapout_end(HeapOut *o);

static LJ_AINLINE void heapout_byte(HeapOut *o, uint8_t b)
{
  if (LJ_UNLIKELY(o->n >= HEAPOUT_BYTES)) lj_heapout_flush(o);
  o->buf[o->n++] = b;
}

static LJ_AINLINE void heapout_signed(HeapOut *o, int64_t d)
{
  lj_heapout_uleb(o, ((uint64_t)d << 1) ^ (uint64_t)(d >> 63));
}

#endif
