/*
** Multiplicative hash of words: chains, table slots, and words side by side.
** Context: handler, any thread.
**
** A product by an odd factor carries each bit to all higher bits. A shift or a fold of the
** product brings the higher bits down again.
*/

#ifndef _LJ_HASH_H
#define _LJ_HASH_H

#include <string.h>

#include "lj_def.h"

/* 2^64 divided by the golden ratio: odd, and without a pattern. */
#define HASH_FACTOR U64x(9e3779b9, 7f4a7c15)

/* Hash of a list: of the words so far (h, first 0), and the next word. Different next
** words give different hashes.
*/
static LJ_AINLINE uint64_t hash_next(uint64_t h, uint64_t v)
{
  h = (h ^ v) * HASH_FACTOR;
  return h ^ (h >> 29);
}

/* Hash of a list so far, and of bytes. */
static LJ_AINLINE uint64_t hash_bytes(uint64_t h, const uint8_t *p, const uint8_t *end)
{
  uint64_t w;
  for (; (size_t)(end - p) >= sizeof(w); p += sizeof(w)) {
    memcpy(&w, p, sizeof(w));
    h = hash_next(h, w);
  }
  for (; p < end; p++) h = hash_next(h, *p);
  return h;
}

/* Slot of a word in a table of 2^bits slots. */
static LJ_AINLINE uint32_t hash_slot(uint64_t v, int bits)
{
  return (uint32_t)((hash_next(0, v) * HASH_FACTOR) >> (64 - bits));
}

/* A key without a pattern. */
#define HASH_KEY U64x(a0761d64, 78bd642f)

/* Hash of two words. The sum of several, each with its own key, is a hash of many words.
** The processor computes them side by side.
*/
static LJ_AINLINE uint64_t hash_pair(uint64_t a, uint64_t b)
{
  unsigned __int128 p = (unsigned __int128)a * b;
  return (uint64_t)p ^ (uint64_t)(p >> 64);
}

#endif
