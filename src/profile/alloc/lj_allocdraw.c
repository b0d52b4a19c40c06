/*
** Draws of the allocation sampler: distances in bytes, and weights.
** Context: any thread.
*/

#define lj_allocdraw_c
#define LUA_CORE

#include <math.h>

#include "profile/alloc/lj_allocdraw.h"
#include "profile/base/lj_random.h"

#define DISTANCE_MAX 1e18

/* Return a number above 0 and at most 1. */
static double draw(AllocDraw *d)
{
  return (double)(random_next(&d->state) + 1) * 0x1p-53;
}

void lj_allocdraw_seed(AllocDraw *d, uint64_t seed)
{
  int i;
  d->state = seed ? seed : 1;
  for (i = 0; i < 8; i++) draw(d); /* Similar seeds soon differ. */
}

uint64_t lj_allocdraw_distance(AllocDraw *d, uint64_t period)
{
  double distance;
  if (period <= 1) return 0;
  distance = -log(draw(d)) * (double)period;
  return distance < DISTANCE_MAX ? (uint64_t)distance : (uint64_t)DISTANCE_MAX;
}

static uint64_t round_at_random(AllocDraw *d, double v)
{
  double whole = floor(v);
  return (uint64_t)whole + (draw(d) <= v - whole);
}

/* Probability that a block is sampled. */
static double chance(uint64_t period, uint64_t size)
{
  return period <= 1 ? 1 : -expm1(-(double)size / (double)period);
}

void lj_allocdraw_weights(AllocDraw *d, uint64_t period, uint64_t size, uint64_t *bytes,
			  uint64_t *blocks)
{
  double p = chance(period, size);
  *bytes = round_at_random(d, (double)size / p);
  *blocks = round_at_random(d, 1 / p);
}

int lj_allocdraw_keeps(AllocDraw *d, uint64_t size, uint64_t period, uint64_t longer)
{
  return longer <= period || draw(d) * chance(period, size) <= chance(longer, size);
}
