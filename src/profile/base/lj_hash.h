/*
** Multiplicative hash of words: the folded product of 128 bits.
** Context: handler, any thread.
**
** Every bit of both factors changes about half of the bits of the result. One
** multiplication and one exclusive or.
*/

#ifndef _LJ_HASH_H
#define _LJ_HASH_H

#include "lj_def.h"

/* An odd factor without a pattern: 2^64 divided by the golden ratio. */
#define HASH_FACTOR U64x(9e3779b9, 7f4a7c15)
/* A start value without a pattern, so that small words have large products. */
#define HASH_START U64x(a0761d64, 78bd642f)

/* Multiply two words, and fold the product into one. */
static LJ_AINLINE uint64_t hash_mul(uint64_t a, uint64_t b)
{
  unsigned __int128 p = (unsigned __int128)a * b;
  return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/* Hash of a word behind others, which have the hash h: HASH_START for none. */
static LJ_AINLINE uint64_t hash_next(uint64_t h, uint64_t v)
{
  return hash_mul(h ^ v, HASH_FACTOR);
}

/* Slot of a word in a table of 2^bits slots. */
static LJ_AINLINE uint32_t hash_slot(uint64_t v, int bits)
{
  return (uint32_t)(hash_next(HASH_START, v) >> (64 - bits));
}

#endif
