/*
** Storm of etc/storms: a handler of the program leaves by siglongjmp whatever it meets,
** up to 10,000 times a second on each of three threads, and another thread calls setuid in
** a loop.
** With signal = 'SIGALRM' our handler calls that of the program, which then leaves ours.
**
** The jumps spare the C library's own handler for setuid, which waits for ever for a thread
** that leaves it. "jump SECONDS bare" shows this: it does not spare it, and does not profile.
*/

#include "storm.h"
#include "signal_cost.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stddef.h>
#include <sys/syscall.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define JUMPERS   2      /* And the VM's thread. */
#define ALARM_NS  100000 /* At most so often, on each thread. */
#define SETXID    33     /* The C library's signal for setuid. */
#define MASK_WORD (8 * sizeof(unsigned long))

typedef struct Jumper {
  sigjmp_buf landing;
  volatile sig_atomic_t may_jump;
  volatile uint64_t alarms, jumps, spared;
  uint32_t random;
  StormActor *actor;
} Jumper;

static Jumper jumpers[JUMPERS + 1];
static __thread Jumper *self;
static int bare, pipe_ends[2], null_fd;
static long alarm_ns;

/* The kernel blocks a signal while its handler runs. */
static int in_setxid(const ucontext_t *uc)
{
  const unsigned long *mask = (const unsigned long *)&uc->uc_sigmask;
  return (int)(mask[(SETXID - 1) / MASK_WORD] >> (SETXID - 1) % MASK_WORD & 1);
}

static void on_alarm(int sig, siginfo_t *info, void *uc)
{
  Jumper *j = self;
  (void)sig;
  (void)info;
  if (!j) return;
  j->alarms++;
  if (!j->may_jump) return;
  if (!bare && in_setxid((const ucontext_t *)uc)) {
    j->spared++;
    return;
  }
  j->may_jump = 0;
  siglongjmp(j->landing, 1);
}

__attribute__((noinline)) static int deep(int n, int kind)
{
  static const struct timespec ms = { 0, 1000000 };
  volatile int x = n;
  char c[512];
  int i;
  if (n > 0) return deep(n - 1, kind) + x;
  switch (kind) {
  case 0: return (int)read(pipe_ends[0], c, 1);
  case 1: return poll(NULL, 0, 1);
  case 2: return clock_nanosleep(CLOCK_MONOTONIC, 0, &ms, NULL);
  case 3: return (int)write(null_fd, "x", 1);
  case 4: return (int)syscall(SYS_gettid);
  default:
    for (i = 0; i < 20000; i++) x = x * 3 + 1;
    return x;
  }
}

/* Do what may be left at any instruction until the handler leaves it. */
static void jump_once(void)
{
  Jumper *j = self;
  if (sigsetjmp(j->landing, 1) == 0) {
    j->may_jump = 1;
    for (;;)
      deep((int)(storm_random(&j->random) % 30), (int)(storm_random(&j->random) % 8));
  }
  j->jumps++;
}

static int lua_jump(lua_State *L)
{
  int i;
  for (i = 0; i < 20; i++) jump_once();
  lua_pushinteger(L, i);
  return 1;
}

/* Send SIGALRM to the calling thread from now on. */
static timer_t begin_alarms(Jumper *j)
{
  struct itimerspec its;
  struct sigevent ev;
  timer_t timer;
  memset(&ev, 0, sizeof(ev));
  ev.sigev_notify = SIGEV_THREAD_ID;
  ev.sigev_signo = SIGALRM;
  ev.sigev_notify_thread_id = (int)syscall(SYS_gettid);
  its.it_interval.tv_sec = its.it_value.tv_sec = 0;
  its.it_interval.tv_nsec = its.it_value.tv_nsec = alarm_ns;
  j->random = (uint32_t)(j - jumpers) * 7919 + 1;
  self = j;
  REQUIRE(timer_create(CLOCK_MONOTONIC, &ev, &timer) == 0);
  REQUIRE(timer_settime(timer, 0, &its, NULL) == 0);
  return timer;
}

static void *jumper(void *arg)
{
  Jumper *j = (Jumper *)arg;
  timer_t timer = begin_alarms(j);
  while (!storm_over) {
    jump_once();
    j->actor->count++;
  }
  REQUIRE(timer_delete(timer) == 0);
  return NULL;
}

static void *setuid_loop(void *arg)
{
  StormActor *actor = (StormActor *)arg;
  while (!storm_over) {
    REQUIRE(setuid(getuid()) == 0);
    actor->count++;
    storm_nap(100e-6);
  }
  return NULL;
}

static uint64_t sum(size_t offset)
{
  uint64_t n = 0;
  int i;
  for (i = 0; i <= JUMPERS; i++) n += *(volatile uint64_t *)((char *)&jumpers[i] + offset);
  return n;
}

int main(int argc, char **argv)
{
  static const char *const options[] = {
    "threads = 'all', clock = 'wall-signal', path = 'jump.bin'",
    "threads = 'all', clock = 'wall-signal', path = 'jump.bin', signal = 'SIGALRM'",
    "threads = 'all', clock = 'task-clock', path = 'jump.bin'",
    "threads = 'all', clock = 'task-clock', path = 'jump.bin', signal = 'SIGALRM'",
    "threads = 'all', clock = 'wall', path = 'jump.bin'",
  };
  static const char *const no_profile[] = { NULL };
  lua_State *L = storm_open(argc, argv);
  StormActor *setuids = storm_actor("the caller of setuid");
  pthread_t t[JUMPERS + 1];
  struct sigaction sa;
  timer_t timer;
  int i;
  bare = (argc > 2);
  alarm_ns = (long)signal_interval_ns(ALARM_NS, JUMPERS + 1);
  null_fd = open("/dev/null", O_WRONLY);
  REQUIRE(null_fd >= 0 && pipe(pipe_ends) == 0);
  memset(&sa, 0, sizeof(sa));
  sa.sa_flags = SA_RESTART | SA_SIGINFO;
  sa.sa_sigaction = on_alarm;
  REQUIRE(sigaction(SIGALRM, &sa, NULL) == 0);
  for (i = 0; i < JUMPERS; i++) {
    jumpers[i].actor = storm_actor("a jumper");
    t[i] = storm_thread(jumper, &jumpers[i], 0);
  }
  t[JUMPERS] = storm_thread(setuid_loop, setuids, 1);
  lua_register(L, "jump", lua_jump);
  storm_do(
    L, "local round = storm.round function storm.round() assert(jump() == 20) round() end");
  timer = begin_alarms(&jumpers[JUMPERS]);
  if (bare) storm_run(L, no_profile, 1);
  else storm_run(L, options, 5);
  for (i = 0; i <= JUMPERS; i++) REQUIRE(pthread_join(t[i], NULL) == 0);
  REQUIRE(timer_delete(timer) == 0);
  lua_close(L);
  return storm_close(
    "%llu alarms, %llu jumps, %llu in setuid's handler spared, %llu setuids",
    (unsigned long long)sum(offsetof(Jumper, alarms)),
    (unsigned long long)sum(offsetof(Jumper, jumps)),
    (unsigned long long)sum(offsetof(Jumper, spared)), (unsigned long long)setuids->count);
}
