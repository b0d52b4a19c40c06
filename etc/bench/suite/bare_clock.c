/*
** Benchmark suite: a clock whose signals do nothing, to compare with. Made like
** those of the profiler: same timer, same signal, same thread, same flags. Used
** through the FFI by the thread that is to be interrupted.
*/

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/time.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id	_sigev_un._tid
#endif

static enum { NONE, TIMER, PERF, ITIMER } kind;
static timer_t timer;
static int perf_fd;
static volatile uint64_t ticks;

static void on_tick(int signo, siginfo_t *info, void *context)
{
  (void)signo; (void)info; (void)context;
  ticks++;
}

static int start_timer(clockid_t clock, const struct itimerspec *its)
{
  struct sigevent ev;
  memset(&ev, 0, sizeof(ev));
  ev.sigev_notify = SIGEV_THREAD_ID;
  ev.sigev_signo = SIGPROF;
  ev.sigev_notify_thread_id = (int)syscall(SYS_gettid);
  if (timer_create(clock, &ev, &timer) != 0) return -1;
  kind = TIMER;
  return timer_settime(timer, 0, its, NULL);
}

static int start_perf(uint64_t interval_ns)
{
  struct perf_event_attr attr;
  struct f_owner_ex owner = { F_OWNER_TID, (int)syscall(SYS_gettid) };
  memset(&attr, 0, sizeof(attr));
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_TASK_CLOCK;
  attr.sample_period = interval_ns;
  attr.exclude_hv = 1;
  attr.wakeup_events = 1;
  attr.disabled = 1;
  perf_fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (perf_fd < 0) return -1;
  kind = PERF;
  if (fcntl(perf_fd, F_SETSIG, SIGPROF) != 0 || fcntl(perf_fd, F_SETOWN_EX, &owner) != 0 ||
      fcntl(perf_fd, F_SETFL, O_ASYNC|O_NONBLOCK) != 0)
    return -1;
  return ioctl(perf_fd, PERF_EVENT_IOC_ENABLE, 0);
}

static int start_itimer(uint64_t interval_ns)
{
  struct itimerval itv;
  itv.it_interval.tv_sec = (time_t)(interval_ns / 1000000000u);
  itv.it_interval.tv_usec = (suseconds_t)(interval_ns % 1000000000u / 1000);
  itv.it_value = itv.it_interval;
  kind = ITIMER;
  return setitimer(ITIMER_PROF, &itv, NULL);
}

/* Ends the clock. Returns the signals since the start. */
uint64_t bare_clock_stop(void)
{
  struct itimerval off;
  switch (kind) {
  case TIMER: timer_delete(timer); break;
  case PERF: close(perf_fd); break;
  case ITIMER:
    memset(&off, 0, sizeof(off));
    setitimer(ITIMER_PROF, &off, NULL);
    break;
  case NONE: break;
  }
  kind = NONE;
  return ticks;
}

/* Starts the clock of a name, as sysprof's. Returns 0, or an errno. */
int bare_clock_start(const char *name, uint64_t interval_ns)
{
  struct itimerspec its;
  struct sigaction sa;
  int failed, err;
  its.it_interval.tv_sec = (time_t)(interval_ns / 1000000000u);
  its.it_interval.tv_nsec = (long)(interval_ns % 1000000000u);
  its.it_value = its.it_interval;
  memset(&sa, 0, sizeof(sa));
  sa.sa_sigaction = on_tick;
  sa.sa_flags = SA_SIGINFO|SA_RESTART|SA_ONSTACK;
  sigemptyset(&sa.sa_mask);
  if (sigaction(SIGPROF, &sa, NULL) != 0) return errno;
  ticks = 0;
  if (strcmp(name, "ctimer") == 0) failed = start_timer(CLOCK_THREAD_CPUTIME_ID, &its);
  else if (strcmp(name, "wall") == 0) failed = start_timer(CLOCK_MONOTONIC, &its);
  else if (strcmp(name, "task-clock") == 0) failed = start_perf(interval_ns);
  else if (strcmp(name, "itimer") == 0) failed = start_itimer(interval_ns);
  else return EINVAL;
  if (!failed) return 0;
  err = errno;
  bare_clock_stop();
  return err;
}
