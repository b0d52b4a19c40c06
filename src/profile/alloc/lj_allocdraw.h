/*
** Draws of the allocation sampler: distances in bytes, and weights.
** Context: any thread.
**
** Poisson sampling, as Go's heap profile does it: each byte has the same chance 1/period, so
** the distance to the next sample is exponential. A block of n bytes is sampled with the
** probability p = 1 - e^(-n/period), and its sample stands for n/p bytes and 1/p blocks. The
** sums are unbiased for blocks of any size. Weights are whole numbers: draws round up or down
** by the rest, so that the mean is exact.
*/

#ifndef _LJ_ALLOCDRAW_H
#define _LJ_ALLOCDRAW_H

#include "lj_def.h"

/* State of the generator; not 0. */
typedef struct AllocDraw {
  uint64_t state;
} AllocDraw;

LJ_FUNC void lj_allocdraw_seed(AllocDraw *d, uint64_t seed);

/* Bytes that pass before the next sample: a block that is larger is sampled. */
LJ_FUNC uint64_t lj_allocdraw_distance(AllocDraw *d, uint64_t period);

/* Bytes and blocks that the sample of a block stands for. */
LJ_FUNC void lj_allocdraw_weights(AllocDraw *d, uint64_t period, uint64_t size,
				  uint64_t *bytes, uint64_t *blocks);

/* Does a sampled block stay, if the period becomes longer? With the ratio of the probabilities. */
LJ_FUNC int lj_allocdraw_keeps(AllocDraw *d, uint64_t size, uint64_t period,
			       uint64_t longer);

#endif
