/*
** Context-switch records of a thread, by perf_event_open.
** Context: under the lock, on any thread, outside of the handler.
*/

#define lj_waitring_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For syscall(). */
#endif
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "profile/base/lj_ownfd.h"
#include "profile/base/lj_seccomp.h"
#include "profile/wait/lj_waitring.h"

/* A record without fields of its own, as perf_event_open(2) says of sample_id_all: then the
** thread and the time of sample_type follow the header.
*/
typedef struct SwitchRecord {
  struct perf_event_header head;
  uint32_t pid, tid;
  uint64_t ns;
} SwitchRecord;

#define TRIES_MAX 100 /* Of a value that the kernel is writing. */

static size_t page_size(void)
{
  return (size_t)sysconf(_SC_PAGESIZE);
}

static int event_open(int tid)
{
  static const SeccompCall call = SECCOMP_CALL(perf_event_open);
  static SeccompKnown known;
  struct perf_event_attr attr;
  if (lj_seccomp_deadly(&call, 1, &known)) {
    errno = EPERM;
    return -1;
  }
  memset(&attr, 0, sizeof(attr));
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  attr.sample_id_all = 1;
  attr.context_switch = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.exclude_kernel = 1; /* Level 2 demands these two. */
  attr.exclude_hv = 1;
  return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The mapping keeps the event, so the program cannot close it with its descriptors. */
int lj_waitring_open(WaitRing *r, int tid)
{
  OwnFd own;
  int fd = event_open(tid), err;
  void *map;
  if (!lj_ownfd_borrow(&own, fd)) return errno;
  map = mmap(NULL, page_size() + WAITRING_DATA, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  err = errno;
  lj_ownfd_close(&own);
  if (map == MAP_FAILED) return err == EPERM ? ENOBUFS : err;
  r->map = map;
  return 0;
}

void lj_waitring_close(WaitRing *r)
{
  if (r->map) munmap(r->map, page_size() + WAITRING_DATA);
  r->map = NULL;
}

static uint64_t ring_head(const struct perf_event_mmap_page *page)
{
  return __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

int lj_waitring_hasmore(const WaitRing *r)
{
  const struct perf_event_mmap_page *page = (const struct perf_event_mmap_page *)r->map;
  return ring_head(page) != page->data_tail;
}

uint32_t lj_waitring_pending(const WaitRing *r)
{
  const struct perf_event_mmap_page *page = (const struct perf_event_mmap_page *)r->map;
  return (uint32_t)((ring_head(page) - page->data_tail) / sizeof(SwitchRecord));
}

/* The kernel writes it on another processor: `lock` changes meanwhile. */
uint64_t lj_waitring_ran(const WaitRing *r)
{
  const struct perf_event_mmap_page *page = (const struct perf_event_mmap_page *)r->map;
  uint64_t ns = 0;
  uint32_t lock, tries;
  for (tries = 0; tries < TRIES_MAX; tries++) {
    lock = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
    ns = __atomic_load_n(&page->time_running, __ATOMIC_ACQUIRE);
    if (!(lock & 1) && lock == __atomic_load_n(&page->lock, __ATOMIC_RELAXED)) break;
  }
  return ns;
}

/* Copy bytes of the ring, which may go around its end. */
static void ring_copy(const WaitRing *r, uint64_t at, void *to, size_t n)
{
  const char *data = (const char *)r->map + page_size();
  size_t ofs = (size_t)(at & (WAITRING_DATA - 1)), first = WAITRING_DATA - ofs;
  if (first > n) first = n;
  memcpy(to, data + ofs, first);
  memcpy((char *)to + first, data, n - first);
}

/* The kernel never fills the last byte (perf_output_begin, CIRC_SPACE). */
static int has_noroom(uint64_t head, uint64_t tail)
{
  return head - tail + sizeof(SwitchRecord) >= WAITRING_DATA;
}

int lj_waitring_read(WaitRing *r, WaitSwitch *list, int *lost)
{
  struct perf_event_mmap_page *page = (struct perf_event_mmap_page *)r->map;
  uint64_t head = ring_head(page), tail = page->data_tail, from = tail;
  int n = 0;
  *lost = 0;
  while (tail < head && n < WAITRING_RECORDS && !*lost) {
    SwitchRecord rec;
    ring_copy(r, tail, &rec.head, sizeof(rec.head));
    if (rec.head.size < sizeof(rec.head)) { /* The kernel never writes that. */
      *lost = 1;
      tail = head;
      break;
    }
    if (rec.head.type == PERF_RECORD_SWITCH && rec.head.size == sizeof(rec)) {
      ring_copy(r, tail, &rec, sizeof(rec));
      list[n].ns = rec.ns;
      list[n].is_in = !(rec.head.misc & PERF_RECORD_MISC_SWITCH_OUT);
      list[n].preempt = (rec.head.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0;
      n++;
    } else {
      *lost = 1;
    }
    tail += rec.head.size;
  }
  __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
  r->was_full = has_noroom(ring_head(page), from);
  return n;
}
