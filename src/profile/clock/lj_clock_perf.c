/*
** Events of perf_event_open(2), the task clock among them: each counts for one
** thread and sends it a signal every so many occurrences. No ring buffer: the
** sample is taken by our handler, the exact count is read from the descriptor.
*/

#define lj_clock_perf_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For F_SETSIG. */
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "profile/clock/lj_clockops.h"
#include "profile/clock/lj_clockslot.h"
#include "profile/base/lj_nanotime.h"
#include "profile/clock/lj_seccomp.h"
#include "profile/base/lj_relaxed.h"

#define COUNT_TRIES 1000 /* To read what the handler may be changing. */

/* What read(2) gives. */
typedef struct Count {
  uint64_t value, enabled_ns, running_ns;
} Count;

/* -- Descriptors ------------------------------------------------------------- */

/* Which clock a descriptor belongs to. An entry stays behind a closed clock
** whose signal may still be pending. Lookup tries all places an entry may be
** in, so they may come and go while it does. No value comes twice: an entry that is
** taken by another descriptor has another one.
*/
#define FDS_SIZE   (2 * CLOCKS_MAX)
#define FDS_PLACES 16

static struct {
  uintptr_t value; /* What its signals stand for, 0 if free. */
  int fd1;         /* The descriptor plus one. */
  int count_fd;    /* The other one of the clock. */
} fds[FDS_SIZE];

#define fds_place(fd, i) (((unsigned int)(fd) + (unsigned int)(i)) % FDS_SIZE)

uintptr_t lj_clock_perf_value(int fd)
{
  int i;
  for (i = 0; i < FDS_PLACES && fd >= 0; i++) {
    unsigned int k = fds_place(fd, i);
    uintptr_t value = __atomic_load_n(&fds[k].value, __ATOMIC_SEQ_CST);
    if (value && __atomic_load_n(&fds[k].fd1, __ATOMIC_SEQ_CST) == fd + 1 &&
	__atomic_load_n(&fds[k].value, __ATOMIC_SEQ_CST) == value)
      return value;
  }
  return 0;
}

void lj_clock_perf_unlist(int fd, uintptr_t value)
{
  int i;
  for (i = 0; i < FDS_PLACES && fd >= 0; i++) {
    uintptr_t expected = value; /* If another thread takes the place, it stays. */
    __atomic_compare_exchange_n(&fds[fds_place(fd, i)].value, &expected, 0, 0,
				__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  }
}

/* One that is left of a closed clock with the same descriptor ends. */
static int fds_list(int fd, int count_fd, uintptr_t value)
{
  int i, free_place = -1;
  for (i = 0; i < FDS_PLACES; i++) {
    unsigned int k = fds_place(fd, i);
    if (fds[k].fd1 == fd + 1) __atomic_store_n(&fds[k].value, 0, __ATOMIC_SEQ_CST);
    if (relaxed_get(&fds[k].value) == 0 && free_place < 0) free_place = (int)k;
  }
  if (free_place < 0) return 0;
  fds[free_place].count_fd = count_fd;
  __atomic_store_n(&fds[free_place].fd1, fd + 1, __ATOMIC_SEQ_CST);
  __atomic_store_n(&fds[free_place].value, value, __ATOMIC_SEQ_CST);
  return 1;
}

/* The program may have closed it, and its number may be that of another file. */
static int event_isopen(int fd)
{
  uint64_t id;
  return fd >= 0 && ioctl(fd, PERF_EVENT_IOC_ID, &id) == 0;
}

static void event_close(int fd)
{
  if (event_isopen(fd)) close(fd);
}

/* A close here leaves the parent's events alone. An entry without a clock stands
** for a descriptor that is closed already.
*/
void lj_clock_perf_forget(void)
{
  int i;
  for (i = 0; i < FDS_SIZE; i++) {
    if (fds[i].value && clockslot_islive(fds[i].value)) {
      event_close(fds[i].fd1 - 1);
      event_close(fds[i].count_fd);
    }
    relaxed_set(&fds[i].value, 0);
  }
}

/* -- The clock --------------------------------------------------------------- */

static void attr_fill(struct perf_event_attr *attr, const ClockSpec *spec)
{
  memset(attr, 0, sizeof(*attr));
  attr->size = sizeof(*attr);
  attr->type = spec->type;
  attr->config = spec->config;
  attr->sample_period = spec->period;
  attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attr->disabled = 1;
  attr->exclude_user = spec->exclude_user;
  attr->exclude_kernel = spec->exclude_kernel;
  attr->exclude_hv = 1;
  attr->precise_ip = spec->precise & 3;
  attr->wakeup_events = 1;
}

static int event_open(const struct perf_event_attr *attr, int tid)
{
  static int known;
  if (lj_seccomp_isdeadly(SYS_perf_event_open, &known)) {
    errno = EPERM;
    return -1;
  }
  return (int)syscall(SYS_perf_event_open, attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The kernel throttles an event of the processor that comes too often, and then it
** does not count either: another one only counts.
*/
static int events_open(Clock *c)
{
  struct perf_event_attr attr;
  attr_fill(&attr, &c->spec);
  c->fd = event_open(&attr, c->tid);
  if (c->fd < 0) return errno;
  if (c->spec.type == PERF_TYPE_SOFTWARE) return 0;
  attr.sample_period = 0;
  attr.precise_ip = 0;
  c->count_fd = event_open(&attr, c->tid);
  return c->count_fd < 0 ? errno : 0;
}

static void events_close(Clock *c)
{
  event_close(c->fd);
  event_close(c->count_fd);
  c->fd = c->count_fd = -1;
}

/* Real-time signals queue up, and when the queue is full the kernel sends SIGIO
** instead, which ends the program.
*/
int lj_clock_perf_open(Clock *c, char *why)
{
  struct f_owner_ex owner;
  int err;
  if (c->signo >= 32) {
    snprintf(why, CLOCK_WHY_MAX,
	     "clock '%s' does not go with the real-time signal "
	     "%d; use SIGPROF or another standard signal",
	     c->spec.name, c->signo);
    return EINVAL;
  }
  owner.type = F_OWNER_TID;
  owner.pid = c->tid;
  err = events_open(c);
  if (err == 0) {
    if (!fds_list(c->fd, c->count_fd, c->value)) err = EMFILE;
    else if (fcntl(c->fd, F_SETOWN_EX, &owner) != 0 ||
	     fcntl(c->fd, F_SETSIG, c->signo) != 0 ||
	     fcntl(c->fd, F_SETFL, O_ASYNC | O_NONBLOCK) != 0)
      err = errno;
    if (err == 0) return 0;
    lj_clock_perf_unlist(c->fd, c->value);
  }
  events_close(c);
  lj_clock_perf_why(err, &c->spec, why);
  return err;
}

static int period_set(const Clock *c, uint64_t period)
{
  return ioctl(c->fd, PERF_EVENT_IOC_PERIOD, &period) == 0 ? 0 : errno;
}

int lj_clock_perf_arm(Clock *c, uint64_t first)
{
  int err = period_set(c, first);
  c->period_now = first;
  c->last = c->raw = c->enabled_ns = c->running_ns = 0;
  c->last = lj_clock_perf_count(c);
  __atomic_store_n(&c->armed, 1, __ATOMIC_SEQ_CST);
  if (err == 0 && c->count_fd >= 0 && ioctl(c->count_fd, PERF_EVENT_IOC_ENABLE, 0) != 0)
    err = errno;
  if (err == 0 && ioctl(c->fd, PERF_EVENT_IOC_ENABLE, 0) != 0) err = errno;
  return err;
}

/* A child of fork() has the descriptors as well: closing is not enough. */
void lj_clock_perf_stop(Clock *c)
{
  ioctl(c->fd, PERF_EVENT_IOC_DISABLE, 0);
  if (c->count_fd >= 0) ioctl(c->count_fd, PERF_EVENT_IOC_DISABLE, 0);
}

/* Its total can be asked for still. */
void lj_clock_perf_close(Clock *c)
{
  c->last = lj_clock_perf_count(c);
  events_close(c);
}

/* A tick keeps what it has counted; other threads look at it. */
static void count_keep(Clock *c, uint64_t count, const Count *n)
{
  relaxed_add(&c->keeping, 1);
  __atomic_store_n(&c->last, count, __ATOMIC_RELEASE);
  __atomic_store_n(&c->raw, n->value, __ATOMIC_RELEASE);
  __atomic_store_n(&c->enabled_ns, n->enabled_ns, __ATOMIC_RELEASE);
  __atomic_store_n(&c->running_ns, n->running_ns, __ATOMIC_RELEASE);
  __atomic_store_n(&c->keeping, c->keeping + 1, __ATOMIC_RELEASE);
}

/* What the last tick has kept. Returns 0 if it is not all of one tick, as of a
** thread that was ended in it.
*/
static int count_kept(const Clock *c, uint64_t *last, Count *n)
{
  int i;
  for (i = 0; i < COUNT_TRIES; i++) {
    uint32_t keeping = __atomic_load_n(&c->keeping, __ATOMIC_ACQUIRE);
    *last = __atomic_load_n(&c->last, __ATOMIC_ACQUIRE);
    n->value = __atomic_load_n(&c->raw, __ATOMIC_ACQUIRE);
    n->enabled_ns = __atomic_load_n(&c->enabled_ns, __ATOMIC_ACQUIRE);
    n->running_ns = __atomic_load_n(&c->running_ns, __ATOMIC_ACQUIRE);
    if (!(keeping & 1) && relaxed_get(&c->keeping) == keeping) return 1;
  }
  return 0;
}

/* The kernel counts the time of both modes for the task clock, and so do we. More
** events than the processor has counters take turns: what came while this one
** had none is made up for, as perf does.
*/
static uint64_t count_read(const Clock *c, Count *n)
{
  uint64_t last, delta, enabled, running;
  Count kept;
  int fd = c->count_fd >= 0 ? c->count_fd : c->fd;
  if (!count_kept(c, &last, &kept) || !event_isopen(fd) ||
      read(fd, n, sizeof(*n)) != sizeof(*n))
    return last;
  delta = n->value - kept.value;
  enabled = n->enabled_ns - kept.enabled_ns;
  running = n->running_ns - kept.running_ns;
  if (enabled > running && running > 0)
    delta = (uint64_t)((double)delta * ((double)enabled / (double)running));
  return last + delta;
}

uint64_t lj_clock_perf_count(const Clock *c)
{
  Count n;
  return c->spec.unit == SPF_UNIT_US ? lj_clock_thread_ns(c->tid) : count_read(c, &n);
}

int lj_clock_perf_isdue(const Clock *c)
{
  return lj_clock_perf_count(c) - c->last >= c->period_now;
}

/* What comes long before its time is a signal that was late, of another clock
** with this descriptor.
*/
int lj_clock_perf_tick(Clock *c)
{
  Count now = { c->raw, c->enabled_ns, c->running_ns }; /* If it cannot be read. */
  uint64_t count = c->spec.unit == SPF_UNIT_US ? clock_ns(CLOCK_THREAD_CPUTIME_ID)
					       : count_read(c, &now);
  uint64_t delta = count - c->last;
  uint64_t period = c->spec.jitter ? lj_clock_jitter(c) : c->spec.period;
  uint64_t n;
  if (delta < c->period_now / 4) return -1;
  count_keep(c, count, &now);
  n = (delta + c->spec.period / 2) / c->spec.period;
  if (period != c->period_now) {
    c->period_now = period;
    period_set(c, period);
  }
  return n > 1 ? (int)(n > 0x7fffffff ? 0x7fffffff : n - 1) : 0;
}
