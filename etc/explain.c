/*
** Explanation of one broken sample. Built and run by etc/explain; its --help describes the
** output.
**
** The script runs on the main thread. A timer interrupts it, and the handler walks both
** stacks. By the processor's trap flag, it walks again at each of the next instructions. At
** the first broken stack the handler tries each candidate once more, and wakes the printing
** thread. It never returns, so the stacks stay the same while that thread prints.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "lj_obj.h"
#include "lj_dispatch.h"
#include "lj_debug.h"
#include "profile/lua/lj_jitfind.h"
#include "profile/lua/lj_luawalk.h"
#include "profile/session/lj_vmprofile.h"

#define SIG_TICK  (SIGRTMIN + 7)
#define TRAP_FLAG 0x100 /* TF of EFLAGS. */
#define AROUND    32    /* Bytes printed before the PC, and from it on. */

typedef struct Name {
  const char *name, *text;
} Name;

static const Name groups[] = {
#include "groups.inc"
};
static const Name checks[] = {
#include "checks.inc"
};
#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static int find_name(const Name *names, int n, const char *name)
{
  int i;
  for (i = 0; i < n; i++)
    if (!strcmp(names[i].name, name)) return i;
  return -1;
}

/* -- The walks ----------------------------------------------------------------- */

/* One attempt to walk from a candidate. */
typedef struct Attempt {
  Candidate c;
  int no_lua_frame;
  int res;        /* Of lj_luawalk_try. */
  int refused;    /* SPF_REFUSED_*, -1 if it is valid. */
  uint32_t steps; /* Frames that were valid. */
} Attempt;

static lua_State *L;
static SafeLoad pk;
static HostWalk hs;
static LuaWalk ls;
static FuncTab funcs;
static FrameList host_frames, lua_frames;

static struct {
  int group, code; /* Wanted reason, -1 for any. */
  long steps;      /* Instructions to look at after each tick. */
} want;

static struct {
  volatile int on;    /* The script runs. */
  volatile long left; /* Instructions that are left to look at. */
  long long samples;
  sem_t found;
  /* Of the broken sample. */
  ucontext_t uc;
  int lua_side, group, code;
  int nattempt;
  Attempt attempt[2 * LUATOP_CANDIDATES];
} run;

static int is_wanted(int group, int code)
{
  return (want.group < 0 || want.group == group) && (want.code < 0 || want.code == code);
}

static void try_candidates(void)
{
  lua_State *walked;
  LuaTop top;
  LuaArea a;
  int i, bare;
  if (!lj_luawalk_begin(&ls, &walked, &a)) return;
  lj_luatop_find(&top, &ls.in, &a);
  for (i = 0; i < top.n; i++)
    for (bare = 0; bare <= 1; bare++) {
      Attempt *at = &run.attempt[run.nattempt++];
      ls.furthest = 0;
      ls.refused = -1;
      at->c = top.c[i];
      at->no_lua_frame = bare;
      at->res = lj_luawalk_try(&ls, walked, &top, i, bare);
      at->refused = at->res > 0 && ls.broken < 0 ? -1 : ls.refused;
      at->steps = at->res > 0 ? ls.passed : ls.furthest ? ls.furthest - 1 : 0;
      if (at->res >= 0) break;
    }
}

/* Record the broken stack. This thread stops here, so the stacks stay the same. */
static void found(const ucontext_t *uc, int lua_side, int group, int code)
{
  run.on = 0;
  run.uc = *uc;
  run.lua_side = lua_side;
  run.group = group;
  run.code = code;
  lj_framelist_finish(&host_frames);
  if (lua_side) try_candidates();
  sem_post(&run.found);
  for (;;) pause();
}

/* Walk both stacks, like lj_sample.c. */
static void look(const ucontext_t *uc)
{
  const Profile *p = G2GG(G(L))->sysprof;
  WalkRegs regs;
  int group, code;
  run.samples++;
  lj_walkregs_interrupted(&regs, uc);
  lj_safeload_reset(&pk);
  lj_framelist_reset(&host_frames);
  lj_hostwalk_walk(&hs, &regs);
  ls.in.moving = p ? p->gate.moving : NULL;
  ls.in.moving_from = p ? p->gate.moving_from : 0;
  ls.in.unmaps = p ? p->gate.unmaps : 0;
  lj_luawalk_walk(&ls, &regs);
  group = ls.broken;
  code = ls.refused;
  if (group < 0 && hs.broken < 0 && ls.nbounds != hs.nvm) {
    group = SPF_BROKEN_JOIN;
    code = ls.nbounds < hs.nvm ? SPF_REFUSED_LUA_FEWER : SPF_REFUSED_HOST_FEWER;
  }
  if (group >= 0 && ls.in.moving) {
    code = group != SPF_BROKEN_CHAIN ? SPF_REFUSED_MOVE_OTHER
	   : ls.in.moving_to         ? SPF_REFUSED_MOVE_INVALID
				     : SPF_REFUSED_MOVE_NO_COPY;
    group = SPF_BROKEN_STACK_MOVE;
  }
  if (group >= 0 && is_wanted(group, code)) found(uc, 1, group, code);
  if (hs.broken >= 0 && is_wanted(hs.broken, hs.refused))
    found(uc, 0, hs.broken, hs.refused);
}

static void handler(int sig, siginfo_t *info, void *context)
{
  ucontext_t *uc = (ucontext_t *)context;
  (void)info;
  if (sig != SIGTRAP) run.left = want.steps;
  else if (run.left > 0) run.left--;
  if (run.on) look(uc);
  if (run.on && run.left > 0) uc->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
  else uc->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

/* -- Names of addresses ---------------------------------------------------------- */

typedef struct Symbol {
  uintptr_t addr;
  char name[64];
} Symbol;

static Symbol *symbols;
static size_t nsymbols;
extern char __executable_start, etext;

static int by_addr(const void *a, const void *b)
{
  uintptr_t x = ((const Symbol *)a)->addr, y = ((const Symbol *)b)->addr;
  return x < y ? -1 : x > y;
}

static void read_symbols(const char *path)
{
  FILE *f = fopen(path, "r");
  char line[4096], type;
  unsigned long addr;
  while (f && fgets(line, sizeof(line), f)) {
    Symbol s;
    if (sscanf(line, "%lx %c %63s", &addr, &type, s.name) != 3) continue;
    s.addr = addr;
    if (nsymbols % 1024 == 0)
      symbols = (Symbol *)realloc(symbols, (nsymbols + 1024) * sizeof(Symbol));
    if (!symbols) break;
    symbols[nsymbols++] = s;
  }
  if (f) fclose(f);
  if (symbols) qsort(symbols, nsymbols, sizeof(Symbol), by_addr);
}

static const char *name_of(uintptr_t addr)
{
  static char buf[256];
  Dl_info di;
  size_t lo = 0, hi = nsymbols;
#if LJ_HASJIT
  JitFind at;
  if (lj_jitfind_code(G(L), addr, &at)) {
    snprintf(buf, sizeof(buf), "trace %d%s", (int)at.number, at.in_loop ? ", loop" : "");
    return buf;
  }
#endif
  if (addr >= (uintptr_t)&__executable_start && addr < (uintptr_t)&etext) {
    while (lo < hi) {
      size_t mid = (lo + hi) / 2;
      if (symbols[mid].addr <= addr) lo = mid + 1;
      else hi = mid;
    }
    if (lo > 0) {
      snprintf(buf, sizeof(buf), "%s+%#lx%s", symbols[lo - 1].name,
	       (unsigned long)(addr - symbols[lo - 1].addr),
	       lj_hostwalk_isvm(addr) ? ", assembler VM" : "");
      return buf;
    }
  }
  if (dladdr((void *)addr, &di) && di.dli_fname) {
    if (di.dli_sname)
      snprintf(buf, sizeof(buf), "%s+%#lx, %s", di.dli_sname,
	       (unsigned long)(addr - (uintptr_t)di.dli_saddr), di.dli_fname);
    else
      snprintf(buf, sizeof(buf), "%s+%#lx", di.dli_fname,
	       (unsigned long)(addr - (uintptr_t)di.dli_fbase));
    return buf;
  }
  return "unknown code";
}

/* -- Printing ------------------------------------------------------------------- */

static void print_bytes(uintptr_t pc)
{
  uintptr_t addr = (pc & ~(uintptr_t)15) - AROUND, end = addr + 2 * AROUND + 16;
  for (; addr < end; addr++) {
    if ((addr & 15) == 0) printf("  %#014lx ", (unsigned long)addr);
    if (!lj_safeload_ok(&pk, (void *)addr, 1)) printf(" -- ");
    else printf(addr == pc ? "[%02x]" : " %02x ", *(const uint8_t *)addr);
    if ((addr & 15) == 15) printf("\n");
  }
}

/* Print the function in a frame, if it is readable. */
static void print_func(const LuaArea *a, uintptr_t f, uintptr_t pc)
{
  FrameFunc ff;
  if (!lj_luaframe_has(a, f)) {
    printf("outside the Lua stack");
  } else if (!lj_luaframe_func(a, f, &ff)) {
    printf("slot %ld, no function", (long)(f - a->bot) / 8);
  } else {
    printf("slot %ld, ", (long)(f - a->bot) / 8);
    if (!ff.fn) {
      printf("no function but the coroutine");
    } else if (ff.pt) {
      const GCstr *name = proto_chunkname(ff.pt);
      int known = lj_safeload_ok(&pk, name, sizeof(GCstr)) &&
		  lj_safeload_ok(&pk, strdata(name), 1);
      printf("function <%.60s:%d>", known ? strdata(name) : "?", (int)ff.pt->firstline);
      if (lj_luaframe_pcinproto(ff.pt, pc) && proto_lineinfo(ff.pt))
	printf(" at line %d",
	       (int)lj_debug_line(ff.pt, proto_bcpos(ff.pt, (const BCIns *)pc) - 1));
      else if (pc) printf(", the PC is outside of it");
    } else if (ff.fn->c.ffid > FF_C) {
      printf("builtin %d", (int)ff.fn->c.ffid);
    } else {
      printf("C function %s", name_of((uintptr_t)ff.fn->c.f));
    }
  }
}

static void print_candidates(void)
{
  lua_State *walked;
  LuaArea a;
  int i, n = 0, known = lj_luawalk_begin(&ls, &walked, &a);
  printf("candidates for the top Lua frame, best first");
  if (!known) {
    printf(": none\n");
    return;
  }
  printf(" (stack of %ld slots, L->base is at slot %ld%s)\n", (long)(a.end - a.bot) / 8,
	 (long)((uintptr_t)walked->base - 8 - a.bot) / 8,
	 ls.in.moving ? ", the VM moves a stack" : "");
  for (i = 0; i < run.nattempt; i++) {
    const Attempt *at = &run.attempt[i];
    if (at->no_lua_frame) {
      printf("     and without a Lua frame on the innermost VM frame\n");
    } else {
      printf("  %d. frame %#lx: ", ++n, (unsigned long)at->c.frame);
      print_func(&a, at->c.frame, at->c.pc);
      if (at->c.pc) printf(", PC %#lx", (unsigned long)at->c.pc);
      printf("\n");
    }
    printf("     %u step%s, then ", at->steps, at->steps == 1 ? "" : "s");
    if (at->refused < 0) printf("valid to the bottom\n");
    else printf("%s: %s\n", checks[at->refused].name, checks[at->refused].text);
  }
}

static void print_host(void)
{
  uint32_t i;
  printf("C stack\n");
  for (i = 0; i < host_frames.len && i < 24; i++) {
    FrameWord w = host_frames.list[i];
    switch (frame_kind(w)) {
    case SPF_FRAME_VM: printf("  VM frame\n"); break;
    case SPF_FRAME_BROKEN:
      printf("  frames are missing: %s\n", groups[frame_payload(w)].text);
      break;
    case SPF_FRAME_HOST:
      printf("  %#lx %s\n", (unsigned long)frame_payload(w),
	     name_of((uintptr_t)frame_payload(w)));
      break;
    default: printf("  frames left out\n"); break;
    }
  }
  if (i < host_frames.len) printf("  and %u more\n", host_frames.len - i);
}

static const char *state_of(int32_t st)
{
  static const char *const names[] = {
    "INTERP", "C", "GC", "EXIT", "RECORD", "OPT", "ASM"
  };
  static char buf[32];
  if (st < 0 && ~st < (int32_t)COUNT(names)) return names[~st];
  snprintf(buf, sizeof(buf), "trace %d", (int)st);
  return buf;
}

static void print_all(void)
{
  static const char *const places[] = { "interpreter or C code", "trace", "trace exit" };
  const greg_t *r = run.uc.uc_mcontext.gregs;
  uintptr_t pc = (uintptr_t)r[REG_RIP];
  uint32_t i;
  printf("sample %lld: the %s stack is broken\n", run.samples,
	 run.lua_side ? "Lua" : "host");
  printf("  group %s: %s\n", groups[run.group].name, groups[run.group].text);
  printf("  check %s: %s\n", checks[run.code].name, checks[run.code].text);
  printf("interrupted at %#lx, %s; the VM's state is %s\n", (unsigned long)pc, name_of(pc),
	 state_of(G(L)->vmstate));
  print_bytes(pc);
  printf("registers\n  BASE rdx %#lx, PC rbx %#lx, RB rbp %#lx, rsp %#lx\n",
	 (unsigned long)r[REG_RDX], (unsigned long)r[REG_RBX], (unsigned long)r[REG_RBP],
	 (unsigned long)r[REG_RSP]);
  if (run.lua_side) print_candidates();
  printf("VM frames on the C stack: %u%s\n", hs.nvm, hs.nvm ? ", the innermost first" : "");
  for (i = 0; i < hs.nvm && i < 8; i++)
    printf("  %#lx, coroutine %#lx, left from %s\n", (unsigned long)hs.vm[i].cf,
	   (unsigned long)(uintptr_t)hs.vm[i].L, places[hs.vm[i].place]);
  print_host();
  fflush(stdout);
}

static long seconds;

/* The printing thread. Ends the program. */
static void *printer(void *arg)
{
  struct timespec ts;
  int res;
  (void)arg;
  clock_gettime(CLOCK_REALTIME, &ts);
  ts.tv_sec += seconds;
  while ((res = sem_timedwait(&run.found, &ts)) != 0 && errno == EINTR) continue;
  if (res == 0) {
    print_all();
    _exit(0);
  }
  run.on = 0;
  fprintf(stderr, "explain: no such sample in %ld s and %lld walks\n", seconds,
	  run.samples);
  _exit(1);
}

/* -- Running the script ------------------------------------------------------------ */

static void die(const char *what)
{
  perror(what);
  exit(2);
}

static void open_walks(void)
{
  pthread_attr_t attr;
  void *stack;
  size_t size;
  if (!lj_hostwalk_warmup() || pthread_getattr_np(pthread_self(), &attr) != 0 ||
      pthread_attr_getstack(&attr, &stack, &size) != 0)
    die("explain: warmup");
  pthread_attr_destroy(&attr);
  hs.pk = ls.in.pk = &pk;
  hs.g = ls.in.g = G(L);
  hs.frames = &host_frames;
  hs.stack_lo = (uintptr_t)stack;
  hs.stack_hi = hs.stack_lo + size;
  ls.in.hs = &hs;
  ls.funcs = &funcs;
  ls.frames = &lua_frames;
  ls.memo.least = ~(uint32_t)0; /* No walk reuses steps of another one. */
}

static void start_ticks(long rate)
{
  struct sigaction sa;
  struct sigevent ev;
  struct itimerspec its;
  timer_t timer;
  memset(&sa, 0, sizeof(sa));
  sa.sa_sigaction = handler;
  sa.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaddset(&sa.sa_mask, SIG_TICK);
  if (sigaction(SIG_TICK, &sa, NULL) || sigaction(SIGTRAP, &sa, NULL)) die("sigaction");
  memset(&ev, 0, sizeof(ev));
  ev.sigev_notify = SIGEV_THREAD_ID;
  ev.sigev_signo = SIG_TICK;
  ev._sigev_un._tid = (pid_t)syscall(SYS_gettid);
  if (timer_create(CLOCK_THREAD_CPUTIME_ID, &ev, &timer)) die("timer_create");
  its.it_value.tv_sec = its.it_interval.tv_sec = rate > 1 ? 0 : 1;
  its.it_value.tv_nsec = its.it_interval.tv_nsec = rate > 1 ? 1000000000 / rate : 0;
  if (timer_settime(timer, 0, &its, NULL)) die("timer_settime");
}

int main(int argc, char **argv)
{
  pthread_t thread;
  sigset_t set;
  int i, status;
  if (argc < 7) return 2;
  read_symbols(argv[1]);
  want.group = find_name(groups, COUNT(groups), argv[2]);
  want.code = find_name(checks, COUNT(checks), argv[2]);
  want.steps = atol(argv[4]);
  seconds = atol(argv[5]);
  if ((L = luaL_newstate()) == NULL || sem_init(&run.found, 0, 0)) die("explain");
  luaL_openlibs(L);
  open_walks();
  /* With this profile without samples, the VM announces the stacks that it moves. */
  if (luaL_dostring(L, "assert(misc.sysprof.start { mode = 'D', interval = 1e6 })")) {
    fprintf(stderr, "explain: %s\n", lua_tostring(L, -1));
    return 2;
  }
  lua_createtable(L, argc - 7, 1);
  for (i = 6; i < argc; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i - 6);
  }
  lua_setglobal(L, "arg");
  if (luaL_loadfile(L, argv[6])) {
    fprintf(stderr, "explain: %s\n", lua_tostring(L, -1));
    return 1;
  }
  for (i = 7; i < argc; i++) lua_pushstring(L, argv[i]);
  sigfillset(&set);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  if (pthread_create(&thread, NULL, printer, NULL)) die("pthread_create");
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
  run.on = 1;
  start_ticks(atol(argv[3]));
  status = lua_pcall(L, argc - 7, 0, 0);
  run.on = 0;
  if (status) {
    fprintf(stderr, "explain: %s\n", lua_tostring(L, -1));
    _exit(1);
  }
  fprintf(stderr, "explain: the script has ended without such a sample in %lld walks\n",
	  run.samples);
  fflush(stdout);
  _exit(1);
}
