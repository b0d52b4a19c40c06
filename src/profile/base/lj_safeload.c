/*
** Fault-safe loads: cached pages, probes, and memory that LuaJIT unmaps.
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

/* A page has two slots, so that two busy pages seldom evict each other. The first slots of
** neighbours are neighbours, and need no hash.
*/
static uint64_t *slot_first(SafeLoad *sl, uintptr_t pageno)
{
  return &sl->page[pageno & (SAFELOAD_SLOTS - 1)];
}

static uint64_t *slot_second(SafeLoad *sl, uintptr_t pageno)
{
  return &sl->page[hash_slot(pageno, SAFELOAD_BITS)];
}

/* Is a page kept from sample to sample? */
static int page_iskept(SafeLoad *sl, uintptr_t pageno)
{
  return (*slot_first(sl, pageno) ^ pageno) == sl->kept ||
	 (*slot_second(sl, pageno) ^ pageno) == sl->kept;
}

/* Does a slot hold a page that is known? */
static int slot_isused(const SafeLoad *sl, uint64_t slot)
{
  uint64_t generation = slot & ~(GENERATION_KEPT - 1);
  return generation == sl->generation || generation == sl->kept;
}

/* Cache a page with a generation. */
static void page_set(SafeLoad *sl, uintptr_t pageno, uint64_t generation)
{
  uint64_t *first = slot_first(sl, pageno), *second = slot_second(sl, pageno);
  if (slot_isused(sl, *first) && (*first & (GENERATION_KEPT - 1)) != pageno &&
      (!slot_isused(sl, *second) || (*second & (GENERATION_KEPT - 1)) == pageno))
    first = second;
  *first = generation | pageno;
}

/* rt_sigprocmask(2) copies the new set before it checks the operation. An invalid
** operation therefore reads 8 bytes of the page and changes nothing. It fails with EFAULT
** if they are not readable, with EINVAL otherwise.
*/
int lj_safeload_probe(SafeLoad *sl, uintptr_t pageno)
{
  const int bad_operation = ~0;
  uint64_t known;
  if (pageno == 0 || (pageno >> SAFELOAD_PAGENO_BITS) != 0) return 0;
  known = *slot_second(sl, pageno) ^ pageno;
  if (known == sl->kept || known == sl->generation) return 1;
  sl->probes++;
  if (syscall(SYS_rt_sigprocmask, bad_operation, pageno << SAFELOAD_PAGE_BITS, NULL,
	      KERNEL_SIGSET_SIZE) == 0 ||
      errno != EINVAL)
    return 0;
  page_set(sl, pageno, sl->generation);
  return 1;
}

int lj_safeload_vmslow(SafeLoad *sl, const void *p, size_t sz)
{
  uintptr_t first = (uintptr_t)p >> SAFELOAD_PAGE_BITS;
  uintptr_t last = ((uintptr_t)p + sz - 1) >> SAFELOAD_PAGE_BITS;
  if (!lj_safeload_ok(sl, p, sz)) return 0;
  if (page_iskept(sl, first) && (first == last || page_iskept(sl, last))) return 1;
  sl->fresh++;
  if (sl->keeping) {
    page_set(sl, first, sl->kept);
    page_set(sl, last, sl->kept);
  }
  return 1;
}

int lj_safeload_nearslow(SafeLoad *sl, uintptr_t addr)
{
  uintptr_t first = addr >> SAFELOAD_PAGE_BITS;
  if (!lj_safeload_vm(sl, (const void *)addr, SAFELOAD_NEAR)) return 0;
  if (page_iskept(sl, first)) {
    sl->near = first << SAFELOAD_PAGE_BITS;
    sl->near_size = ((uintptr_t)1 << SAFELOAD_PAGE_BITS) - SAFELOAD_NEAR + 1;
  }
  return 1;
}

/* -- Unmapped memory --------------------------------------------------------- */

#define UNMAPS 16 /* Announced ranges that are kept, a power of two. */

/* Shared by all threads. */
static uint32_t unmaps_begun, unmaps_done;
static struct {
  uintptr_t first, last;
} unmapped[UNMAPS]; /* Page numbers. */

/* While the two counts differ, a range may not be written yet, or may be overwritten. A
** handler on this thread sees the stores in order.
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

static void forget_range(SafeLoad *sl, uintptr_t first, uintptr_t last)
{
  uintptr_t n;
  int i;
  if (last - first < SAFELOAD_SLOTS) {
    for (n = first; n <= last; n++) {
      if ((*slot_first(sl, n) ^ n) == sl->kept_pages) *slot_first(sl, n) = 0;
      if ((*slot_second(sl, n) ^ n) == sl->kept_pages) *slot_second(sl, n) = 0;
    }
  } else {
    for (i = 0; i < SAFELOAD_SLOTS; i++)
      if ((sl->page[i] & (GENERATION_KEPT - 1)) - first <= last - first) sl->page[i] = 0;
  }
}

/* -- Samples ----------------------------------------------------------------- */

void lj_safeload_forget(SafeLoad *sl)
{
  sl->kept_pages = sl->generation + GENERATION_KEPT;
  sl->kept = sl->generation;
  sl->near_size = 0;
}

void lj_safeload_reset(SafeLoad *sl)
{
  uint32_t done = __atomic_load_n(&unmaps_done, __ATOMIC_SEQ_CST);
  uint32_t begun = __atomic_load_n(&unmaps_begun, __ATOMIC_SEQ_CST);
  sl->generation += GENERATION_STEP;
  if (LJ_UNLIKELY(sl->generation == 0)) { /* Wrapped: old entries may match. */
    int i;
    for (i = 0; i < SAFELOAD_SLOTS; i++) sl->page[i] = 0;
    sl->generation = GENERATION_STEP;
    lj_safeload_forget(sl);
  }
  sl->stack_size = 0;
  sl->near_size = 0;
  sl->probes = sl->fresh = 0;
  sl->keeping = 0;
  if (sl->kept_pages == 0) {
    lj_safeload_forget(sl);
    sl->unmaps = begun;
  }
  if (begun != done) { /* An unmap may be going on: no kept page counts. */
    sl->kept = sl->generation;
    return;
  }
  if (LJ_UNLIKELY(begun != sl->unmaps)) {
    uint32_t i, from = sl->unmaps;
    if (begun - from <= UNMAPS)
      for (i = from; i != begun; i++)
	forget_range(sl,
		     __atomic_load_n(&unmapped[i & (UNMAPS - 1)].first, __ATOMIC_RELAXED),
		     __atomic_load_n(&unmapped[i & (UNMAPS - 1)].last, __ATOMIC_RELAXED));
    /* Another thread may have overwritten these. */
    if (__atomic_load_n(&unmaps_begun, __ATOMIC_SEQ_CST) - from > UNMAPS)
      lj_safeload_forget(sl);
    sl->unmaps = begun;
  }
  sl->kept = sl->kept_pages;
}

/* -- The thread's stack ------------------------------------------------------ */

/* A stack is in use above the stack pointer, hence mapped. The main thread's stack may be
** as large as its limit, but within this size the kernel maps nothing else there.
*/
#define THREAD_STACK_MAX ((uintptr_t)128 << 20)

void lj_safeload_stack(SafeLoad *sl, uintptr_t lo, uintptr_t hi, uintptr_t sp)
{
  hi &= ~(sizeof(uintptr_t) - 1);
  if (hi - lo > THREAD_STACK_MAX) lo = hi - THREAD_STACK_MAX;
  sp = (sp + sizeof(uintptr_t) - 1) & ~(sizeof(uintptr_t) - 1);
  sl->stack = sp;
  sl->stack_size = hi != 0 && sp - lo < hi - lo ? hi - sp : 0;
}
