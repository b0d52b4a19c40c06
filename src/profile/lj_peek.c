/*
** Fault-safe loads.
** Runs in the signal handler; see the header for the contract.
*/

#define lj_peek_c
#define LUA_CORE

#include <errno.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "profile/lj_peek.h"

#define PEEK_PAGENO_BITS	(PEEK_ADDR_BITS - PEEK_PAGE_BITS)

/* Size of the kernel's signal set, see rt_sigprocmask(2). */
#define KERNEL_SIGSET_SIZE	8

void lj_peek_reset(Peek *pk)
{
  pk->generation += (uint64_t)1 << PEEK_PAGENO_BITS;
  if (LJ_UNLIKELY(pk->generation == 0)) {  /* Wrapped: old entries may match. */
    int i;
    for (i = 0; i < PEEK_SLOTS; i++)
      pk->page[i] = 0;
    pk->generation = (uint64_t)1 << PEEK_PAGENO_BITS;
  }
}

/* rt_sigprocmask(2) copies the new set in before it looks at the operation, so
** an invalid operation reads 8 bytes of the page and changes nothing: it fails
** with EFAULT if they cannot be read and with EINVAL otherwise.
*/
int lj_peek_probe(Peek *pk, uintptr_t pageno)
{
  const int bad_operation = ~0;
  if (pageno == 0 || (pageno >> PEEK_PAGENO_BITS) != 0)
    return 0;
  if (syscall(SYS_rt_sigprocmask, bad_operation, pageno << PEEK_PAGE_BITS,
	      NULL, KERNEL_SIGSET_SIZE) == 0 || errno != EINVAL)
    return 0;
  pk->page[pageno & (PEEK_SLOTS-1)] = pk->generation | pageno;
  return 1;
}
