/*
** Write buffer: cuts records into chunks with checksums, and gives them to the writer.
** Context: handler and VM thread, never both at once; see the functions.
**
** Builds a chunk in place in the caller's buffer. The caller appends records in
** transactions, so a chunk holds only whole samples and all their definitions. Allocates
** nothing.
*/

#ifndef _LJ_WBUF_H
#define _LJ_WBUF_H

#include "lj_def.h"
#include "lmisclib.h"
#include "profile/format/lj_sysprof_format.h"

typedef struct WBuf {
  uint8_t *buf;   /* Start of the buffer, NULL after its end. */
  size_t cap;     /* Its size. */
  size_t reserve; /* Bytes at the end that no record may use; the
				** caller clears it for the last record. */
  size_t chunk;   /* Offset of the current chunk's header. */
  size_t done;    /* Offset behind the last committed record. */
  size_t pos;     /* Offset of the next byte. */
  int overflow;   /* This transaction did not fit. */
  uint32_t seq;   /* Number of the current chunk. */
  uint32_t crc;   /* CRC-32 of its committed records, inverted. */
  luam_Sysprof_writer writer;
  void *ctx;      /* The writer's. */
  int err;        /* errno of the writer's failure, or 0. */
  int failed;     /* The writer failed. */
  uint64_t bytes; /* Bytes that the writer has taken. */
} WBuf;

/* Has a writer taken all of a chunk? It may return more than len. A negative number is an
** error, such as -1 from write().
*/
static LJ_AINLINE int wbuf_alltaken(size_t taken, size_t len)
{
  return taken >= len && taken <= ~(size_t)0 / 2;
}

/* Start a stream in buf, and open the first chunk. Makes the CRC table. VM thread. */
LJ_FUNC void lj_wbuf_init(WBuf *wb, uint8_t *buf, size_t cap, size_t reserve,
			  luam_Sysprof_writer writer, void *ctx);

/* Append to the current transaction. */
LJ_FUNC void lj_wbuf_byte(WBuf *wb, uint8_t b);
LJ_FUNC void lj_wbuf_uleb(WBuf *wb, uint64_t v);
LJ_FUNC void lj_wbuf_signed(WBuf *wb, int64_t d);
LJ_FUNC void lj_wbuf_bytes(WBuf *wb, const uint8_t *s, size_t len);
LJ_FUNC void lj_wbuf_str(WBuf *wb, const char *s, size_t len);

/* Open and close a definition around its payload. */
LJ_FUNC size_t lj_wbuf_def_begin(WBuf *wb, uint8_t tag);
LJ_FUNC void lj_wbuf_def_end(WBuf *wb, size_t mark);

/* Open and close a short record. The bits mask of its tag hold its length; if all these
** bits are set, the rest of the length follows the tag.
*/
LJ_FUNC size_t lj_wbuf_short_begin(WBuf *wb);
LJ_FUNC void lj_wbuf_short_end(WBuf *wb, size_t mark, uint8_t tag, uint8_t mask);

/* End the transaction. Takes it back and returns 0 if it did not fit. */
LJ_FUNC int lj_wbuf_commit(WBuf *wb);

/* Complete the chunk, give it to the writer and open the next one. Returns 0 if the writer
** has ended the stream or failed, with its errno in wb->err.
*/
LJ_FUNC int lj_wbuf_flush(WBuf *wb);

/* Sink of definitions that no sample waits for. */
typedef struct DefSink {
  WBuf *wb;
  int (*commit)(void *ctx); /* Ends the transaction. Returns 0 if it did not fit: then
			    ** the buffer is empty, and one more try is due. */
  void *ctx;                /* Of commit. */
} DefSink;

/* Appends the payload of a definition. */
typedef void (*DefPayload)(WBuf *wb, const void *def);

/* Append a definition and commit it, in the next chunk if this one has no room. Leaves out
** a definition that fits into no chunk.
*/
LJ_FUNC void lj_wbuf_define(const DefSink *to, uint8_t tag, DefPayload put,
			    const void *def);

/* Zigzag code of a difference, which may be negative. */
static LJ_AINLINE uint64_t wbuf_signed(int64_t d)
{
  return ((uint64_t)d << 1) ^ (uint64_t)(d >> 63);
}

/* Does the writer take more chunks? */
static LJ_AINLINE int lj_wbuf_isopen(const WBuf *wb)
{
  return wb->buf != NULL && !wb->failed;
}

#endif
