/* An address with high bits set does not count as the readable page with the same low
** bits, in any sample.
** BASE: none, its modules know no VM
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "lj_arch.h"
#include "profile/base/lj_safeload.h"
#include "check.h"

static SafeLoad pk;

int main(void)
{
  static uint64_t page[1024];
  uintptr_t p = (uintptr_t)&page[512] & ~(uintptr_t)4095;
  int sample, bit;
  for (bit = 47; bit < 64; bit++) {
    int taken = 0;
    for (sample = 0; sample < 140000; sample++) {
      lj_safeload_reset(&pk);
      if (sample % 1000 != 0 && (sample & (sample - 1)) != 0 &&
	  (sample & (sample + 1)) != 0)
	continue;
      REQUIRE(lj_safeload_ok(&pk, (void *)p, 8));
      taken += lj_safeload_ok(&pk, (void *)(p | (uintptr_t)1 << bit), 8);
    }
    CHECK_EQ(taken, 0);
  }
  return check_status();
}
