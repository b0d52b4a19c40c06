/* On kernels 6.16 and 6.17 no clock of perf stops itself: the machine could hang. The handler
** stops it, and a rate that is too high for that becomes the kernel's tick. The cost of an
** interrupt is measured in the same way. Other kernels and other events are as before. The
** test answers for uname(2), and counts the calls of ioctl(2).
** BASE: none, its modules know no VM
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdarg.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>

#include "profile/base/lj_nanotime.h"
#include "profile/clock/lj_clockbudget.h"
#include "profile/clock/lj_clockcost.h"
#include "profile/clock/lj_clockkernel.h"
#include "ticks.h"

#define US ((uint64_t)1000)

static const char *release;
static _Atomic int asked, refreshed, enabled, disabled;

int uname(struct utsname *name)
{
  asked++;
  memset(name, 0, sizeof(*name));
  if (!release) {
    errno = EFAULT;
    return -1;
  }
  strcpy(name->release, release);
  return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
  void *arg;
  va_list args;
  va_start(args, request);
  arg = va_arg(args, void *);
  va_end(args);
  refreshed += request == PERF_EVENT_IOC_REFRESH;
  enabled += request == PERF_EVENT_IOC_ENABLE;
  disabled += request == PERF_EVENT_IOC_DISABLE;
  return (int)syscall(SYS_ioctl, fd, request, arg);
}

/* -- Versions ---------------------------------------------------------------- */

static const char *const bad[] = { "6.16.0", "6.16.12-arch1-1", "6.16-rc1",
				   "6.17.0-5-generic", "6.17.1-300.fc43.x86_64", "6.17.8",
				   "6.17.13+deb14-amd64", "6.17", "6.18.0-rc3",
				   "6.18.0-0.rc4.37.fc44.x86_64",
				   /* As under the personality UNAME26. */
				   "2.6.76", "2.6.77-5-generic",
				   /* No version. */
				   "", "6", "6.", "linux-6.12", ".16.0" };
static const char *const good[] = { "6.15.0",
				    "6.15.4-200.fc42.x86_64",
				    "6.18.0",
				    "6.18.1-arch1-2",
				    "6.18.44",
				    "6.19.0-rc1",
				    "6.1.0-41-amd64",
				    "6.12.57+deb13-amd64",
				    "6.6.87.2-microsoft-standard-WSL2",
				    "6.160.1",
				    "6.170",
				    "5.16.20",
				    "16.17.0",
				    "5.6.17",
				    "4.19.0",
				    "7.0.0-rc2",
				    "2.6.32-754.el6.x86_64",
				    "2.6.75",
				    "2.6.78",
				    "3.10.0-1160.el7.x86_64" };

static void versions(void)
{
  size_t i;
  for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    if (!lj_clockkernel_isbad(bad[i])) printf("'%s' counts as good\n", bad[i]);
    CHECK(lj_clockkernel_isbad(bad[i]));
  }
  for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
    if (lj_clockkernel_isbad(good[i])) printf("'%s' counts as bad\n", good[i]);
    CHECK(!lj_clockkernel_isbad(good[i]));
  }
}

/* -- Calls ------------------------------------------------------------------- */

static int has_clock, has_faults; /* Can these events be opened here? */

static void counts_clear(void)
{
  refreshed = enabled = disabled = 0;
}

/* Run a clock for some ticks. */
static void run(Ticks *t, const char *name, uint64_t period_ns, int jitter)
{
  EventDefaults by = { period_ns, 20, jitter, 0 };
  char errmsg[EVENT_ERRMSG_MAX];
  time_t deadline = time(NULL) + 200;
  ClockSpec spec;
  counts_clear();
  REQUIRE(lj_clockspec_parse(name, strlen(name), &by, &spec, errmsg) == EVENT_PARSED);
  REQUIRE(ticks_open(t, &spec, lj_osthread_self(), 0, errmsg) == EVENT_OK);
  while (t->n < 30 && time(NULL) < deadline) {
    if (spec.unit == SPF_UNIT_US) burn_us(1000);
    else fault_page();
  }
  CHECK(t->n >= 30);
  ticks_stop(t);
}

/* The clock asked for takes the kernel's tick, and the sentence says why. */
static void becomes_tick(const char *name, uint64_t period_ns, int jitter)
{
  char text[EVENT_TEXT_MAX];
  Ticks t;
  run(&t, name, period_ns, jitter);
  CHECK(t.clock.spec.period >= kernel_tick_ns());
  CHECK_EQ(refreshed, 0);
  lj_clockbudget_limit(&t.clock, text);
  printf("%s: %s\n", release ? release : "unknown", text);
  CHECK(strstr(text, "kernels 6.16 and 6.17 may hang") != NULL);
  CHECK(strlen(text) < EVENT_TEXT_MAX - 1);
}

#define COST_NS (40 * US) /* Eight of them last 320 us, less than a clock that runs on. */

static void clock_calls(int is_bad)
{
  ClockSpec spec = ticks_spec("task-clock:u", 400 * US, 0);
  time_t deadline = time(NULL) + 200;
  Ticks t;
  counts_clear();
#ifndef __SANITIZE_THREAD__
  /* Five ticks. On a busy machine, one may come too late. */
  while (lj_clockbudget_signal(CLOCK_PERF) == CLOCKBUDGET_SIGNAL_NS &&
	 time(NULL) < deadline)
    lj_clockcost_measure(&spec, 0);
  CHECK(lj_clockbudget_signal(CLOCK_PERF) != CLOCKBUDGET_SIGNAL_NS);
  CHECK((is_bad ? enabled : refreshed) >= 5);
  CHECK_EQ(is_bad ? refreshed : enabled, 0);
  printf("%s: an interrupt costs %llu ns\n", release ? release : "unknown",
	 (unsigned long long)lj_clockbudget_signal(CLOCK_PERF));
#endif
  lj_clockbudget_measured(CLOCK_PERF, COST_NS);
  run(&t, "task-clock:u", 400 * US, 0);
  printf("%s: %llu ticks, REFRESH %d, ENABLE %d, DISABLE %d\n",
	 release ? release : "unknown", (unsigned long long)t.n, refreshed, enabled,
	 disabled);
  CHECK_EQ(t.clock.spec.period, 400 * US);
  CHECK_EQ(refreshed == 0, is_bad);
  /* The stop and the close make two more of the calls. */
  CHECK_EQ(disabled, 2 + (is_bad ? enabled - 1 : 0));
  if (is_bad) CHECK((uint64_t)enabled > t.n);
  run(&t, "task-clock:u", 5000 * US, 0); /* Runs on. */
  CHECK_EQ(refreshed, 0);
  CHECK_EQ(enabled, 1);
  if (is_bad) {
    becomes_tick("task-clock:u", 300 * US, 0);
    becomes_tick("task-clock:u", 10 * US, 0);
    becomes_tick("task-clock:u", 400 * US, 1);
    becomes_tick("cpu", 300 * US, 0);
  } else {
    run(&t, "task-clock:u", 300 * US, 0);
    CHECK_EQ(t.clock.spec.period, 300 * US);
    CHECK(refreshed > 0);
  }
}

/* Events without a timer stop themselves on each kernel. */
static void event_calls(void)
{
  Ticks t;
  run(&t, "page-faults:u", 0, 0);
  CHECK((uint64_t)refreshed >= t.n);
  CHECK_EQ(enabled, 1); /* The event that counts. */
}

static void calls(int is_bad)
{
  CHECK_EQ(lj_clockkernel_hangs(), is_bad);
  if (has_clock) clock_calls(is_bad);
  if (has_faults) event_calls();
  CHECK_EQ(lj_clockkernel_hangs(), is_bad);
  CHECK_EQ(asked, 1);
}

static void calls_of_bad(void)
{
  calls(1);
}

static void calls_of_good(void)
{
  calls(0);
}

static void on(const char *kernel, void (*part)(void))
{
  release = kernel;
  in_child(part);
}

/* Asks in a child: the answer stays in a process. */
static void find_events(void)
{
  _exit(ticks_available("task-clock:u") | ticks_available("page-faults:u") << 1);
}

int main(void)
{
  int status;
  pid_t pid;
  release = "6.17.0";
  pid = flush_and_fork();
  if (pid == 0) find_events();
  REQUIRE(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
  has_clock = WEXITSTATUS(status) & 1;
  has_faults = WEXITSTATUS(status) >> 1;
  versions();
  on("6.15.4-200.fc42.x86_64", calls_of_good);
  on("6.16.0", calls_of_bad);
  on("6.17.3-200.fc42.x86_64", calls_of_bad);
  on("6.17.0-5-generic", calls_of_bad);
  on("6.18.0", calls_of_good);
  on(NULL, calls_of_bad);
  return check_status();
}
