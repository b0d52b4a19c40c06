/*
** Fault-safe loads: cached pages, probes, copies, and memory that LuaJIT unmaps.
** Context: handler, except warmup, unmap and unmapped; see the header.
*/

#define lj_safeload_c
#define LUA_CORE

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "profile/base/lj_hash.h"
#include "profile/base/lj_relaxed.h"
#include "profile/base/lj_safeload.h"
#include "profile/base/lj_seccomp.h"

#define SAFELOAD_PAGENO_BITS (SAFELOAD_ADDR_BITS - SAFELOAD_PAGE_BITS)

/* Generations of samples are even, those of kept pages odd. */
#define GENERATION_KEPT ((uint64_t)1 << SAFELOAD_PAGENO_BITS)
#define GENERATION_STEP (2 * GENERATION_KEPT)

/* No page has it: the number of a page in a slot differs in the upper bits only. */
#define GENERATION_NONE (~(uint64_t)0)

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

/* Is it a page of the VM that no thread unmaps now? */
static int page_isowned(SafeLoad *sl, uintptr_t pageno)
{
  return (*slot_first(sl, pageno) ^ pageno) == sl->owned ||
	 (*slot_second(sl, pageno) ^ pageno) == sl->owned;
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
  int is_kept = page_iskept(sl, first) && (first == last || page_iskept(sl, last));
  if ((sl->kept_only && !is_kept) || !lj_safeload_ok(sl, p, sz)) return 0;
  if (is_kept) return 1;
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

/* -- Copies ------------------------------------------------------------------ */

static volatile int copy_refused; /* Of all threads: process_vm_readv is unavailable. */

/* The kernel copies from this process itself, whatever its number is after a fork. Returns
** 0 if the bytes are not readable, or if it refuses.
*/
static int copy_by_kernel(void *to, uintptr_t from, size_t sz)
{
  struct iovec here = { to, sz }, there = { (void *)from, sz };
  /* syscall(2) takes each argument as a whole word. The last one is on the stack. */
  long tid = syscall(SYS_gettid); /* A filter may refuse this one, too. */
  long n = tid < 0 ? -1 : syscall(SYS_process_vm_readv, tid, &here, 1UL, &there, 1UL, 0UL);
  if (n < 0 && (errno == ENOSYS || errno == EPERM || errno == EACCES))
    relaxed_set(&copy_refused, 1);
  return n == (long)sz;
}

int lj_safeload_once(void *to, const void *p, size_t sz)
{
  return !relaxed_get(&copy_refused) && copy_by_kernel(to, (uintptr_t)p, sz);
}

int lj_safeload_cancopy(void)
{
  return !relaxed_get(&copy_refused);
}

void lj_safeload_warmup(void)
{
  static const SeccompCall call = SECCOMP_CALL(process_vm_readv);
  static SeccompKnown known;
  int err = errno;
  uintptr_t from = 1, to = 0;
  if (lj_seccomp_deadly(&call, 1, &known)) {
    relaxed_set(&copy_refused, 1);
  } else {
    relaxed_set(&copy_refused, 0);
    if (!copy_by_kernel(&to, (uintptr_t)&from, sizeof(to)) || to != from)
      relaxed_set(&copy_refused, 1);
  }
  errno = err;
}

/* Is a page never unmapped while it is read? The lowest page of the stack that is in use counts
** as a whole: functions that are about to return leave saved registers below the stack pointer.
*/
static int page_stays(SafeLoad *sl, uintptr_t pageno)
{
  uintptr_t last = (pageno << SAFELOAD_PAGE_BITS) + SAFELOAD_PAGE - 1;
  return page_isowned(sl, pageno) || last - sl->stack < sl->stack_size;
}

/* Find the place of a page's copy, or the place for it. *copied tells which page it has. */
static uint64_t *copy_place(SafeLoad *sl, uintptr_t pageno, uint64_t **copied)
{
  SafeCopies *more = sl->more;
  uint32_t set = 0, ways = SAFELOAD_COPIES, i;
  *copied = sl->copied;
  if (LJ_UNLIKELY(more != NULL)) {
    set = pageno & (SAFELOAD_SETS - 1);
    ways = SAFELOAD_WAYS;
    *copied = more->copied + set * SAFELOAD_WAYS;
  }
  for (i = 0; i < ways; i++)
    if ((*copied)[i] == (sl->generation | pageno)) break;
  if (i == ways) i = (more ? more->turn[set]++ : sl->copies) & (ways - 1);
  *copied += i;
  return more ? more->copy[set * SAFELOAD_WAYS + i] : sl->copy[i];
}

/* Where to load the bytes of a page: from the page itself or from its copy. Returns NULL
** if it is not readable.
*/
static const char *page_bytes(SafeLoad *sl, uintptr_t pageno)
{
  uintptr_t p = pageno << SAFELOAD_PAGE_BITS;
  uint64_t *copy, *copied;
  if (pageno == 0 || (pageno >> SAFELOAD_PAGENO_BITS) != 0) return NULL;
  if (page_stays(sl, pageno)) return (const char *)p;
  copy = copy_place(sl, pageno, &copied);
  if (*copied == (sl->generation | pageno)) return (const char *)copy;
  if (LJ_LIKELY(!relaxed_get(&copy_refused))) {
    if (sl->copies == SAFELOAD_COPY_MAX) return NULL;
    sl->copies++;
    *copied = 0;
    if (copy_by_kernel(copy, p, SAFELOAD_PAGE)) {
      *copied = sl->generation | pageno;
      return (const char *)copy;
    }
    if (!relaxed_get(&copy_refused)) return NULL;
  }
  if (lj_safeload_known(sl, pageno)) return (const char *)p;
  if (!lj_safeload_probe(sl, pageno)) return NULL;
  sl->uncopied++;
  return (const char *)p;
}

int lj_safeload_wordslow(SafeLoad *sl, uintptr_t addr, uintptr_t *w)
{
  const char *p = page_bytes(sl, addr >> SAFELOAD_PAGE_BITS);
  if (!p) return 0;
  *w = *(const uintptr_t *)(p + (addr & (SAFELOAD_PAGE - 1)));
  return 1;
}

int lj_safeload_copy(SafeLoad *sl, void *to, const void *p, size_t sz)
{
  uintptr_t addr = (uintptr_t)p;
  char *out = (char *)to;
  while (sz > 0) {
    size_t ofs = addr & (SAFELOAD_PAGE - 1), n = SAFELOAD_PAGE - ofs;
    const char *bytes = page_bytes(sl, addr >> SAFELOAD_PAGE_BITS);
    if (!bytes) return 0;
    if (n > sz) n = sz;
    memcpy(out, bytes + ofs, n);
    out += n;
    addr += n;
    sz -= n;
  }
  return 1;
}

int lj_safeload_vmcopyslow(SafeLoad *sl, void *to, const void *p, size_t sz)
{
  uintptr_t first = (uintptr_t)p >> SAFELOAD_PAGE_BITS;
  uintptr_t last = ((uintptr_t)p + sz - 1) >> SAFELOAD_PAGE_BITS;
  if (!lj_safeload_copy(sl, to, p, sz)) return 0;
  if (page_isowned(sl, first) && page_isowned(sl, last)) return 1;
  sl->fresh++;
  if (sl->keeping) {
    page_set(sl, first, sl->kept);
    page_set(sl, last, sl->kept);
  }
  return 1;
}

int lj_safeload_copynow(SafeLoad *sl, void *to, const void *p, size_t sz)
{
  if (relaxed_get(&copy_refused) || sl->copies == SAFELOAD_COPY_MAX)
    return lj_safeload_copy(sl, to, p, sz);
  sl->copies++;
  return copy_by_kernel(to, (uintptr_t)p, sz);
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

uint32_t lj_safeload_unmaps(void)
{
  return __atomic_load_n(&unmaps_begun, __ATOMIC_SEQ_CST);
}

void lj_safeload_keptonly(SafeLoad *sl, uint32_t unmaps)
{
  sl->kept_only = lj_safeload_unmaps() != unmaps;
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
  sl->owned = GENERATION_NONE;
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
  sl->probes = sl->fresh = sl->copies = 0;
  sl->keeping = sl->kept_only = 0;
  if (sl->kept_pages == 0) {
    lj_safeload_forget(sl);
    sl->unmaps = begun;
  }
  if (begun != done) { /* An unmap may be going on: no kept page counts. */
    sl->kept = sl->generation;
    sl->owned = GENERATION_NONE;
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
  sl->kept = sl->owned = sl->kept_pages;
}

/* -- The thread's stack ------------------------------------------------------ */

/* A stack is in use above the stack pointer, so it is mapped. The main thread's stack may
** be as large as its limit, but the kernel maps nothing else within this size.
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
