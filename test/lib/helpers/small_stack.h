/*
** C stacks of the smallest possible size: one more byte crashes.
*/

#ifndef SMALL_STACK_H
#define SMALL_STACK_H

#include <sys/auxv.h>
#include <sys/mman.h>

#include "check.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

#define SMALL_STACK_GUARD 4096

/* Most bytes that our handler uses of a signal stack, below the kernel's frame. */
#define SMALL_STACK_HANDLER (6 * 1024)

/* The largest frame of the kernel. Its real size depends on the registers in use. */
static inline size_t small_stack_kernel_max(void)
{
  return (size_t)getauxval(AT_MINSIGSTKSZ);
}

/* Returns 1 and prints the reason if such a test is impossible. */
static inline int small_stack_skipped(void)
{
#ifdef __SANITIZE_ADDRESS__
  puts("skipped: AddressSanitizer makes frames larger");
  return 1;
#else
  return 0;
#endif
}

/* Memory for a stack, never freed. The page below it is not writable. */
static inline void *small_stack(size_t size)
{
  char *p = (char *)mmap(NULL, size + SMALL_STACK_GUARD, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(p != MAP_FAILED);
  REQUIRE(mprotect(p, SMALL_STACK_GUARD, PROT_NONE) == 0);
  return p + SMALL_STACK_GUARD;
}

#endif
