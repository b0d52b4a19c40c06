/* TIMEOUT: 600
** More VMs than threads start and stop their profiles at random, with each way to write.
** Any thread may run any VM; VMs are closed and opened again. Nothing crashes, each result
** is right, each stream is complete, and no descriptor, timer or memory leaks. Each signal
** of the program reaches its thread once.
**
**   many_vms [VMS [THREADS [SECONDS [SIGNALS]]]]     SIGNALS: a second,
**   or as many as leave the threads half of a processor
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "count_kept.h"
#include "cpu_work.h"
#include "signal_cost.h"
#include "stream_sums.h"

#define VMS_MAX     256
#define THREADS_MAX 64
#define BUF_SIZE    8192

#define LAST_SIGNAL_US 60000000 /* On a very busy machine. */

typedef struct Vm {
  pthread_mutex_t lock; /* Held by the thread that uses the VM. */
  double result;        /* Of work, without the profiler. */
  lua_State *L;
  int running;
  Sink sink;
  struct luam_Sysprof_Options opt;
  StreamSums *sums;
} Vm;

static Vm vms[VMS_MAX];
static int nvms = 24, nthreads = 6, signal_hz = 5000;
static _Atomic int done, no_signals;
static uint64_t streams, moves, samples, signals;

static size_t vm_writer(const void **data, size_t len, void *ctx)
{
  Sink *sink = (Sink *)ctx;
  if (sink->len + len > 1 << 20) return 0;
  memcpy(sink->bytes + sink->len, *data, len);
  sink->len += len;
  return len;
}

static uint32_t random_next(uint32_t *x)
{
  *x ^= *x << 13;
  *x ^= *x >> 17;
  *x ^= *x << 5;
  return *x;
}

/* -- Signals of the program ----------------------------------------------------- */

/* A thread has at most one signal on the way, so that the kernel merges none. */
typedef struct Target {
  pthread_t thread;
  _Atomic int ready; /* Its handler counts. */
  uint64_t sent;
  _Atomic uint64_t got;
} Target;

static Target targets[THREADS_MAX];
static __thread Target *own_target;

static void on_signal(int sig)
{
  (void)sig;
  if (own_target) own_target->got++;
}

static void send_to(Target *t, uint64_t *sent)
{
  if (!t->ready || t->got != t->sent) return;
  t->sent++;
  REQUIRE(pthread_kill(t->thread, SIGUSR1) == 0);
  (*sent)++;
}

/* Waits for all signals to arrive. Returns their number. */
static void *send_signals(void *arg)
{
  uint64_t begin = cpu_us(CLOCK_MONOTONIC), sent = 0, last;
  int i;
  (void)arg;
  /* Without the right to do this, a busy machine sees fewer signals. */
  (void)!setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), -20);
  while (!no_signals) {
    for (i = 0; i < nthreads; i++) send_to(&targets[i], &sent);
    if (sent * 1000000 > (cpu_us(CLOCK_MONOTONIC) - begin) * (uint64_t)signal_hz)
      cpu_sleep_us(1000000 / signal_hz);
    else sched_yield();
  }
  last = cpu_us(CLOCK_MONOTONIC) + LAST_SIGNAL_US;
  for (i = 0; i < nthreads; i++) {
    while (targets[i].got != targets[i].sent && cpu_us(CLOCK_MONOTONIC) < last)
      cpu_sleep_us(1000);
    CHECK_EQ(targets[i].got, targets[i].sent); /* ThreadSanitizer itself may lose one. */
  }
  return (void *)(uintptr_t)sent;
}

/* -- VMs ---------------------------------------------------------------------- */

static double vm_work(Vm *vm)
{
  double result = 0;
  lua_getglobal(vm->L, "work");
  if (lua_pcall(vm->L, 0, 1, 0) == 0) result = lua_tonumber(vm->L, -1);
  else printf("FAILED: %s\n", lua_tostring(vm->L, -1));
  lua_pop(vm->L, 1);
  return result;
}

static void vm_make(Vm *vm, uint32_t r)
{
  vm->L = session_vm();
  if (r & 1) session_script(vm->L, "jit.off()");
  session_script(
    vm->L,
    "function work() local t, sum = {}, 0"
    " for i = 1, 3000 do t[i % 50] = {i} end sum = sum + load('return 1')()"
    " local go = coroutine.wrap(function() for i = 1, 1000 do sum = sum + i % 7"
    " if i % 9 == 0 then coroutine.yield() end end while true do coroutine.yield() end end)"
    " for i = 1, 150 do go() end"
    " for i = 0, 49 do sum = sum + t[i][1] end return sum end");
  vm->result = vm_work(vm);
  CHECK_EQ(vm->result, 1 + 3003 + 148775);
}

static void vm_check(Vm *vm)
{
  sums_read(vm->sums, vm->sink.bytes, vm->sink.len);
  CHECK(vm->sums->fault == NULL);
  if (vm->sums->fault) puts(vm->sums->fault);
  CHECK(sums_all_ended(vm->sums));
  CHECK_EQ(vm->sums->n, 1);
  CHECK_EQ(vm->sink.stops, 1);
  __atomic_fetch_add(&streams, 1, __ATOMIC_SEQ_CST);
  __atomic_fetch_add(&samples, vm->sums->s[0].samples[0], __ATOMIC_SEQ_CST);
}

static void vm_step(Vm *vm, uint32_t r)
{
  static const uint64_t intervals[] = { 100000, 1000000, 3000000 };
  static const char *const clocks[] = { "cpu", "wall-signal", "wall",
					"coroutine-wait,cpu" };
  if (!vm->L) vm_make(vm, r);
  if (!vm->running) {
    vm->sink.len = 0;
    vm->sink.stops = 0;
    vm->opt.clocks = clocks[(r >> 8) % 4];
    vm->opt.interval_ns = intervals[(r >> 9) % 3];
    vm->opt.flush = (uint8_t)((r >> 24) % 3);
    CHECK_EQ(luaM_sysprof_start(vm->L, &vm->opt), PROFILE_SUCCESS);
    vm->running = 1;
  } else if (((r >> 12) & 3) == 0) {
    CHECK_EQ(luaM_sysprof_moved(vm->L), PROFILE_SUCCESS);
    __atomic_fetch_add(&moves, 1, __ATOMIC_SEQ_CST);
  }
  CHECK(vm_work(vm) == vm->result);
  if (((r >> 16) & 3) == 0) {
    if ((r >> 20) & 1) {
      CHECK_EQ(luaM_sysprof_stop(vm->L), PROFILE_SUCCESS);
    } else {
      lua_close(vm->L);
      vm->L = NULL;
    }
    vm->running = 0;
    vm_check(vm);
  }
}

static void *run(void *arg)
{
  uint32_t x = 12345 + 7919 * (uint32_t)(uintptr_t)arg;
  own_target = &targets[(uintptr_t)arg - 1];
  own_target->thread = pthread_self();
  own_target->ready = 1;
  while (!done) {
    uint32_t r = random_next(&x);
    Vm *vm = &vms[r % (uint32_t)nvms];
    if (pthread_mutex_trylock(&vm->lock) != 0) continue;
    vm_step(vm, random_next(&x));
    pthread_mutex_unlock(&vm->lock);
  }
  return NULL;
}

static void all(int seconds)
{
  pthread_t thread[THREADS_MAX], sender;
  void *sent;
  int i;
  for (i = 0; i < nthreads; i++) thread[i] = cpu_thread(run, (void *)(uintptr_t)(i + 1));
  sender = cpu_thread(send_signals, NULL);
  cpu_sleep_us(seconds * 1000000L);
  no_signals = 1;
  REQUIRE(pthread_join(sender, &sent) == 0);
  signals = (uintptr_t)sent;
  done = 1;
  for (i = 0; i < nthreads; i++) REQUIRE(pthread_join(thread[i], NULL) == 0);
  for (i = 0; i < nvms; i++) {
    Vm *vm = &vms[i];
    if (!vm->L) continue;
    lua_close(vm->L);
    vm->L = NULL;
    if (vm->running) vm_check(vm);
    vm->running = 0;
  }
}

int main(int argc, char **argv)
{
  int i, files, timers, seconds = 3;
  struct sigaction sa;
  if (argc > 1) nvms = atoi(argv[1]);
  if (argc > 2) nthreads = atoi(argv[2]);
  if (argc > 3) seconds = atoi(argv[3]);
  if (argc > 4) signal_hz = atoi(argv[4]);
  REQUIRE(nvms > 0 && nvms <= VMS_MAX && nthreads > 0 && nthreads <= THREADS_MAX &&
	  signal_hz > 0 && seconds > 0);
  signal_hz = (int)(1000000000 / signal_interval_ns(1000000000u / (unsigned)signal_hz, 1));
  for (i = 0; i < nvms; i++) {
    Vm *vm = &vms[i];
    pthread_mutex_init(&vm->lock, NULL);
    vm->opt.mode = LUAM_SYSPROF_CALLGRAPH;
    vm->opt.len = BUF_SIZE;
    vm->opt.buf = (uint8_t *)malloc(BUF_SIZE);
    vm->opt.ctx = &vm->sink;
    vm->sink.bytes = (uint8_t *)malloc(1 << 20);
    vm->sums = (StreamSums *)malloc(sizeof(StreamSums));
    REQUIRE(vm->opt.buf && vm->sink.bytes && vm->sums);
  }
  memset(&sa, 0, sizeof(sa));
  sa.sa_handler = on_signal;
  sa.sa_flags = SA_RESTART;
  REQUIRE(sigaction(SIGUSR1, &sa, NULL) == 0);
  luaM_sysprof_set_writer(vm_writer);
  luaM_sysprof_set_on_stop(sink_on_stop);
  luaM_sysprof_set_backtracer(NULL);
  files = count_entries("/proc/self/fd");
  timers = count_lines("/proc/self/timers");
  all(seconds);
  CHECK_EQ(count_entries("/proc/self/fd"), files);
  CHECK_EQ(count_lines("/proc/self/timers"), timers);
  printf(
    "%d VMs, %d threads, %llu starts and stops, %llu moves, %llu signals (%llu a second), "
    "%llu samples\n",
    nvms, nthreads, (unsigned long long)streams, (unsigned long long)moves,
    (unsigned long long)signals, (unsigned long long)signals / (unsigned long long)seconds,
    (unsigned long long)samples);
  CHECK(streams > 0 && signals > 0);
  return check_status();
}
