/* Fault-safe loads refuse unreadable memory, and never touch it.
** BASE: none, its modules know no VM
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <sys/mman.h>

#include "lj_arch.h"
#include "profile/base/lj_safeload.h"
#include "check.h"

#define PAGE 4096

static SafeLoad pk;

static int word(uintptr_t addr, uintptr_t *w)
{
  *w = 0x5a5a;
  return lj_safeload_word(&pk, addr, w);
}

int main(void)
{
  static const uintptr_t bad[] = { 0,
				   8,
				   4088,
				   (uintptr_t)1 << 47,
				   ((uintptr_t)1 << 47) - 8,
				   (uintptr_t)0x8000000000000000u,
				   (uintptr_t)0xffff800000000000u,
				   (uintptr_t)0xffffffffff600000u,
				   ~(uintptr_t)7,
				   0x4141414141414140u };
  uint8_t *m = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
  uintptr_t p = (uintptr_t)m, w;
  size_t i;
  int err;
  REQUIRE(m != MAP_FAILED);
  *(uintptr_t *)m = 1;
  *(uintptr_t *)(m + PAGE - 8) = 2;
  REQUIRE(munmap(m + PAGE, PAGE) == 0);
  REQUIRE(mprotect(m + 2 * PAGE, PAGE, PROT_NONE) == 0);
  lj_safeload_reset(&pk);

  CHECK(word(p, &w) && w == 1);
  CHECK(word(p + PAGE - 8, &w) && w == 2);
  CHECK(!word(p + 1, &w));        /* Not aligned. */
  CHECK(!word(p + PAGE, &w));     /* Not mapped. */
  CHECK_EQ(w, 0x5a5a);            /* Left alone. */
  CHECK(!word(p + 2 * PAGE, &w)); /* PROT_NONE. */
  CHECK(word(p + 3 * PAGE, &w) && w == 0);
  for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) CHECK(!word(bad[i], &w));

  /* Across two pages, both count. */
  CHECK(lj_safeload_ok(&pk, m + PAGE - 4, 4));
  CHECK(!lj_safeload_ok(&pk, m + PAGE - 4, 8));
  CHECK(!lj_safeload_ok(&pk, m + 3 * PAGE - 4, 8));
  REQUIRE(mprotect(m + 2 * PAGE, PAGE, PROT_READ) == 0);
  CHECK(lj_safeload_ok(&pk, m + 3 * PAGE - 4, 8)); /* A refusal is not kept. */

  /* A page that was readable in this sample may be gone in the next. */
  REQUIRE(munmap(m, PAGE) == 0);
  lj_safeload_reset(&pk);
  CHECK(!word(p, &w));

  /* errno is left as it was, or says what the probe said. */
  errno = 0;
  CHECK(!word(p, &w));
  err = errno;
  CHECK(err == 0 || err == EFAULT);

  /* The generation wraps around without believing old entries. */
  m = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(m != MAP_FAILED);
  CHECK(lj_safeload_ok(&pk, m, 8));
  pk.generation = (uint64_t)0 - ((uint64_t)2 << (SAFELOAD_ADDR_BITS - SAFELOAD_PAGE_BITS));
  REQUIRE(munmap(m, PAGE) == 0);
  lj_safeload_reset(&pk);
  CHECK(!lj_safeload_ok(&pk, m, 8));

  /* A probe changes no signal mask and many pages share the slots. */
  m = mmap(NULL, 1024 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(m != MAP_FAILED);
  for (i = 0; i < 1024; i++) CHECK(lj_safeload_ok(&pk, m + i * PAGE, PAGE));
  REQUIRE(munmap(m + 512 * PAGE, PAGE) == 0);
  lj_safeload_reset(&pk);
  for (i = 0; i < 1024; i++) CHECK_EQ(lj_safeload_ok(&pk, m + i * PAGE, PAGE), i != 512);
  return check_status();
}
