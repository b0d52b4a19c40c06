/*
** Fault-safe loads.
** Runs in the signal handler, but for what the header says otherwise of.
*/

#define lj_safeload_c
#define LUA_CORE

#include <errno.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "profile/base/lj_hash.h"
#include "profile/base/lj_safeload.h"

#define SAFELOAD_PAGENO_BITS (SAFELOAD_ADDR_BITS - SAFELOAD_PAGE_BITS)

/* Generations of samples are even, those of kept pages odd. */
#define GENERATION_KEPT ((uint64_t)1 << SAFELOAD_PAGENO_BITS)
#define GENERATION_STEP (2 * GENERATION_KEPT)

/* Size of the kernel's signal set, see rt_sigprocmask(2). */
#define KERNEL_SIGSET_SIZE 8

/* -- Pages ------------------------------------------------------------------- */

/* A page has two slots, so that two that are in use all the time seldom push each
** other out. Its first one is found at once, and neighbours have neighbouring ones.
*/
static uint64_t *slot_first(SafeLoad *pk, uintptr_t pageno)
{
  return &pk->page[pageno & (SAFELOAD_SLOTS - 1)];
}

static uint64_t *slot_second(SafeLoad *pk, uintptr_t pageno)
{
  return &pk->page[hash_slot(pageno, SAFELOAD_BITS)];
}

/* Is a page kept from sample to sample? */
static int page_iskept(SafeLoad *pk, uintptr_t pageno)
{
  return (*slot_first(pk, pageno) ^ pageno) == pk->kept ||
	 (*slot_second(pk, pageno) ^ pageno) == pk->kept;
}

/* Does a slot hold a page that is known? */
static int slot_isused(const SafeLoad *pk, uint64_t slot)
{
  uint64_t generation = slot & ~(GENERATION_KEPT - 1);
  return generation == pk->generation || generation == pk->kept;
}

/* Remember a page, with a generation. */
static void page_set(SafeLoad *pk, uintptr_t pageno, uint64_t generation)
{
  uint64_t *first = slot_first(pk, pageno), *second = slot_second(pk, pageno);
  if (slot_isused(pk, *first) && (*first & (GENERATION_KEPT - 1)) != pageno &&
      (!slot_isused(pk, *second) || (*second & (GENERATION_KEPT - 1)) == pageno))
    first = second;
  *first = generation | pageno;
}

/* rt_sigprocmask(2) copies the new set in before it looks at the operation, so
** an invalid operation reads 8 bytes of the page and changes nothing: it fails
** with EFAULT if they cannot be read and with EINVAL otherwise.
*/
int lj_safeload_probe(SafeLoad *pk, uintptr_t pageno)
{
  const int bad_operation = ~0;
  uint64_t known;
  if (pageno == 0 || (pageno >> SAFELOAD_PAGENO_BITS) != 0) return 0;
  known = *slot_second(pk, pageno) ^ pageno;
  if (known == pk->kept || known == pk->generation) return 1;
  pk->probes++;
  if (syscall(SYS_rt_sigprocmask, bad_operation, pageno << SAFELOAD_PAGE_BITS, NULL,
	      KERNEL_SIGSET_SIZE) == 0 ||
      errno != EINVAL)
    return 0;
  page_set(pk, pageno, pk->generation);
  return 1;
}

int lj_safeload_vmslow(SafeLoad *pk, const void *p, size_t sz)
{
  uintptr_t first = (uintptr_t)p >> SAFELOAD_PAGE_BITS;
  uintptr_t last = ((uintptr_t)p + sz - 1) >> SAFELOAD_PAGE_BITS;
  if (!lj_safeload_ok(pk, p, sz)) return 0;
  if (page_iskept(pk, first) && (first == last || page_iskept(pk, last))) return 1;
  pk->fresh++;
  if (pk->keeping) {
    page_set(pk, first, pk->kept);
    page_set(pk, last, pk->kept);
  }
  return 1;
}

int lj_safeload_nearslow(SafeLoad *pk, uintptr_t addr)
{
  uintptr_t first = addr >> SAFELOAD_PAGE_BITS;
  if (!lj_safeload_vm(pk, (const void *)addr, SAFELOAD_NEAR)) return 0;
  if (page_iskept(pk, first)) {
    pk->near = first << SAFELOAD_PAGE_BITS;
    pk->near_size = ((uintptr_t)1 << SAFELOAD_PAGE_BITS) - SAFELOAD_NEAR + 1;
  }
  return 1;
}

/* -- Unmapped memory --------------------------------------------------------- */

#define UNMAPS 16 /* Unmapped ranges remembered, a power of two. */

/* Shared by all threads. */
static uint32_t unmaps_begun, unmaps_done;
static struct {
  uintptr_t first, last;
} unmapped[UNMAPS]; /* Page numbers. */

/* While the two differ, a range may not be written yet, or be gone already. A
** handler that runs on this thread sees them in order.
*/
void lj_safeload_unmap(const void *p, size_t sz)
{
  uint32_t i = __atomic_fetch_add(&unmaps_begun, 1, __ATOMIC_SEQ_CST);
  __atomic_store_n(&unmapped[i & (UNMAPS - 1)].first, (uintptr_t)p >> SAFELOAD_PAGE_BITS,
		   __ATOMIC_RELAXED);
  __atomic_store_n(&unmapped[i & (UNMAPS - 1)].last,
		   ((uintptr_t)p + sz - 1) >> SAFELOAD_PAGE_BITS, __ATOMIC_RELAXED);
}

void lj_safeload_unmapped(void)
{
  __atomic_fetch_add(&unmaps_done, 1, __ATOMIC_SEQ_CST);
}

static void forget_range(SafeLoad *pk, uintptr_t first, uintptr_t last)
{
  uintptr_t n;
  int i;
  if (last - first < SAFELOAD_SLOTS) {
    for (n = first; n <= last; n++) {
      if ((*slot_first(pk, n) ^ n) == pk->kept_pages) *slot_first(pk, n) = 0;
      if ((*slot_second(pk, n) ^ n) == pk->kept_pages) *slot_second(pk, n) = 0;
    }
  } else {
    for (i = 0; i < SAFELOAD_SLOTS; i++)
      if ((pk->page[i] & (GENERATION_KEPT - 1)) - first <= last - first) pk->page[i] = 0;
  }
}

/* -- Samples ----------------------------------------------------------------- */

void lj_safeload_forget(SafeLoad *pk)
{
  pk->kept_pages = pk->generation + GENERATION_KEPT;
  pk->kept = pk->generation;
  pk->near_size = 0;
}

void lj_safeload_reset(SafeLoad *pk)
{
  uint32_t done = __atomic_load_n(&unmaps_done, __ATOMIC_SEQ_CST);
  uint32_t begun = __atomic_load_n(&unmaps_begun, __ATOMIC_SEQ_CST);
  pk->generation += GENERATION_STEP;
  if (LJ_UNLIKELY(pk->generation == 0)) { /* Wrapped: old entries may match. */
    int i;
    for (i = 0; i < SAFELOAD_SLOTS; i++) pk->page[i] = 0;
    pk->generation = GENERATION_STEP;
    lj_safeload_forget(pk);
  }
  pk->stack_size = 0;
  pk->near_size = 0;
  pk->probes = pk->fresh = 0;
  pk->keeping = 0;
  if (pk->kept_pages == 0) {
    lj_safeload_forget(pk);
    pk->unmaps = begun;
  }
  if (begun != done) { /* It may be going on: nothing is kept or believed. */
    pk->kept = pk->generation;
    return;
  }
  if (LJ_UNLIKELY(begun != pk->unmaps)) {
    uint32_t i, from = pk->unmaps;
    if (begun - from <= UNMAPS)
      for (i = from; i != begun; i++)
	forget_range(pk,
		     __atomic_load_n(&unmapped[i & (UNMAPS - 1)].first, __ATOMIC_RELAXED),
		     __atomic_load_n(&unmapped[i & (UNMAPS - 1)].last, __ATOMIC_RELAXED));
    /* Were these overwritten, possibly just now by another thread? */
    if (__atomic_load_n(&unmaps_begun, __ATOMIC_SEQ_CST) - from > UNMAPS)
      lj_safeload_forget(pk);
    pk->unmaps = begun;
  }
  pk->kept = pk->kept_pages;
}

/* -- The thread's stack ------------------------------------------------------ */

/* What lies above the stack pointer of a stack is in use, so it is mapped. The
** main thread's may be as large as its limit allows, but below this size the
** kernel puts nothing else there.
*/
#define THREAD_STACK_MAX ((uintptr_t)128 << 20)

void lj_safeload_stack(SafeLoad *pk, uintptr_t lo, uintptr_t hi, uintptr_t sp)
{
  hi &= ~(sizeof(uintptr_t) - 1);
  if (hi - lo > THREAD_STACK_MAX) lo = hi - THREAD_STACK_MAX;
  sp = (sp + sizeof(uintptr_t) - 1) & ~(sizeof(uintptr_t) - 1);
  pk->stack = sp;
  pk->stack_size = hi != 0 && sp - lo < hi - lo ? hi - sp : 0;
}
