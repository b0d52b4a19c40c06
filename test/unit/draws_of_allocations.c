/*
** Draws of the allocation sampler: each byte has the same chance, and weights are unbiased for
** blocks of any size. The bounds are six standard errors: chance exceeds one once in 500
** million.
*/

#include <math.h>

#include "check.h"
#include "profile/alloc/lj_allocdraw.h"

#define N     400000
#define SIGMA 6

static AllocDraw d;

/* Distances have the mean and the standard deviation of their exponential distribution. The
** draw is cut to whole bytes, so the mean is 1/2 less.
*/
static void distances(uint64_t period)
{
  double sum = 0, above = 0, mean = (double)period, e = exp(-1), got;
  int i;
  for (i = 0; i < N; i++) {
    uint64_t distance = lj_allocdraw_distance(&d, period);
    sum += (double)distance;
    above += (double)distance >= mean;
  }
  CHECK(fabs(sum / N - (mean - 0.5)) < SIGMA * mean / sqrt(N));
  /* A share of 1/e is above the mean. */
  got = above / N;
  CHECK(fabs(got - e) < SIGMA * sqrt(e * (1 - e) / N) + 1 / mean);
}

/* Blocks of one size, sampled as the hook does: the sums of the weights are the truth. */
static void weights(uint64_t period, uint64_t size)
{
  double p = period <= 1 ? 1 : -expm1(-(double)size / (double)period);
  double n = 0, bytes = 0, blocks = 0, var;
  uint64_t left = lj_allocdraw_distance(&d, period);
  int i;
  for (i = 0; i < N; i++) {
    uint64_t b, k;
    if (size <= left) {
      left -= size;
      continue;
    }
    left = lj_allocdraw_distance(&d, period);
    lj_allocdraw_weights(&d, period, size, &b, &k);
    CHECK(b >= size && k >= 1);
    n++;
    bytes += (double)b;
    blocks += (double)k;
  }
  /* See alloc_truth.lua. */
  var = N * (1 - p) / p + N * p / 4;
  CHECK(fabs(blocks - N) <= SIGMA * sqrt(var));
  var = N * (double)size * (double)size * (1 - p) / p + N * p / 4;
  CHECK(fabs(bytes - (double)N * (double)size) <= SIGMA * sqrt(var));
  CHECK(fabs(n - N * p) <= SIGMA * sqrt(N * p * (1 - p)));
}

int main(void)
{
  static const uint64_t sizes[] = { 1, 8, 16, 100, 1000, 16384, 524288, 1 << 20, 1 << 30 };
  static const uint64_t periods[] = { 1, 2, 7, 100, 4096, 524288 };
  uint64_t seed;
  size_t i, k;
  lj_allocdraw_seed(&d, 0); /* It works, too. */
  CHECK(d.state != 0);
  for (seed = 1; seed < 1000; seed++) {
    AllocDraw other;
    lj_allocdraw_seed(&d, seed);
    lj_allocdraw_seed(&other, seed + 1);
    CHECK(lj_allocdraw_distance(&d, 1 << 20) != lj_allocdraw_distance(&other, 1 << 20));
  }
  CHECK_EQ(lj_allocdraw_distance(&d, 1), 0);
  for (i = 0; i < sizeof(periods) / sizeof(periods[0]); i++) {
    if (periods[i] >= 100) distances(periods[i]);
    for (k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) weights(periods[i], sizes[k]);
  }
  for (i = 0; i < 1000; i++)
    CHECK(lj_allocdraw_distance(&d, (uint64_t)1 << 62) <= 1000000000000000000);
  return check_status();
}
