/*
** Random numbers: xorshift64* of Vigna, "An experimental exploration of Marsaglia's xorshift
** generators, scrambled" (2016).
** Context: any thread, one at a time for a state. Async-signal-safe.
*/

#ifndef _LJ_RANDOM_H
#define _LJ_RANDOM_H

#include "lj_def.h"

#define RANDOM_BITS 53 /* Of a number: the low bits of the generator are weaker. */

/* Return the next number. The state is not 0. */
static LJ_AINLINE uint64_t random_next(uint64_t *state)
{
  uint64_t x = *state;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  *state = x;
  return (x * U64x(2545f491, 4f6cdd1d)) >> (64 - RANDOM_BITS);
}

#endif
