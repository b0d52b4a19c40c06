/*
** Cost of a sample in the handler, as a whole and in parts. Built and run by
** etc/bench/handler.
**
** Runs a session of the C API. A handler of this program takes the clock's first signal
** and keeps it. Then the program sends that signal to itself on stacks of known depth. It
** measures how long sysprof's handler runs. For the parts, it calls the handler's modules
** in the same way, with its own state.
**
** cold: before each call, the program evicts caches, the TLB and the branch history.
** steps: a parent process single-steps the handler and writes each address that ran.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "lmisclib.h"
#include "lj_obj.h"
#include "profile/host/lj_hostwalk.h"
#include "profile/lua/lj_luawalk.h"
#include "profile/clock/lj_throttle.h"
#include "profile/symbols/lj_functab.h"

#define BUF_SIZE  (1024 * 1024)
#define TICKS_MAX 100000

static void die(const char *what)
{
  perror(what);
  exit(1);
}

/* -- Measuring ------------------------------------------------------------- */

typedef enum Part { PART_WHOLE, PART_CLOCKS, PART_HOST, PART_LUA, PART__MAX } Part;

/* Results of one scene. */
static struct {
  uint32_t n;
  uint32_t host, lua; /* Frames. */
  uint32_t broken;    /* Samples that are broken. */
  uint32_t ns[PART__MAX][TICKS_MAX];
  uint32_t ins[PART__MAX][TICKS_MAX];
} scene;

static int ins_fd = -1;
static uint64_t ns_least, ins_least; /* Cost of measuring itself. */

static uint64_t now_ns(clockid_t id)
{
  struct timespec ts;
  clock_gettime(id, &ts);
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t now_ins(void)
{
  uint64_t v = 0;
  if (ins_fd >= 0 && read(ins_fd, &v, sizeof(v)) != sizeof(v)) v = 0;
  return v;
}

static void ins_open(void)
{
  struct perf_event_attr a;
  memset(&a, 0, sizeof(a));
  a.type = PERF_TYPE_HARDWARE;
  a.size = sizeof(a);
  a.config = PERF_COUNT_HW_INSTRUCTIONS;
  a.exclude_kernel = 1;
  a.exclude_hv = 1;
  ins_fd = (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, 0);
}

/* Times and instructions are measured in turns: reading a counter is a system call, which
** slows down the code after it.
*/
typedef struct Meter {
  uint64_t begin;
} Meter;

static int count_ins;

static inline void meter_begin(Meter *m)
{
  m->begin = count_ins ? now_ins() : now_ns(CLOCK_MONOTONIC);
}

static inline void meter_end(Meter *m, Part part)
{
  uint64_t d = (count_ins ? now_ins() : now_ns(CLOCK_MONOTONIC)) - m->begin;
  uint64_t least = count_ins ? ins_least : ns_least;
  (count_ins ? scene.ins : scene.ns)[part][scene.n] = (uint32_t)(d > least ? d - least : 0);
}

static void meter_calibrate(void)
{
  int i;
  ns_least = ins_least = ~(uint64_t)0;
  for (i = 0; i < 10000; i++) {
    uint64_t t = now_ns(CLOCK_MONOTONIC), d = now_ns(CLOCK_MONOTONIC) - t;
    if (d < ns_least) ns_least = d;
    if (i % 10 == 0 && ins_fd >= 0) {
      t = now_ins();
      d = now_ins() - t;
      if (d < ins_least) ins_least = d;
    }
  }
}

static int compare(const void *a, const void *b)
{
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static uint32_t median(uint32_t *v, uint32_t n)
{
  if (n == 0) return 0;
  qsort(v, n, sizeof(*v), compare);
  return v[n / 2];
}

/* -- Cold caches --------------------------------------------------------------- */

#define EVICT_DATA  (2u << 20)   /* Bytes: more than a second-level cache. */
#define EVICT_CODE  (512u << 10) /* Bytes: more than a first-level cache. */
#define EVICT_BLOCK 16           /* Bytes of code for each branch. */
#define CACHE_LINE  64

static int is_cold;
static uint8_t *evict_data;
static void (*evict_code)(void);

/* Make a function of conditional branches: each one jumps to the next block or falls
** through to it, by the bits of a random number.
*/
static void evict_init(void)
{
  static const uint8_t block[EVICT_BLOCK] = {
    0x48, 0xd1, 0xc8,            /* ror rax, 1 */
    0x72, 0x03,                  /* jc +3 */
    0x0f, 0x1f, 0x00,            /* nop */
    0x48, 0xff, 0xc2,            /* inc rdx */
    0x0f, 0x1f, 0x44, 0x00, 0x00 /* nop */
  };
  static const uint8_t first[EVICT_BLOCK] = {
    0x0f, 0x31,             /* rdtsc */
    0x48, 0x69, 0xc0, 0xb5, /* imul rax, rax, 0x3779b9b5 */
    0xb9, 0x79, 0x37, 0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00 /* nop */
  };
  uint8_t *code = (uint8_t *)mmap(NULL, EVICT_CODE, PROT_READ | PROT_WRITE | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  size_t i;
  evict_data = (uint8_t *)mmap(NULL, EVICT_DATA, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (code == (uint8_t *)MAP_FAILED || evict_data == (uint8_t *)MAP_FAILED) die("mmap");
  memcpy(code, first, EVICT_BLOCK);
  for (i = EVICT_BLOCK; i + EVICT_BLOCK < EVICT_CODE; i += EVICT_BLOCK)
    memcpy(code + i, block, EVICT_BLOCK);
  code[i] = 0xc3; /* ret */
  memcpy(&evict_code, &code, sizeof(code));
}

static void evict(void)
{
  size_t i;
  if (!is_cold) return;
  for (i = 0; i < EVICT_DATA; i += CACHE_LINE) evict_data[i]++;
  evict_code();
}

/* -- Single steps ---------------------------------------------------------------- */

static int is_stepped;

/* Tell the parent process that the handler begins, or has ended. */
static void step_mark(void)
{
  if (is_stepped) __asm__ volatile("int3");
}

/* Single-step a child process. Write the addresses of all instructions between two marks,
** and a line "end" after each pair.
*/
static void step_child(const char *path)
{
  struct user_regs_struct regs;
  FILE *out = fopen(path, "w");
  int status, inside = 0;
  pid_t pid = fork();
  if (!out || pid < 0) die(path);
  if (pid == 0) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) die("ptrace");
    is_stepped = 1;
    return;
  }
  while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
    int signo = WSTOPSIG(status);
    siginfo_t why;
    if (signo == SIGTRAP) {
      if (ptrace(PTRACE_GETSIGINFO, pid, NULL, &why) != 0 ||
	  ptrace(PTRACE_GETREGS, pid, NULL, &regs) != 0)
	die("ptrace");
      if (why.si_code == SI_KERNEL) { /* A mark, not a step. */
	if (inside) fprintf(out, "end\n");
	inside = !inside;
      } else if (inside) {
	fprintf(out, "%llx\n", (unsigned long long)regs.rip);
      }
      signo = 0;
    }
    if (ptrace(inside ? PTRACE_SINGLESTEP : PTRACE_CONT, pid, NULL, signo) != 0)
      die("ptrace");
  }
  if (fclose(out) != 0) die(path);
  exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* -- The handler ------------------------------------------------------------- */

/* State for the parts, like that of a session. */
static struct {
  global_State *g;
  SafeLoad peek;
  HostWalk host;
  HostMemoLists host_memo;
  CfiMore host_rows;
  LuaWalk lua;
  FrameList host_frames, lua_frames;
  FuncTab funcs;
} own;

static struct sigaction session_sa; /* Sysprof's handler. */
static siginfo_t tick_info;         /* Its signal. */
static volatile int have_tick, replay, leaf;

static size_t drop(const void **data, size_t len, void *ctx)
{
  (void)data;
  (void)ctx;
  return len;
}

static int stopped(void *ctx, uint8_t *buf)
{
  (void)ctx;
  (void)buf;
  return 0;
}

static uintptr_t stack_lo, stack_hi; /* Of this thread. */

static void find_stack(void)
{
  pthread_attr_t attr;
  void *addr;
  size_t size;
  if (pthread_getattr_np(pthread_self(), &attr) != 0 ||
      pthread_attr_getstack(&attr, &addr, &size) != 0)
    die("pthread_getattr_np");
  stack_lo = (uintptr_t)addr;
  stack_hi = stack_lo + size;
  pthread_attr_destroy(&attr);
}

static void own_init(lua_State *L)
{
  own.g = G(L);
  own.host.pk = own.lua.in.pk = &own.peek;
  own.host.g = own.lua.in.g = own.g;
  own.host.frames = &own.host_frames;
  own.host.memo.lists = &own.host_memo;
  own.host.cfi.more = &own.host_rows;
  own.host.few_vm_frames = leaf;
  own.host.stack_lo = stack_lo;
  own.host.stack_hi = stack_hi;
  own.lua.in.hs = &own.host;
  own.lua.funcs = &own.funcs;
  own.lua.frames = &own.lua_frames;
  own.lua.memo.least = LUAMEMO_LEAST;
  own.lua.leaf_only = leaf;
}

static void measure_parts(ucontext_t *uc)
{
  WalkRegs regs;
  Meter m;
  lj_walkregs_interrupted(&regs, uc);
  evict();
  meter_begin(&m);
  now_ns(CLOCK_MONOTONIC); /* Seven of eight samples read no other clock. */
  now_ns(CLOCK_MONOTONIC);
  meter_end(&m, PART_CLOCKS);
  lj_framelist_reset(&own.host_frames);
  lj_framelist_reset(&own.lua_frames);
  evict();
  meter_begin(&m);
  lj_safeload_reset(&own.peek);
  lj_hostwalk_walk(&own.host, &regs);
  meter_end(&m, PART_HOST);
  evict();
  meter_begin(&m);
  lj_luawalk_walk(&own.lua, &regs);
  meter_end(&m, PART_LUA);
  lj_framelist_finish(&own.host_frames);
  lj_framelist_finish(&own.lua_frames);
  scene.host = own.host_frames.len;
  scene.lua = own.lua_frames.len;
  if (own.host.broken >= 0 || own.lua.broken >= 0) scene.broken++;
}

/* In place of lj_ossignal_isentry: the kernel calls, not a handler of the program. In that
** case, sysprof's handler would set the mask twice.
*/
int __wrap_lj_ossignal_isentry(const void *return_addr);
int __wrap_lj_ossignal_isentry(const void *return_addr)
{
  (void)return_addr;
  return 1;
}

/* A single-stepped handler seems to take milliseconds. It must not rest for that. */
int __real_lj_throttle_enter(uint64_t now_ns);
int __wrap_lj_throttle_enter(uint64_t now_ns);
int __wrap_lj_throttle_enter(uint64_t now_ns)
{
  return __real_lj_throttle_enter(now_ns) || is_stepped;
}

/* The bench's signals come at any time. As in a thread that runs all the time, a period has
** passed since the last one: then one of eight signals reads the CPU time.
*/
uint64_t __real_lj_clockops_cpu(Clock *c, uint64_t ticked_ns);
uint64_t __wrap_lj_clockops_cpu(Clock *c, uint64_t ticked_ns);
uint64_t __wrap_lj_clockops_cpu(Clock *c, uint64_t ticked_ns)
{
  if (c->read_ns) c->ticked_ns = c->begin_ns - c->read_ns - ticked_ns;
  __real_lj_clockops_cpu(c, ticked_ns);
  return c->last + ticked_ns;
}

static void measure(siginfo_t *info, ucontext_t *uc)
{
  Meter m;
  if (scene.n >= TICKS_MAX) return;
  evict();
  step_mark();
  meter_begin(&m);
  session_sa.sa_sigaction(SIGPROF, info, uc);
  meter_end(&m, PART_WHOLE);
  step_mark();
  if (!is_stepped) measure_parts(uc);
  scene.n++;
}

static void handler(int sig, siginfo_t *info, void *uc)
{
  (void)sig;
  if (replay) {
    measure(&tick_info, (ucontext_t *)uc);
  } else if (!have_tick) {
    tick_info = *info;
    have_tick = 1;
  }
}

/* -- Scenes ------------------------------------------------------------------ */

static lua_State *L;
static int ticks; /* Signals in each scene. */

static void take_ticks(void)
{
  int pid = (int)getpid(), i;
  for (i = 0; i < 2 * ticks; i++) {
    count_ins = i & 1;
    if (count_ins && ins_fd < 0) continue;
    replay = 1;
    if (syscall(SYS_tgkill, pid, pid, SIGPROF) != 0) die("tgkill");
    replay = 0;
    if (!count_ins && ins_fd >= 0) scene.n--; /* The next tick adds the instructions. */
  }
}

static int l_tick(lua_State *l)
{
  (void)l;
  take_ticks();
  return 0;
}

/* Stacks of different functions, like in a program, instead of a recursion: each function
** has its own prototype and its own addresses.
*/
#define D10(m, n) \
  m(n##0) m(n##1) m(n##2) m(n##3) m(n##4) m(n##5) m(n##6) m(n##7) m(n##8) m(n##9)
static int (*const host_funcs[])(int left, void (*leaf_func)(void));
#define HOST_FUNC(n) \
  __attribute__((noinline)) static int host##n(int left, void (*f)(void)) \
  { \
    char room[16 + (n % 7) * 8]; \
    __asm__ volatile("" : : "r"(room) : "memory"); \
    if (left <= 0) { \
      f(); \
      return n; \
    } \
    return host_funcs[left % 100](left - 1, f) + n; \
  }
#define HOST_ROW(n) D10(HOST_FUNC, n)
HOST_ROW(1)
HOST_ROW(2)
HOST_ROW(3)
HOST_ROW(4)
HOST_ROW(5)
HOST_ROW(6)
HOST_ROW(7)
HOST_ROW(8)
HOST_ROW(9)
HOST_ROW(10)
#define HOST_NAME(n) host##n,
#define NAME_ROW(n)  D10(HOST_NAME, n)
static int (*const host_funcs[])(int left, void (*leaf_func)(void)) = {
  NAME_ROW(1) NAME_ROW(2) NAME_ROW(3) NAME_ROW(4) NAME_ROW(5) NAME_ROW(6) NAME_ROW(7)
    NAME_ROW(8) NAME_ROW(9) NAME_ROW(10)
};

static const char *const lua_funcs =
  "local tick = ...\n"
  "local funcs = {}\n"
  "for m = 1, 10 do\n"
  "  local text = { 'local tick, funcs = ...\\n' }\n"
  "  for i = 10*m-9, 10*m do\n"
  "    text[#text+1] = ('function funcs.work%d(f, n, s)\\n' ..\n"
  "      '  local t, u = { n, s }, #s + n\\n' ..\n"
  "      '  if n <= 1 then tick() return u end\\n' ..\n"
  "      '  local r = f.work%d(f, n-1, s) + u\\n' ..\n"
  "      '  return r + t[1]\\nend\\n'):format(i, i-1)\n"
  "  end\n"
  "  assert(loadstring(table.concat(text), '@module' .. m .. '.lua'))(tick, funcs)\n"
  "end\n"
  "return function(n) return funcs['work' .. n](funcs, n, 'text') end\n";

/* Frames around those of a scene: pseudo frames on the Lua side; on the host side main, its
** callers, and the VM's C frames.
*/
#define LUA_LEAST  2
#define HOST_LEAST 10

static int lua_depth;

static void call_lua(void)
{
  lua_getglobal(L, "scene");
  lua_pushinteger(L, lua_depth);
  if (lua_pcall(L, 1, 0, 0) != 0) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    exit(1);
  }
}

/* Print the medians. The rest is the whole less its parts. */
static void print_medians(uint32_t v[PART__MAX][TICKS_MAX])
{
  uint32_t i, m, rest = 0;
  for (i = 0; i < PART__MAX; i++) {
    m = median(v[i], scene.n);
    rest = i == PART_WHOLE ? m : rest > m ? rest - m : 0;
    printf(" %7u", m);
  }
  printf(" %7u", rest);
}

static void print_row(const char *name)
{
  printf("%-10s %4u %5u", name, scene.lua, scene.host);
  print_medians(scene.ns);
  if (ins_fd >= 0) {
    printf("  |");
    print_medians(scene.ins);
  }
  printf("%s\n", scene.broken ? "  BROKEN" : "");
  fflush(stdout);
}

static void run_scene(const char *name, int lua, int host)
{
  scene.n = scene.broken = 0;
  lua_depth = lua - LUA_LEAST;
  host_funcs[host % 100](host - HOST_LEAST, call_lua);
  if (name) print_row(name);
}

static void session_start(int mode)
{
  static uint8_t buf[BUF_SIZE];
  struct luam_Sysprof_Options opt;
  struct sigaction sa;
  memset(&opt, 0, sizeof(opt));
  opt.mode = (uint8_t)mode;
  opt.interval = 200; /* sysprof rests after a sample of half the interval. */
  opt.buf = buf;
  opt.len = sizeof(buf);
  if (luaM_sysprof_set_writer(drop) || luaM_sysprof_set_on_stop(stopped) ||
      luaM_sysprof_set_backtracer(NULL))
    die("set");
  /* The clock of 1,000 samples a second on most machines. */
  opt.clocks = "task-clock";
  opt.signo = SIGPROF;
  if (luaM_sysprof_start(L, &opt)) {
    opt.clocks = NULL;
    if (luaM_sysprof_start(L, &opt)) die("start");
  }
  leaf = (mode == LUAM_SYSPROF_LEAF);
  memset(&sa, 0, sizeof(sa));
  sa.sa_sigaction = handler;
  sa.sa_flags = SA_SIGINFO | SA_RESTART;
  if (sigaction(SIGPROF, &sa, &session_sa) != 0) die("sigaction");
  have_tick = 0;
  while (!have_tick) getppid();
  memset(&own, 0, sizeof(own));
  own_init(L);
}

static void session_stop(void)
{
  if (sigaction(SIGPROF, &session_sa, NULL) != 0 || luaM_sysprof_stop(L)) die("stop");
}

int main(int argc, char **argv)
{
  static const struct {
    int lua, host;
  } depth[] = { { 3, 10 },  { 20, 10 }, { 100, 10 }, { 3, 20 },
		{ 3, 100 }, { 20, 20 }, { 100, 100 } };
  size_t i;
  int mode;
  const char *how = argc > 2 ? argv[2] : "";
  ticks = argc > 1 ? atoi(argv[1]) : 2000;
  if (ticks < 10 || ticks > TICKS_MAX / 2) {
    fprintf(stderr, "handler: number of signals from 10 to %d expected, got %s\n",
	    TICKS_MAX / 2, argv[1]);
    return 1;
  }
  is_cold = strcmp(how, "cold") == 0;
  if (is_cold) evict_init();
  if (argc > 3 && strcmp(how, "steps") == 0) step_child(argv[3]);
  L = luaL_newstate();
  luaL_openlibs(L);
  find_stack();
  if (!is_cold && !is_stepped) ins_open();
  meter_calibrate();
  if (luaL_loadstring(L, lua_funcs)) die("load");
  lua_pushcfunction(L, l_tick);
  lua_call(L, 1, 1);
  lua_setglobal(L, "scene");
  if (luaL_dostring(L, "jit.off()")) die("jit");
  if (is_stepped) {
    session_start(LUAM_SYSPROF_CALLGRAPH);
    run_scene(NULL, 20, 20);
    session_stop();
    return 0;
  }
  printf("median of %d signals, %s%s\n", ticks, is_cold ? "cold caches" : "warm caches",
	 ins_fd < 0 && !is_cold ? "; no counter of instructions on this machine" : "");
  printf("%-10s %4s %5s %39s  | %39s\n", "", "", "", "nanoseconds", "instructions");
  printf("%-10s %4s %5s %7s %7s %7s %7s %7s  | %7s %7s %7s %7s %7s\n", "mode", "Lua",
	 "host", "whole", "clocks", "host", "Lua", "rest", "whole", "clocks", "host", "Lua",
	 "rest");
  for (mode = LUAM_SYSPROF_CALLGRAPH; mode >= LUAM_SYSPROF_LEAF; mode--) {
    session_start(mode);
    for (i = 0; i < sizeof(depth) / sizeof(depth[0]); i++)
      run_scene(leaf ? "leaf" : "callgraph", depth[i].lua, depth[i].host);
    session_stop();
  }
  lua_close(L);
  return 0;
}
