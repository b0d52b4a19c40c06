/* TIMEOUT: 600
** BASE: none, linker, libraries, C stacks; unit/host_stack_at_each_instruction tries each LuaJIT
** LONG: 21
** The built-in unwinder against libunwind, frame by frame, from the registers of real
** signals. Scenes: deep recursion, callbacks of qsort, code inside libc, the PLT and the
** vdso, system calls, and handlers of signals, also on a stack above the thread's. In
** some stacks the middle changes while the frames above stay in place. Each stack is
** walked twice: with the cache of the last walk, and without. Prints the cost of a frame
** in all three.
**
**   host_stack_equals_libunwind [SAMPLES]   of each scene
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define UNW_LOCAL_ONLY
#include <alloca.h>
#include <libunwind.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "lj_obj.h"
#include "profile/host/lj_hostwalk.h"
#include "check.h"
#include "regs_of.h"

#define SAMPLES 4000 /* In each scene. */
#define SCENE_S 6    /* Seconds for that many, at most. */
#define DEPTH   400

static struct {
  const char *name;
  int samples, same, shorter, longer, other;
  int joined, alone_other, trapped;
  uint64_t ours_ns, alone_ns, theirs_ns, frames, copied;
} scene;
static int samples_max = SAMPLES;
static volatile int handled;
static volatile int in_trap; /* A handler of SIGILL runs. */
static timer_t timer;
static SafeLoad pk;
static FrameList frames, alone_frames;
static HostWalk hs, alone; /* alone: does not reuse the last walk. */
static HostMemoLists lists;

static uint64_t now_ns(void)
{
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Code addresses, leaf first, less one for return addresses. The leaf, and the code that a
** signal has interrupted, have no return address.
*/
static int walk_libunwind(ucontext_t *uc, uintptr_t *pc, int max)
{
  unw_cursor_t cursor;
  int n = 0;
  if (unw_init_local2(&cursor, uc, UNW_INIT_SIGNAL_FRAME) != 0) return 0;
  do {
    unw_word_t ip;
    int is_return = n > 0 && unw_is_signal_frame(&cursor) <= 0;
    if (unw_get_reg(&cursor, UNW_REG_IP, &ip) != 0 || ip == 0) break;
    pc[n++] = (uintptr_t)ip - (is_return ? 1 : 0);
  } while (n < max && unw_step(&cursor) > 0);
  return n;
}

static void arm(void)
{
  struct itimerspec its;
  memset(&its, 0, sizeof(its));
  its.it_value.tv_nsec = 200000;
  timer_settime(timer, 0, &its, NULL);
}

static void handler(int sig, siginfo_t *info, void *context)
{
  static uintptr_t theirs[FRAMELIST_MAX], ours[FRAMELIST_MAX];
  ucontext_t *uc = (ucontext_t *)context;
  uint64_t t0, t1, t2, t3;
  int n, m, i;
  (void)sig;
  (void)info;
  t0 = now_ns();
  lj_safeload_reset(&pk);
  lj_framelist_reset(&frames);
  lj_hostwalk_walk(&hs, regs_of(uc));
  lj_framelist_finish(&frames);
  t1 = now_ns();
  lj_framelist_reset(&alone_frames);
  lj_hostwalk_walk(&alone, regs_of(uc));
  lj_framelist_finish(&alone_frames);
  t2 = now_ns();
  n = walk_libunwind(uc, theirs, FRAMELIST_MAX);
  t3 = now_ns();
  m = (int)frames.len;
  for (i = 0; i < m; i++)
    ours[i] = frame_kind(frames.list[i]) == SPF_FRAME_HOST
		? (uintptr_t)frame_payload(frames.list[i])
		: 1;
  scene.samples++;
  scene.ours_ns += t1 - t0;
  scene.alone_ns += t2 - t1;
  scene.theirs_ns += t3 - t2;
  scene.trapped += in_trap;
  scene.joined += hs.memo.reused != 0;
  scene.copied += hs.memo.reused;
  scene.alone_other += frames.n != alone_frames.n ||
		       memcmp(frames.list, alone_frames.list,
			      frames.len * sizeof(FrameWord)) != 0;
  scene.frames += (uint64_t)m;
  for (i = 0; i < m && i < n && ours[i] == theirs[i]; i++)
    ;
  if (i == m && i == n) scene.same++;
  else if (i == m) scene.shorter++;
  else if (i == n) scene.longer++;
  else scene.other++;
  handled = 1;
  arm(); /* Not periodic: it must leave time for the work. */
}

static int compare(const void *a, const void *b)
{
  int x = *(const int *)a, y = *(const int *)b;
  return x < y ? -1 : x > y;
}

static void do_qsort(void)
{
  static int v[2000];
  static unsigned seed = 1;
  int i;
  for (i = 0; i < 2000; i++) v[i] = (int)(seed = seed * 1103515245u + 12345u);
  qsort(v, 2000, sizeof(int), compare);
}

__attribute__((noinline)) static int recurse(int depth, volatile int *spin)
{
  int i, sum = 0;
  if (depth > 0) return recurse(depth - 1, spin) + 1;
  for (i = 0; i < 2000; i++) sum += *spin;
  return sum;
}

static void do_recursion(void)
{
  volatile int one = 1;
  static int depth;
  recurse(depth = (depth + 37) % DEPTH, &one);
}

/* Below some frames of one kind. */
__attribute__((noinline)) static int recurse_through(int depth, int (*f)(int))
{
  volatile int more = 1;
  return depth > 0 ? recurse_through(depth - 1, f) + more : f(10) + more;
}

static void do_libc(void)
{
  char text[256];
  double x = 1.5;
  int i;
  for (i = 0; i < 20; i++) {
    snprintf(text, sizeof(text), "%d %s %.17g", i, "text", x * i);
    x += strtod(text, NULL) + (double)strlen(text);
  }
  free(malloc((size_t)x & 0xfff));
}

static void do_plt(void)
{
  volatile double x = 1;
  int i;
  for (i = 0; i < 500; i++)
    x = ldexp(x, i & 1 ? 1 : -1); /* Short: much of it is the call itself. */
}

static void do_vdso(void)
{
  struct timespec ts;
  struct timeval tv;
  int i;
  for (i = 0; i < 100; i++) {
    clock_gettime(CLOCK_MONOTONIC, &ts);
    gettimeofday(&tv, NULL);
  }
}

static void do_syscall(void)
{
  int i;
  for (i = 0; i < 50; i++) getppid();
}

/* -- Stacks that change in the middle ---------------------------------------- */

static unsigned turn; /* Which way the stack goes. */

/* Needs all registers that it has to save for its caller. */
__attribute__((noinline)) static int top(int depth)
{
  volatile int one = 1;
  int a = one, b = one, c = one, d = one, e = one, f = one, i;
  if (depth > 0) {
    one = top(depth - 1);
    return one + a + b + c + d + e + f;
  }
  for (i = 0; i < 300; i++) a += one;
  return a;
}

/* Functions of the same size: frames above are where they were, and return to the
** same place but in the lowest.
*/
#define MIDDLE(n) \
  __attribute__((noinline)) static int middle##n(int depth, int (*next)(int)) \
  { \
    volatile int room = next(depth); \
    return room + n; \
  }
/* clang-format off */
MIDDLE(1)
MIDDLE(2)
MIDDLE(3)
/* clang-format on */

__attribute__((noinline)) static int through_one(int depth)
{
  switch (turn % 3) {
  case 0: return middle1(depth, top) + 1;
  case 1: return middle2(depth, top) + 2;
  default: return middle3(depth, top) + 3;
  }
}

static void do_middle(void)
{
  turn++;
  recurse_through(DEPTH / 4, through_one);
}

/* Frames that a frame pointer leads to. The frame below the inner one is always at the same
** place, and returns to the same address. The saved frame pointer there gives the size of
** the frame.
*/
#define ROOM (64 * 16)

__attribute__((noinline)) static int frame_inner(size_t room, int depth)
{
  volatile char *p = (volatile char *)alloca(room);
  p[0] = 1;
  return top(depth) + p[0];
}

__attribute__((noinline)) static int frame_outer(size_t room, int depth)
{
  volatile char *p = (volatile char *)alloca(room);
  p[0] = 1;
  return frame_inner(ROOM - room, depth) + p[0];
}

__attribute__((noinline)) static int small_room(int depth)
{
  return frame_outer(16, depth) + 1;
}

__attribute__((noinline)) static int large_room(int depth)
{
  return frame_outer(160, depth) + 2;
}

static int through_rooms(int depth)
{
  return turn % 2 ? small_room(depth) : large_room(depth);
}

static void do_rooms(void)
{
  turn++;
  recurse_through(10, through_rooms);
}

/* -- Frames of signals --------------------------------------------------------- */

/* The first instruction of a function raises SIGILL. The address before it belongs to
** another function with a large frame.
*/
void trap(void);
__asm__("	.text\n"
	"	.type large_frame, @function\n"
	"large_frame:\n"
	"	.cfi_startproc\n"
	"	.cfi_def_cfa_offset 4096\n"
	"	nop\n"
	"	.cfi_endproc\n"
	"	.size large_frame, .-large_frame\n"
	"	.globl trap\n"
	"	.type trap, @function\n"
	"trap:\n"
	"	.cfi_startproc\n"
	"	ud2\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size trap, .-trap\n");

static void on_trap(int sig, siginfo_t *info, void *context)
{
  ucontext_t *uc = (ucontext_t *)context;
  (void)sig;
  (void)info;
  in_trap = 1;
  top(3);
  in_trap = 0;
  uc->uc_mcontext.gregs[REG_RIP] += 2; /* Behind the instruction. */
}

static void do_signal(void)
{
  trap();
}

static void run(const char *name, void (*work)(void))
{
  struct sigevent ev;
  uint64_t deadline = now_ns() + (uint64_t)SCENE_S * 1000000000u *
				   (uint64_t)(1 + samples_max / SAMPLES);
  memset(&scene, 0, sizeof(scene));
  memset(&ev, 0, sizeof(ev));
  ev.sigev_notify = SIGEV_SIGNAL;
  ev.sigev_signo = SIGPROF;
  REQUIRE(timer_create(CLOCK_MONOTONIC, &ev, &timer) == 0);
  arm();
  while (scene.samples < samples_max && now_ns() < deadline) work();
  timer_delete(timer);
  printf("%-11s %5d samples: %d same, %d shorter, %d longer, %d other; "
	 "%.0f %% of frames are the last walk's; ns per frame: %.1f ours, %.1f "
	 "without the last walk, %.0f libunwind\n",
	 name, scene.samples, scene.same, scene.shorter, scene.longer, scene.other,
	 100.0 * (double)scene.copied / (double)scene.frames,
	 (double)scene.ours_ns / (double)scene.frames,
	 (double)scene.alone_ns / (double)scene.frames,
	 (double)scene.theirs_ns / (double)scene.frames);
  CHECK(scene.samples >= 100);
  CHECK_EQ(scene.same, scene.samples);
  CHECK_EQ(scene.alone_other, 0);
  CHECK_EQ(scene.trapped > 0, work == do_signal);
  CHECK(hs.stack_hi == 0 || scene.joined > 0);
}

/* A thread with its stack below the stack of its handlers. */
#define LOW_SIZE  (1 << 20)
#define HIGH_SIZE (1 << 16)

static void *run_below(void *arg)
{
  char *low = (char *)arg;
  stack_t high;
  sigset_t set;
  memset(&high, 0, sizeof(high));
  high.ss_sp = low + LOW_SIZE;
  high.ss_size = HIGH_SIZE;
  REQUIRE(sigaltstack(&high, NULL) == 0);
  sigemptyset(&set);
  sigaddset(&set, SIGPROF);
  REQUIRE(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
  hs.stack_lo = alone.stack_lo = hs.stack_hi = alone.stack_hi = 0;
  run("stack above", do_signal);
  return NULL;
}

static void test_stack_above(void)
{
  char *low = (char *)mmap(NULL, LOW_SIZE + HIGH_SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_attr_t attr;
  pthread_t thread;
  sigset_t set;
  REQUIRE(low != MAP_FAILED);
  sigemptyset(&set);
  sigaddset(&set, SIGPROF);
  REQUIRE(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0); /* The thread takes them all. */
  REQUIRE(pthread_attr_init(&attr) == 0 &&
	  pthread_attr_setstack(&attr, low, LOW_SIZE) == 0);
  REQUIRE(pthread_create(&thread, &attr, run_below, low) == 0);
  pthread_attr_destroy(&attr);
  REQUIRE(pthread_join(thread, NULL) == 0);
}

int main(int argc, char **argv)
{
  lua_State *L = luaL_newstate();
  struct sigaction sa;
  uintptr_t pc[64];
  ucontext_t uc;
  pthread_attr_t attr;
  void *stack;
  size_t size;
  if (argc > 1) samples_max = atoi(argv[1]);
  REQUIRE(L != NULL && samples_max > 0);
  hs.pk = &pk;
  hs.memo.lists = &lists;
  hs.g = G(L);
  hs.frames = &frames;
  REQUIRE(pthread_getattr_np(pthread_self(), &attr) == 0 &&
	  pthread_attr_getstack(&attr, &stack, &size) == 0);
  pthread_attr_destroy(&attr);
  hs.stack_lo = (uintptr_t)stack;
  hs.stack_hi = hs.stack_lo + size;
  alone = hs;
  alone.frames = &alone_frames;
  REQUIRE(lj_hostwalk_warmup());
  unw_getcontext(&uc); /* libunwind binds and loads outside of the handler. */
  CHECK(walk_libunwind(&uc, pc, 64) > 0);
  unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_GLOBAL);
  memset(&sa, 0, sizeof(sa));
  sa.sa_sigaction = handler;
  sa.sa_flags = SA_SIGINFO | SA_RESTART;
  REQUIRE(sigaction(SIGPROF, &sa, NULL) == 0);
  run("qsort", do_qsort);
  run("recursion", do_recursion);
  run("libc", do_libc);
  run("plt", do_plt);
  run("vdso", do_vdso);
  run("syscall", do_syscall);
  run("middle", do_middle);
  run("rooms", do_rooms);
  sa.sa_sigaction = on_trap;
  sa.sa_flags = SA_SIGINFO | SA_ONSTACK;
  REQUIRE(sigaction(SIGILL, &sa, NULL) == 0);
  run("signal", do_signal);
  test_stack_above();
  CHECK(handled);
  signal(SIGPROF, SIG_IGN);
  lua_close(L);
  return check_status();
}
