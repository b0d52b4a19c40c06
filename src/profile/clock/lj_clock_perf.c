/*
** Perf events (perf_event_open), the task clock among them.
** Context: see lj_clockops.h.
**
** An event counts for one thread and signals it after every period. It needs no ring
** buffer: the handler takes the sample and reads the exact count from the descriptor.
*/

#define lj_clock_perf_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For F_SETSIG. */
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "profile/clock/lj_clock_perf.h"
#include "profile/base/lj_seccomp.h"
#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_procfile.h"
#include "profile/base/lj_relaxed.h"

#define COUNT_TRIES      1000   /* Reads of values that the handler may be changing. */
#define ONESHOT_BELOW_NS 500000 /* An interrupt takes up to 65 us on virtual machines. */
#define PARANOID         "/proc/sys/kernel/perf_event_paranoid"
#define MAX_RATE         "/proc/sys/kernel/perf_event_max_sample_rate"

/* -- Descriptors ------------------------------------------------------------- */

/* Table from descriptors to clocks. The entry of a closed clock remains while its signal
** may be pending. A lookup tries all places of a descriptor, so that entries may come and
** go at the same time. Values are unique: an entry that another descriptor has taken has
** another value.
*/
#define FDS_SIZE   (2 * CLOCKS_MAX)
#define FDS_PLACES 16

static struct {
  uintptr_t value; /* The clock's, 0 if the place is free. */
  int fd1;         /* The descriptor plus one. */
  int count_fd;    /* The clock's other descriptor. */
  int is_open;     /* Both are open. Under the lock of lj_clock. */
} fds[FDS_SIZE];
static int fds_used; /* Has an entry ever been added? Under the lock of lj_clock. */

#define fds_place(fd, i) (((unsigned int)(fd) + (unsigned int)(i)) % FDS_SIZE)

/* Value of the clock that has a descriptor, or had it until it closed. 0: no clock. */
static uintptr_t fds_value(int fd)
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

/* Remove the entry of a clock. */
static void fds_remove(int fd, uintptr_t value)
{
  int i;
  for (i = 0; i < FDS_PLACES && fd >= 0; i++) {
    uintptr_t expected = value; /* Another thread may have taken the place. */
    __atomic_compare_exchange_n(&fds[fds_place(fd, i)].value, &expected, 0, 0,
				__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  }
}

/* Add a descriptor, in place of a closed clock's entry for it. Returns 0 if the table is
** full.
*/
static int fds_add(int fd, int count_fd, uintptr_t value)
{
  int i, free_place = -1;
  for (i = 0; i < FDS_PLACES; i++) {
    unsigned int k = fds_place(fd, i);
    if (fds[k].fd1 == fd + 1) __atomic_store_n(&fds[k].value, 0, __ATOMIC_SEQ_CST);
    if (relaxed_get(&fds[k].value) == 0 && free_place < 0) free_place = (int)k;
  }
  if (free_place < 0) return 0;
  fds_used = 1;
  fds[free_place].count_fd = count_fd;
  fds[free_place].is_open = 1;
  __atomic_store_n(&fds[free_place].fd1, fd + 1, __ATOMIC_SEQ_CST);
  __atomic_store_n(&fds[free_place].value, value, __ATOMIC_SEQ_CST);
  return 1;
}

/* Mark the descriptors of a clock as closed, before that happens. */
static void fds_close(int fd, uintptr_t value)
{
  int i;
  for (i = 0; i < FDS_PLACES && fd >= 0; i++)
    if (relaxed_get(&fds[fds_place(fd, i)].value) == value)
      fds[fds_place(fd, i)].is_open = 0;
}

/* Does a descriptor still belong to an event? The program may have closed it, and another
** file may have its number.
*/
static int event_isopen(int fd)
{
  uint64_t id;
  return fd >= 0 && ioctl(fd, PERF_EVENT_IOC_ID, &id) == 0;
}

static void event_close(int fd)
{
  if (event_isopen(fd)) close(fd);
}

/* In a child of fork(): close the descriptors. The parent's events tick on. */
static void perf_forget(void)
{
  int i;
  if (!fds_used) return;
  fds_used = 0;
  for (i = 0; i < FDS_SIZE; i++) {
    if (fds[i].value && fds[i].is_open) {
      event_close(fds[i].fd1 - 1);
      event_close(fds[i].count_fd);
    }
    if (fds[i].value) relaxed_set(&fds[i].value, 0); /* Copy no page for nothing. */
  }
}

/* -- Counts ------------------------------------------------------------------ */

/* As read(2) fills it in. */
typedef struct Count {
  uint64_t value, enabled_ns, running_ns;
} Count;

/* Save the counts of a tick for other threads. */
static void count_save(Clock *c, uint64_t count, const Count *n)
{
  relaxed_add(&c->saving, 1);
  __atomic_store_n(&c->last, count, __ATOMIC_RELEASE);
  __atomic_store_n(&c->raw, n->value, __ATOMIC_RELEASE);
  __atomic_store_n(&c->enabled_ns, n->enabled_ns, __ATOMIC_RELEASE);
  __atomic_store_n(&c->running_ns, n->running_ns, __ATOMIC_RELEASE);
  __atomic_store_n(&c->saving, c->saving + 1, __ATOMIC_RELEASE);
}

/* Load the counts that the last tick saved. Returns 0 if they mix two ticks, because a tick
** goes on, or the thread was cancelled in one.
*/
static int count_saved(const Clock *c, uint64_t *last, Count *n)
{
  int i;
  for (i = 0; i < COUNT_TRIES; i++) {
    uint32_t saving = __atomic_load_n(&c->saving, __ATOMIC_ACQUIRE);
    *last = __atomic_load_n(&c->last, __ATOMIC_ACQUIRE);
    n->value = __atomic_load_n(&c->raw, __ATOMIC_ACQUIRE);
    n->enabled_ns = __atomic_load_n(&c->enabled_ns, __ATOMIC_ACQUIRE);
    n->running_ns = __atomic_load_n(&c->running_ns, __ATOMIC_ACQUIRE);
    if (!(saving & 1) && relaxed_get(&c->saving) == saving) return 1;
  }
  return 0;
}

/* Read a counter. Returns 0 on a failure. A bare system call: read() is a cancellation point,
** which in the handler would end a thread that the program has cancelled.
*/
static int count_load(int fd, Count *n)
{
  return syscall(SYS_read, fd, n, sizeof(*n)) == (long)sizeof(*n);
}

/* Events take turns if the processor has fewer counters. Like perf, this scales the count
** by the share of time in which the event had a counter.
*/
static uint64_t count_read(const Clock *c, Count *n)
{
  uint64_t last, delta, enabled, running;
  Count saved;
  if (!count_saved(c, &last, &saved) || !event_isopen(c->count_fd) ||
      !count_load(c->count_fd, n))
    return last;
  delta = n->value - saved.value;
  enabled = n->enabled_ns - saved.enabled_ns;
  running = n->running_ns - saved.running_ns;
  if (enabled > running && running > 0)
    delta = (uint64_t)((double)delta * ((double)enabled / (double)running));
  return last + delta;
}

/* The task clock counts both modes, as the kernel does. */
static uint64_t perf_count(const Clock *c)
{
  Count n;
  return c->spec.unit == SPF_UNIT_US ? thread_ns(c->tid) : count_read(c, &n);
}

/* -- Error messages ---------------------------------------------------------- */

static int paranoid_level(void)
{
  char text[16];
  return lj_procfile_read(PARANOID, text, sizeof(text)) > 0 ? atoi(text) : -1;
}

/* Level 2 forbids events of the kernel, a higher level forbids all events. The modifier u
** helps at level 2, except for an event that happens in the kernel only.
*/
static void errmsg_access(const ClockSpec *spec, char *errmsg)
{
  int level = paranoid_level();
  size_t n;
  if (level < 2 || (level == 2 && spec->exclude_kernel)) {
    snprintf(errmsg, EVENT_ERRMSG_MAX,
	     "clock '%s': a security module of this system, or a seccomp filter, "
	     "forbids perf_event_open; allow it there, or grant CAP_PERFMON",
	     spec->name);
    return;
  }
  snprintf(errmsg, EVENT_ERRMSG_MAX,
	   "clock '%s': kernel.perf_event_paranoid is %d, which "
	   "forbids it; run `sysctl kernel.perf_event_paranoid=1` or grant CAP_PERFMON",
	   spec->name, level);
  n = strlen(errmsg);
  if (level == 2 && !strchr(spec->name, ':') && !spec->in_kernel)
    snprintf(errmsg + n, EVENT_ERRMSG_MAX - n,
	     ", or choose '%s:u', which leaves out the kernel", spec->name);
}

/* Cause and remedy of an errno of perf_event_open, or of another call. */
static void perf_errmsg(int err, const char *call, const ClockSpec *spec, char *errmsg)
{
  struct rlimit limit = { 0, 0 };
  const char *text = NULL;
  if (call) {
    snprintf(errmsg, EVENT_ERRMSG_MAX,
	     "clock '%s': %s is forbidden, for example by a container's seccomp profile; "
	     "allow it there",
	     spec->name, call);
    return;
  }
  switch (err) {
  case EACCES: errmsg_access(spec, errmsg); return;
  case EPERM:
    text = "perf_event_open is forbidden, for example by a container's seccomp profile; "
	   "allow it there, or grant CAP_PERFMON";
    break;
  case ENOSYS:
    text = "perf_event_open is missing: the kernel is built without it, or a "
	   "container's seccomp profile hides it; allow it there";
    break;
  case EMFILE:
    getrlimit(RLIMIT_NOFILE, &limit);
    snprintf(errmsg, EVENT_ERRMSG_MAX,
	     "clock '%s': all %llu file descriptors that the "
	     "process may have are open; raise `ulimit -n`",
	     spec->name, (unsigned long long)limit.rlim_cur);
    return;
  case ENOENT:
  case ENODEV:
  case ENXIO:
    text = "this machine lacks the event, like most virtual machines, which have no PMU; "
	   "use 'task-clock' or 'page-faults'";
    break;
  case EOPNOTSUPP:
  case EINVAL:
    text =
      spec->precise
	? "the processor lacks this precise level of the event; use fewer modifiers 'p'"
      : err == EINVAL
	? "the kernel rejects the event; check its code"
	: "this machine cannot sample the event: its PMU has no interrupts; use "
	  "'task-clock' or 'page-faults'";
    break;
  case EBUSY: text = "another program holds the PMU; end it"; break;
  case ESRCH: text = "the thread has ended"; break;
  default: text = strerror(err); break;
  }
  snprintf(errmsg, EVENT_ERRMSG_MAX, "clock '%s': %s", spec->name, text);
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

/* *call: name of another call that is forbidden. */
static int event_open(const struct perf_event_attr *attr, int tid, const char **call)
{
  static const SeccompCall calls[] = { SECCOMP_CALL(perf_event_open), SECCOMP_CALL(ioctl) };
  static SeccompKnown known;
  const char *deadly = lj_seccomp_deadly(calls, sizeof(calls) / sizeof(calls[0]), &known);
  if (deadly) {
    if (strcmp(deadly, calls[0].name) != 0) *call = deadly;
    errno = EPERM;
    return -1;
  }
  return (int)syscall(SYS_perf_event_open, attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* An event that has stopped does not count, so a second descriptor counts, and sends no
** signals. The kernel counts the time of a clock itself.
*/
static int events_open(Clock *c, const char **call)
{
  struct perf_event_attr attr;
  attr_fill(&attr, &c->spec);
  c->fd = event_open(&attr, c->tid, call);
  if (c->fd < 0) return errno;
  if (c->spec.unit == SPF_UNIT_US) return 0;
  attr.sample_period = 0;
  attr.precise_ip = 0;
  c->count_fd = event_open(&attr, c->tid, call);
  return c->count_fd < 0 ? errno : 0;
}

static void events_close(Clock *c)
{
  event_close(c->fd);
  event_close(c->count_fd);
  c->fd = c->count_fd = -1;
}

/* The kernel lets an event overflow so often in one of its own ticks, and then stops it until
** the next tick. Returns the shortest period without such stops, or 0 if it is unknown.
*/
static uint64_t kernel_period(void)
{
  uint64_t tick_ns = kernel_tick_ns(), times;
  char text[24];
  if (lj_procfile_read(MAX_RATE, text, sizeof(text)) <= 0) return 0;
  times = strtoull(text, NULL, 10) * tick_ns / 1000000000u;
  return times > 1 ? (tick_ns + times - 2) / (times - 1) : tick_ns;
}

/* Refuse real-time signals: the kernel queues them. When the queue is full it sends SIGIO,
** which ends the program.
*/
static int perf_open(Clock *c, char *errmsg)
{
  struct f_owner_ex owner;
  const char *call = NULL;
  int err;
  if (c->signo >= 32) {
    snprintf(errmsg, EVENT_ERRMSG_MAX,
	     "clock '%s' does not support the real-time signal "
	     "%d; use SIGPROF or another standard signal",
	     c->spec.name, c->signo);
    return EINVAL;
  }
  owner.type = F_OWNER_TID;
  owner.pid = c->tid;
  c->kernel_ns = c->spec.unit == SPF_UNIT_US ? kernel_period() : 0;
  err = events_open(c, &call);
  if (err == 0) {
    if (!fds_add(c->fd, c->count_fd, c->value)) err = EMFILE;
    else if (fcntl(c->fd, F_SETOWN_EX, &owner) != 0 ||
	     fcntl(c->fd, F_SETSIG, c->signo) != 0 ||
	     fcntl(c->fd, F_SETFL, O_ASYNC | O_NONBLOCK) != 0) {
      err = errno;
      if (lj_seccomp_isrefusal(err)) call = "fcntl";
    }
    if (err == 0) return 0;
    fds_remove(c->fd, c->value);
  }
  events_close(c);
  c->kernel_ns = 0; /* Another kind may be opened in its place. */
  perf_errmsg(err, call, &c->spec, errmsg);
  return err;
}

/* How an event stops for a tick. An interrupt may take longer than a short period. An event
** that ran on would interrupt its thread without end, and the handler would never run.
*/
enum {
  /* It runs on. The period is long, and this saves system calls. */
  STOPS_NOT,
  /* The kernel stops it in each overflow. The tick starts it again. */
  STOPS_ITSELF,
  /* The handler stops it, and starts it again at its end: where a clock that stops itself hangs
  ** the kernel. Its period is at least safe_ns.
  */
  STOPS_IN_HANDLER
};

/* Of a clock of a long period, least gets the shortest first period. */
static int stops_choose(const Clock *c, uint64_t *least)
{
  *least = CLOCK_ONESHOT_CYCLES * c->signal_ns;
  if (*least < ONESHOT_BELOW_NS) *least = ONESHOT_BELOW_NS;
  if (c->spec.unit != SPF_UNIT_US) return STOPS_ITSELF;
  if (c->spec.period >= *least && !c->single) return STOPS_NOT;
  if (!c->safe_ns) return STOPS_ITSELF;
  *least = c->safe_ns;
  return STOPS_IN_HANDLER;
}

static int period_set(const Clock *c, uint64_t period)
{
  return ioctl(c->fd, PERF_EVENT_IOC_PERIOD, &period) == 0 ? 0 : errno;
}

/* Start the event. If it stops itself, each start permits one overflow more, so it must not run
** yet.
*/
static int event_start(const Clock *c)
{
  return c->stops == STOPS_ITSELF ? ioctl(c->fd, PERF_EVENT_IOC_REFRESH, 1)
				  : ioctl(c->fd, PERF_EVENT_IOC_ENABLE, 0);
}

/* On the clock's thread: has the event stopped itself? Its time stands still then. */
static int event_isstopped(const Clock *c)
{
  Count a, b;
  return c->stops == STOPS_ITSELF && event_isopen(c->fd) && count_load(c->fd, &a) &&
	 count_load(c->fd, &b) && a.enabled_ns == b.enabled_ns;
}

/* If the event does not stop itself, its first period is long, too. */
static int perf_arm(Clock *c, uint64_t first)
{
  uint64_t least, period = lj_clockops_mean(c);
  int err;
  c->stops = stops_choose(c, &least);
  if (c->stops != STOPS_ITSELF && first < least)
    first = least - 1 + lj_clockops_random(c, period > least ? period - least + 1 : 1);
  err = period_set(c, first);
  c->period_now = first;
  lj_clockops_cpu_forget(c);
  c->last = c->raw = c->enabled_ns = c->running_ns = 0;
  c->last = perf_count(c);
  __atomic_store_n(&c->armed, 1, __ATOMIC_SEQ_CST);
  if (err == 0 && c->count_fd >= 0 && ioctl(c->count_fd, PERF_EVENT_IOC_ENABLE, 0) != 0)
    err = errno;
  if (err == 0 && event_start(c) != 0) err = errno;
  return err;
}

#define REVIVE_CPU_NS 20000000 /* CPU time in which an event that runs counts some time. */

/* A tick may have had no end: the program has taken the signal, or jumped out of the handler.
** Each start permits one overflow more. So if the handler starts the event at the same time,
** or its signal is pending still, one interrupt more comes.
*/
static void perf_revive(Clock *c)
{
  uint64_t cpu_ns = thread_ns(c->tid);
  Count n;
  if (c->stops == STOPS_NOT || !event_isopen(c->fd) || !count_load(c->fd, &n)) return;
  if (c->look_cpu_ns == 0 || n.enabled_ns != c->look_enabled_ns) {
    c->look_cpu_ns = cpu_ns;
    c->look_enabled_ns = n.enabled_ns;
  } else if (cpu_ns > c->look_cpu_ns + REVIVE_CPU_NS) {
    c->look_cpu_ns = 0;
    event_start(c);
  }
}

/* A child of fork() may hold the descriptors too, so a close alone does not stop it. The
** kernel sends the signal of an overflow later, from an interrupt of its own. Without O_ASYNC
** it sends none.
*/
static void perf_stop(Clock *c)
{
  ioctl(c->fd, PERF_EVENT_IOC_DISABLE, 0);
  if (event_isopen(c->fd)) fcntl(c->fd, F_SETFL, O_NONBLOCK);
  if (c->count_fd >= 0) ioctl(c->count_fd, PERF_EVENT_IOC_DISABLE, 0);
}

static void perf_drained(Clock *c)
{
  fds_remove(c->fd, c->value);
}

/* Free the signalling descriptor. The counting one still gives the total. A handler may have
** started the event after the stop.
*/
static void perf_close(Clock *c)
{
  if (event_isopen(c->fd)) ioctl(c->fd, PERF_EVENT_IOC_DISABLE, 0);
  c->last = perf_count(c);
  fds_close(c->fd, c->value);
  events_close(c);
}

/* -- Ticks, in the handler --------------------------------------------------- */

/* Did an event send the signal? POLL_HUP: the event has stopped itself. */
static int is_events(const siginfo_t *info)
{
  return info->si_code == POLL_IN || info->si_code == POLL_HUP || info->si_code == SI_SIGIO;
}

static uintptr_t perf_value(const siginfo_t *info)
{
  return is_events(info) ? fds_value(info->si_fd) : 0;
}

static void perf_late(const siginfo_t *info, uintptr_t value)
{
  if (is_events(info)) fds_remove(info->si_fd, value);
}

static int perf_isdue(const Clock *c)
{
  return perf_count(c) - c->last >= c->period_now || event_isstopped(c);
}

/* Has a period passed? A signal long before its time comes from a closed clock that had
** this descriptor. Starts the event again if it has stopped itself.
*/
static int period_end(Clock *c, const siginfo_t *info)
{
  Count now = { c->raw, c->enabled_ns, c->running_ns }; /* If it cannot be read. */
  uint64_t count = c->spec.unit == SPF_UNIT_US ? lj_clockops_cpu(c, c->period_now)
					       : count_read(c, &now);
  uint64_t delta = count - c->last;
  uint64_t period = lj_clockops_period(c);
  int is_stopped = c->stops == STOPS_ITSELF &&
		   ((info->si_code == POLL_HUP && info->si_fd == c->fd) ||
		    event_isstopped(c));
  int is_due = delta >= c->period_now / 4;
  if (!is_due && !is_stopped) return -1;
  if (is_due) count_save(c, count, &now);
  if (period != c->period_now) {
    c->period_now = period;
    period_set(c, period);
  }
  if (is_stopped && !c->single) event_start(c);
  return is_due ? lj_clockops_overrun(c, delta) : -1;
}

static int perf_tick(Clock *c, const siginfo_t *info)
{
  if (c->stops == STOPS_IN_HANDLER) ioctl(c->fd, PERF_EVENT_IOC_DISABLE, 0);
  return period_end(c, info);
}

static void perf_resume(Clock *c)
{
  if (c->stops == STOPS_IN_HANDLER && !c->single) event_start(c);
}

static void perf_setperiod(Clock *c, uint64_t period)
{
  c->period_set = period;
  c->period_now = lj_clockops_period(c);
  period_set(c, c->period_now);
}

int lj_clock_perf_isopen(const Clock *c)
{
  return event_isopen(c->fd);
}

void lj_clock_perf_pause(const Clock *c)
{
  ioctl(c->fd, PERF_EVENT_IOC_DISABLE, 0);
}

/* At the modifier u, ordinary users may open the probe at perf_event_paranoid 2. */
const ClockOps lj_clock_perf_ops = { .open = perf_open,
				     .arm = perf_arm,
				     .stop = perf_stop,
				     .drained = perf_drained,
				     .close = perf_close,
				     .revive = perf_revive,
				     .forget = perf_forget,
				     .count = perf_count,
				     .tick = perf_tick,
				     .resume = perf_resume,
				     .setperiod = perf_setperiod,
				     .isdue = perf_isdue,
				     .value = perf_value,
				     .late = perf_late,
				     .probe = "task-clock:u",
				     .has_last = 1 };
