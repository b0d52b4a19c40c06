/* TIMEOUT: 600
** BASE: none, its modules know no VM
** An unavailable clock fails with the reason and a remedy; 'cpu' takes an available one.
** A seccomp filter forbids system calls, limits forbid descriptors and signals, and the
** user nobody may not open perf events.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For REG_RAX. */
#endif
#include <stddef.h>
#include <ucontext.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "ticks.h"
#include "profile/base/lj_nanotime.h"
#include "profile/clock/lj_clockbudget.h"

#define MS ((uint64_t)1000000)

static int has_perf; /* Task clock, with the kernel's part. */
static char errmsg[EVENT_ERRMSG_MAX];

/* Have system calls answered so, SECCOMP_RET_*. */
static void answer(int nr1, int nr2, unsigned int how)
{
  struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 4),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)nr1, 1, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)nr2, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, how),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
  };
  struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    printf("no seccomp filter: %s\n", strerror(errno));
    _exit(0);
  }
}

/* Have them fail with an errno. */
static void forbid(int nr1, int nr2, int err)
{
  answer(nr1, nr2, SECCOMP_RET_ERRNO | (unsigned int)err);
}

/* A clock is unavailable; the message has each of the texts. */
static void refused(const char *name, int err, const char *text1, const char *text2)
{
  ClockSpec spec = ticks_spec(name, 10 * MS, 0);
  Ticks t;
  CHECK_EQ(ticks_open(&t, &spec, lj_osthread_self(), 0, errmsg), EVENT_ERROR);
  CHECK_EQ(errno, err);
  CHECK(strstr(errmsg, name) != NULL);
  CHECK(strstr(errmsg, text1) != NULL);
  CHECK(strstr(errmsg, text2) != NULL);
  CHECK(strlen(errmsg) < EVENT_ERRMSG_MAX - 1);
  printf("  %s\n", errmsg);
}

/* 'cpu' becomes a clock that works. */
static void becomes(uint64_t interval_ns, const char *name)
{
  time_t deadline = time(NULL) + 200;
  char limit[EVENT_TEXT_MAX];
  Ticks t;
  ticks_start(&t, "cpu", interval_ns, 0);
  if (strcmp(t.clock.spec.name, name) != 0)
    printf("cpu became %s, not %s\n", t.clock.spec.name, name);
  CHECK(strcmp(t.clock.spec.name, name) == 0);
  /* No limit is left of a kind that did not open. */
  if (t.clock.fd < 0) CHECK_EQ(t.clock.kernel_ns, 0);
  lj_clockbudget_limit(&t.clock, limit);
  if (t.clock.fd < 0 && interval_ns < kernel_tick_ns())
    CHECK(strstr(limit, "keeps to the kernel's tick") != NULL);
  while (t.n < 5 && time(NULL) < deadline) burn_us(1000);
  CHECK(t.n >= 5);
  ticks_stop(&t);
}

static void without_perf(void)
{
  forbid(SYS_perf_event_open, SYS_perf_event_open, EPERM);
  refused("task-clock", EPERM, "seccomp profile", "CAP_PERFMON");
  refused("cycles", EPERM, "seccomp profile", "CAP_PERFMON");
  becomes(10 * MS, "ctimer");
  becomes(MS, "ctimer");
}

static void without_perf_call(void)
{
  forbid(SYS_perf_event_open, SYS_perf_event_open, ENOSYS);
  refused("page-faults", ENOSYS, "seccomp profile", "allow it");
  becomes(MS, "ctimer");
}

/* The clock must not make the call. It would kill the process, like in a service of
** systemd.
*/
static void perf_is_deadly(unsigned int how)
{
  int status;
  answer(SYS_perf_event_open, SYS_perf_event_open, how);
  refused("task-clock", EPERM, "seccomp profile", "CAP_PERFMON");
  becomes(10 * MS, "ctimer");
  becomes(MS, "ctimer");
  CHECK(waitpid(-1, &status, __WALL) < 0 && errno == ECHILD);
}

static void perf_ends_process(void)
{
  perf_is_deadly(SECCOMP_RET_KILL_PROCESS);
}

static void perf_ends_thread(void)
{
  perf_is_deadly(SECCOMP_RET_KILL_THREAD);
}

static void perf_traps(void)
{
  perf_is_deadly(SECCOMP_RET_TRAP);
}

/* The program answers for the kernel. */
static void sigsys(int signo, siginfo_t *info, void *context)
{
  (void)signo;
  (void)info;
  ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = -ENOSYS;
}

static void perf_is_emulated(void)
{
  struct sigaction sa;
  memset(&sa, 0, sizeof(sa));
  sa.sa_sigaction = sigsys;
  sa.sa_flags = SA_SIGINFO;
  REQUIRE(sigaction(SIGSYS, &sa, NULL) == 0);
  answer(SYS_perf_event_open, SYS_perf_event_open, SECCOMP_RET_TRAP);
  refused("task-clock", ENOSYS, "seccomp profile", "allow it");
  becomes(MS, "ctimer");
}

/* A filter that allows it takes nothing away. */
static void perf_is_allowed(void)
{
  answer(SYS_reboot, SYS_reboot, SECCOMP_RET_KILL_PROCESS);
  becomes(MS, has_perf ? "task-clock" : "ctimer");
}

/* 'cpu' has only task-clock left. It never becomes itimer, which exec keeps. */
static void only_perf(int err, const char *why)
{
  if (has_perf) {
    becomes(10 * MS, "task-clock");
    becomes(MS, "task-clock");
  } else {
    refused("cpu", err, why, "or choose 'itimer'");
  }
}

static void without_timers(void)
{
  forbid(SYS_timer_create, SYS_timer_create, EPERM);
  refused("ctimer", EPERM, "seccomp profile", "allow it there");
  refused("wall-signal", EPERM, "seccomp profile", "allow it there");
  only_perf(errno, "timer_create is forbidden");
}

static _Atomic int jitp_ticks;

static void jitp_handler(int signo)
{
  CHECK_EQ(signo, SIGPROF);
  jitp_ticks++;
}

/* LuaJIT's own profiler goes on with the timer that it has without us. */
static void jit_profile(void)
{
  time_t deadline = time(NULL) + 200;
  CHECK(lj_clock_jitp_start(jitp_handler, 1));
  while (jitp_ticks < 3 && time(NULL) < deadline) burn_us(1000);
  CHECK(jitp_ticks >= 3);
  lj_clock_jitp_stop();
}

static int timer_is_free(void)
{
  struct itimerval now;
  REQUIRE(getitimer(ITIMER_PROF, &now) == 0);
  return now.it_value.tv_sec == 0 && now.it_value.tv_usec == 0;
}

static void without_both(void)
{
  struct itimerval it = { { 1000, 0 }, { 1000, 0 } }, now;
  ClockSpec spec = ticks_spec("itimer", 10 * MS, 0);
  time_t deadline = time(NULL) + 200;
  Ticks t;
  forbid(SYS_timer_create, SYS_perf_event_open, EPERM);
  refused("cpu", EPERM, "timer_create is forbidden", "perf_event_open is forbidden");
  CHECK(strstr(errmsg, "or choose 'itimer' and start no program by exec") != NULL);
  CHECK(timer_is_free());
  ticks_start(&t, "itimer", 10 * MS, 0);
  while (t.n < 5 && time(NULL) < deadline) burn_us(1000);
  CHECK(t.n >= 5);
  ticks_stop(&t);
  CHECK(timer_is_free());
  jit_profile();
  CHECK(timer_is_free());
  /* The last clock is unavailable, too. */
  REQUIRE(setitimer(ITIMER_PROF, &it, NULL) == 0);
  refused("itimer", EBUSY, "setitimer(ITIMER_PROF)", "another clock");
  REQUIRE(getitimer(ITIMER_PROF, &now) == 0);
  CHECK(now.it_interval.tv_sec == 1000); /* The program's own goes on. */
  memset(&it, 0, sizeof(it));
  REQUIRE(setitimer(ITIMER_PROF, &it, NULL) == 0);
  CHECK_EQ(ticks_open(&t, &spec, lj_osthread_self(), SIGUSR1, errmsg), EVENT_ERROR);
  CHECK(strstr(errmsg, "SIGPROF only") != NULL);
}

static void without_descriptors(void)
{
  struct rlimit limit = { 0, 0 };
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  if (has_perf) {
    refused("task-clock", EMFILE, "all 0 file descriptors", "ulimit -n");
    refused("page-faults", EMFILE, "all 0 file descriptors", "ulimit -n");
  }
  becomes(MS, "ctimer");
}

static void without_signals(void)
{
  struct rlimit limit = { 0, 0 };
  REQUIRE(setrlimit(RLIMIT_SIGPENDING, &limit) == 0);
  refused("ctimer", EAGAIN, "too many timers", "ulimit -i");
  only_perf(errno, "ulimit -i");
}

static int paranoid_level(void)
{
  FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "r");
  int level = -100;
  if (!f) return level;
  if (fscanf(f, "%d", &level) != 1) level = -100;
  fclose(f);
  return level;
}

static void as_nobody(void)
{
  char text[40];
  int level = paranoid_level();
  if (getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) {
    printf("cannot become nobody: %s\n", strerror(errno));
    return;
  }
  if (level < 2 || !has_perf) {
    printf("perf_event_paranoid is %d and perf is %sthere: forbids nothing\n", level,
	   has_perf ? "" : "not ");
    return;
  }
  snprintf(text, sizeof(text), "perf_event_paranoid is %d", level);
  refused("task-clock", EACCES, text, "sysctl kernel.perf_event_paranoid=1");
  refused("page-faults", EACCES, text, "CAP_PERFMON");
  refused("context-switches", EACCES, text, "CAP_PERFMON");
  CHECK(strstr(errmsg, "context-switches:u") == NULL); /* That event has no modifier. */
  becomes(MS, "ctimer");
  if (level == 2) {
    refused("task-clock", EACCES, text, "'task-clock:u'");
    CHECK(ticks_available("task-clock:u"));
    CHECK(ticks_available("page-faults:u"));
  }
}

static void signals(void)
{
  static const int wrong[] = { -1, 65, SIGKILL, SIGSTOP, SIGSEGV, SIGCHLD, 32, 33 };
  const int right[] = { SIGUSR2, SIGIO, SIGRTMIN, SIGRTMAX };
  ClockSpec cpu = ticks_spec("ctimer", MS, 0), event = ticks_spec("task-clock", MS, 0);
  struct sigaction sa;
  Ticks t;
  size_t i;
  for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
    CHECK_EQ(ticks_open(&t, &cpu, lj_osthread_self(), wrong[i], errmsg), EVENT_ERROR);
    CHECK_EQ(errno, EINVAL);
    CHECK(strstr(errmsg, "is not available to clocks") != NULL);
  }
  for (i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
    time_t deadline = time(NULL) + 200;
    REQUIRE(ticks_open(&t, &cpu, lj_osthread_self(), right[i], errmsg) == EVENT_OK);
    REQUIRE(sigaction(right[i], NULL, &sa) == 0);
    CHECK((sa.sa_flags & SA_RESTART) && (sa.sa_flags & SA_ONSTACK));
    while (t.n < 3 && time(NULL) < deadline) burn_us(1000);
    CHECK(t.n >= 3);
    ticks_stop(&t);
    REQUIRE(sigaction(right[i], NULL, &sa) == 0);
    CHECK(sa.sa_handler == SIG_DFL);
  }
  CHECK_EQ(ticks_open(&t, &event, lj_osthread_self(), SIGRTMIN, errmsg), EVENT_ERROR);
  CHECK(strstr(errmsg, "real-time signal") != NULL);
  CHECK_EQ(ticks_open(&t, &event, 0x3ffffff, 0, errmsg), EVENT_ERROR);
  CHECK_EQ(ticks_open(&t, &cpu, 0x3ffffff, 0, errmsg), EVENT_ERROR);
  CHECK(strstr(errmsg, "the thread has ended") != NULL);
}

/* A process that has asked under a filter does not ask again: another one does. */
static int perf_is_there(void)
{
  int status;
  pid_t pid;
  pid = flush_and_fork();
  if (pid == 0) {
    status = ticks_available("task-clock");
    fflush(stdout);
    _exit(status);
  }
  REQUIRE(waitpid(pid, &status, 0) == pid);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

int main(void)
{
  has_perf = perf_is_there();
  in_child(without_perf);
  in_child(without_perf_call);
  in_child(perf_ends_process);
  in_child(perf_ends_thread);
  in_child(perf_traps);
  in_child(perf_is_emulated);
  in_child(perf_is_allowed);
  in_child(without_timers);
  in_child(without_both);
  in_child(without_descriptors);
  in_child(without_signals);
  in_child(as_nobody);
  in_child(signals);
  return check_status();
}
