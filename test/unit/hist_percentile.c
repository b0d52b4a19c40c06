/* The histogram of times: its classes cover all values without a gap. Its 99th percentile
** agrees with a sorted list, up to the width of a class.
** BASE: none, its modules know no VM
*/

#include <string.h>

#include "check.h"
#include "profile/base/lj_hist.h"

#define N 20000

static uint64_t values[N];

static int compare(const void *a, const void *b)
{
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static uint64_t next(uint64_t *x)
{
  *x ^= *x << 13;
  *x ^= *x >> 7;
  *x ^= *x << 17;
  return *x;
}

static void classes(void)
{
  uint32_t c;
  for (c = 0; c + 1 < HIST_CLASSES && hist_top(c) != ~(uint64_t)0; c++) {
    CHECK_EQ(hist_class(hist_top(c)), c);
    CHECK_EQ(hist_class(hist_top(c) + 1), c + 1);
    /* At most a quarter above the smallest value of the class. */
    if (c > 0) CHECK(hist_top(c) - (hist_top(c - 1) + 1) <= (hist_top(c - 1) + 1) / 4);
  }
  CHECK(hist_class(~(uint64_t)0) < HIST_CLASSES);
  CHECK(hist_top(hist_class(~(uint64_t)0)) == ~(uint64_t)0);
}

/* Values of n bits at most, in the order that kind says. */
static void percentile(int n, int kind)
{
  static uint64_t sorted[N];
  Hist h;
  uint64_t x = 88172645463325252u + (uint64_t)n;
  int i;
  memset(&h, 0, sizeof(h));
  CHECK_EQ(hist_p99(&h), 0);
  for (i = 0; i < N; i++) {
    values[i] = next(&x) >> (64 - n);
    if (next(&x) % 50 == 0) values[i] <<= 6;
  }
  if (kind) qsort(values, N, sizeof(values[0]), compare);
  for (i = 0; i < N; i++) {
    uint64_t v = values[kind == 2 ? N - 1 - i : i];
    hist_add(&h, hist_class(v), 1);
    sorted[i] = v;
    if ((i & (i + 1)) == 0 || i == N - 1) { /* Now and then. */
      uint64_t p99;
      static uint64_t s[N];
      memcpy(s, sorted, sizeof(s[0]) * (size_t)(i + 1));
      qsort(s, (size_t)(i + 1), sizeof(s[0]), compare);
      p99 = s[(99 * (i + 1) + 99) / 100 - 1]; /* 99 % are not above it. */
      CHECK_EQ(hist_p99(&h), hist_top(hist_class(p99)));
    }
  }
  CHECK_EQ(h.total, N);
}

int main(void)
{
  int n, kind;
  classes();
  for (n = 1; n <= 56; n += 5)
    for (kind = 0; kind < 3; kind++) percentile(n, kind);
  return check_status();
}
