/*
** Sysprof: sessions, from start to stop, and the sample itself.
**
** A session belongs to one VM and one thread. Start and stop run outside of
** the handler, under a lock; session_tick and what it calls run in the handler
** and touch only their own session:
**
**   start: memory -> handler -> stream -> timer    (ticks may come now)
**   stop:  timer -> stream -> on_stop -> memory    (no tick after timer)
*/

#define lj_sysprof_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* For REG_RIP. */
#endif
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

#include "lj_obj.h"
#include "luajit.h"
#include "profile/lj_clock.h"
#include "profile/lj_funcname.h"
#include "profile/lj_hstack.h"
#include "profile/lj_lstack.h"
#include "profile/lj_stream.h"
#include "profile/lj_sysprof.h"

#if !(LJ_TARGET_X64 && LJ_TARGET_LINUX && LJ_FR2)
#error "sysprof needs Linux on x86-64 and a GC64 build of LuaJIT"
#endif

/* Bounds of the sampling interval. */
#define INTERVAL_NS_MIN		((uint64_t)10*1000)		/* 10 us. */
#define INTERVAL_NS_MAX		((uint64_t)86400*1000000000u)	/* A day. */

#define VMS_MAX		64

typedef struct Session {
  /* Set before the start. */
  global_State *g;		/* The VM. */
  int mode;			/* LUAM_SYSPROF_*. */
  pid_t pid;			/* Process that started it. */
  uint64_t start_ns;		/* CLOCK_MONOTONIC at the start. */
  SysprofCallbacks cb;
  void *ctx;			/* For the callbacks. */
  Clock clock;
  /* Shared: set by the VM, read in the handler. */
  lua_State * volatile moving;	/* Its Lua stack is being moved, */
  volatile uintptr_t moving_from;  /* from this address. */
  /* Handler only, while the timer runs. */
  volatile int in_handler;	/* Guards against a nested tick. */
  uint64_t rest_until_ns;	/* No sample is taken before. */
  uint64_t cpu_us;		/* Thread's CPU time at the last sample. */
  uintptr_t leaf_pc;		/* Interrupted address, for backtracers. */
  uint64_t counters[SPF_COUNTER__MAX];
  Peek peek;
  HostStack host;
  LuaStack lua;
  Frames host_frames, lua_frames;
  Symtab symtab;
  Stream stream;
} Session;

/* A VM that is being profiled, or was. Under the lock, but for the sessions'
** own fields.
*/
typedef struct ProfiledVM {
  global_State *g;			/* Key, NULL if free. */
  Session *s;				/* NULL if stopped. */
  struct luam_Sysprof_Counters last;	/* Counters at the stop. */
} ProfiledVM;

static ProfiledVM vms[VMS_MAX];
static ProfiledVM *vm_latest;		/* Started last. */
static volatile int nsessions;		/* Running sessions of the process. */
static pthread_mutex_t session_lock =	/* A callback may use the API. */
  PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static uint64_t clock_ns(clockid_t id)
{
  struct timespec ts;
  clock_gettime(id, &ts);
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* -- Custom backtracer ------------------------------------------------------- */

/* The session whose backtracer runs on this thread. */
static __thread Session *backtraced
  __attribute__((tls_model("initial-exec")));

/* Takes one frame. Frames of the handler end at the interrupted address; if
** they do not, the backtracer has its own idea of where to start.
*/
static void *backtrace_frame(int frame_no, void *addr)
{
  Session *s = backtraced;
  uintptr_t pc = (uintptr_t)addr;
  Frames *fr = &s->host_frames;
  if (frame_no < 1 || !addr) return NULL;
  if (pc == s->leaf_pc && s->leaf_pc != 0) {
    lj_frames_reset(fr);
    s->leaf_pc = 0;  /* Only the first one. */
  } else if (fr->n > 0) {
    pc--;  /* A return address. */
  }
  if (lj_hstack_isvm(pc))
    lj_frames_push(fr, frame_word(SPF_FRAME_VM, 0));
  else
    lj_frames_push(fr, frame_word(SPF_FRAME_HOST, pc));
  return addr;
}

static void backtrace(Session *s, const ucontext_t *uc)
{
  Session *outer = backtraced;
  s->leaf_pc = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
  lj_frames_reset(&s->host_frames);
  backtraced = s;
  s->cb.backtracer(backtrace_frame);
  backtraced = outer;
}

/* -- Sampling (in the handler) ----------------------------------------------- */

static int sample_state(const Session *s)
{
  int32_t st = s->g->vmstate;
  if (st >= 0) return SPF_VMST_TRACE;
  switch (~st) {
  case LJ_VMST_GC: return SPF_VMST_GC;
  case LJ_VMST_EXIT: return SPF_VMST_EXIT;
  case LJ_VMST_RECORD: return SPF_VMST_RECORD;
  case LJ_VMST_OPT: return SPF_VMST_OPT;
  case LJ_VMST_ASM: return SPF_VMST_ASM;
  default: break;
  }
  switch (s->lua.top) {  /* Interpreter or C code: by the top function. */
  case TOP_LUA: return SPF_VMST_LFUNC;
  case TOP_FAST: return SPF_VMST_FFUNC;
  case TOP_C: case TOP_NONE: return SPF_VMST_CFUNC;
  default: return SPF_VMST_INTERP;
  }
}

/* Both sides know the boundaries between C and Lua: compare. */
static void sample_join(Session *s)
{
  uint32_t nvm = s->host.nvm, nbounds = s->lua.nbounds;
  FrameWord broken = frame_word(SPF_FRAME_BROKEN, SPF_BROKEN_JOIN);
  if (nvm == nbounds || s->host.broken >= 0 || s->lua.broken >= 0) return;
  if (nvm > nbounds) {
    s->lua.broken = SPF_BROKEN_JOIN;
    lj_frames_push(&s->lua_frames, broken);
  } else {
    s->host.broken = SPF_BROKEN_JOIN;
    lj_frames_push(&s->host_frames, broken);
  }
}

static void sample_walk(Session *s, ucontext_t *uc)
{
  lj_peek_reset(&s->peek);
  lj_frames_reset(&s->host_frames);
  lj_frames_reset(&s->lua_frames);
  s->lua.moving = s->moving;
  s->lua.moving_from = s->moving_from;
  lj_hstack_walk(&s->host, uc);
  lj_lstack_walk(&s->lua, uc);
  if (s->mode == LUAM_SYSPROF_CALLGRAPH) {
    if (s->cb.backtracer) backtrace(s, uc);
    else sample_join(s);
  } else if (s->mode == LUAM_SYSPROF_LEAF && s->cb.backtracer) {
    backtrace(s, uc);
  }
  if (s->lua.broken >= 0 && s->moving) {
    s->lua.broken = SPF_BROKEN_STACK_MOVE;
    lj_frames_reset(&s->lua_frames);
    lj_frames_push(&s->lua_frames,
		   frame_word(SPF_FRAME_BROKEN, SPF_BROKEN_STACK_MOVE));
  }
  lj_frames_finish(&s->host_frames);
  lj_frames_finish(&s->lua_frames);
  if (s->mode == LUAM_SYSPROF_LEAF) {
    lj_frames_keepleaf(&s->host_frames);
    lj_frames_keepleaf(&s->lua_frames);
  }
}

static void sample_take(Session *s, ucontext_t *uc, uint64_t now_ns)
{
  uint64_t cpu_us = clock_ns(CLOCK_THREAD_CPUTIME_ID) / 1000;
  int state;
  sample_walk(s, uc);
  state = sample_state(s);
  s->counters[state]++;
  if (s->lua.broken >= 0)
    s->counters[SPF_COUNTER_LUA_BROKEN + s->lua.broken]++;
  if (s->mode == LUAM_SYSPROF_DEFAULT) return;
  if (s->host.broken >= 0)
    s->counters[SPF_COUNTER_HOST_BROKEN + s->host.broken]++;
  /* The next sample stands for the time of a lost one, too. */
  if (lj_stream_sample(&s->stream, 0, state, (now_ns - s->start_ns) / 1000,
		       cpu_us - s->cpu_us, &s->lua_frames, &s->host_frames))
    s->cpu_us = cpu_us;
}

static void session_tick(void *owner, int event, int overrun, ucontext_t *uc)
{
  Session *s = (Session *)owner;
  uint64_t begin, spent;
  UNUSED(event);
  if (s->in_handler) {
    s->counters[SPF_COUNTER_LOST_NESTED]++;
    return;
  }
  s->in_handler = 1;
  begin = clock_ns(CLOCK_MONOTONIC);
  if (overrun > 0) s->counters[SPF_COUNTER_OVERRUNS] += (uint64_t)overrun;
  if (begin < s->rest_until_ns) {
    s->counters[SPF_COUNTER_THROTTLED]++;
    s->in_handler = 0;
    return;
  }
  sample_take(s, uc, begin);
  spent = clock_ns(CLOCK_MONOTONIC) - begin;
  s->counters[SPF_COUNTER_HANDLER_NS] += spent;
  if (spent > s->counters[SPF_COUNTER_HANDLER_MAX_NS])
    s->counters[SPF_COUNTER_HANDLER_MAX_NS] = spent;
  /* A sample may take longer than the interval, of a very deep stack or with a
  ** slow writer. Leave the program at least as much time, or it would stand
  ** still. The next sample's weight covers what is left out.
  */
  if (spent > s->clock.spec.period / 2)
    s->rest_until_ns = begin + 2*spent;
  s->in_handler = 0;
}

/* -- Sessions ---------------------------------------------------------------- */

static ProfiledVM *vm_find(global_State *g)
{
  int i;
  for (i = 0; i < VMS_MAX; i++)
    if (vms[i].g == g) return &vms[i];
  return NULL;
}

/* Entry for a VM: its own, a free one, or that of a VM profiled before. */
static ProfiledVM *vm_claim(global_State *g)
{
  ProfiledVM *vm = vm_find(g);
  int i;
  if (!vm) vm = vm_find(NULL);
  for (i = 0; !vm && i < VMS_MAX; i++)
    if (!vms[i].s) vm = &vms[i];
  return vm;
}

static void counters_copy(const uint64_t *n, struct luam_Sysprof_Counters *c)
{
  int i;
  c->vmst_interp = n[SPF_VMST_INTERP];
  c->vmst_lfunc = n[SPF_VMST_LFUNC];
  c->vmst_ffunc = n[SPF_VMST_FFUNC];
  c->vmst_cfunc = n[SPF_VMST_CFUNC];
  c->vmst_gc = n[SPF_VMST_GC];
  c->vmst_exit = n[SPF_VMST_EXIT];
  c->vmst_record = n[SPF_VMST_RECORD];
  c->vmst_opt = n[SPF_VMST_OPT];
  c->vmst_asm = n[SPF_VMST_ASM];
  c->vmst_trace = n[SPF_VMST_TRACE];
  c->samples = 0;
  for (i = 0; i < SPF_VMST__MAX; i++)
    c->samples += n[i];
}

/* End a session and its stream. Under the lock. */
static int vm_stop(ProfiledVM *vm)
{
  Session *s = vm->s;
  int status = PROFILE_SUCCESS, err = 0;
  int is_child = (s->pid != getpid());  /* The stream is the parent's. */
  lj_clock_close(&s->clock);
  counters_copy(s->counters, &vm->last);
  vm->s = NULL;
  nsessions--;
  if (s->mode != LUAM_SYSPROF_DEFAULT) {
    /* exit() may have been called by another thread, while the VM runs. */
    if (!is_child && s->stream.tid == (uint32_t)lj_clock_tid())
      lj_funcname_find(&s->symtab, &s->peek, s->g);
    if (!is_child && (err = lj_stream_end(&s->stream)) != 0)
      status = PROFILE_ERRIO;
    errno = 0;
    if (s->cb.on_stop(s->ctx, s->stream.wb.buf) != 0 &&
	status == PROFILE_SUCCESS) {
      status = PROFILE_ERRIO;
      err = errno ? errno : EIO;
    }
  }
  munmap(s, sizeof(Session));
  errno = err;
  return status;
}

/* exit() without lua_close() still gives a complete stream. */
static void stop_all(void)
{
  int i;
  pthread_mutex_lock(&session_lock);
  for (i = 0; i < VMS_MAX; i++)
    if (vms[i].s) vm_stop(&vms[i]);
  pthread_mutex_unlock(&session_lock);
}

static int options_valid(const struct luam_Sysprof_Options *opt,
			 const SysprofCallbacks *cb, uint64_t *interval_ns)
{
  if (opt->mode > LUAM_SYSPROF_CALLGRAPH ||
      opt->clock > LUAM_SYSPROF_CLOCK_WALL)
    return 0;
  if (opt->mode != LUAM_SYSPROF_DEFAULT &&
      (!opt->buf || opt->len < LUAM_SYSPROF_BUF_MIN || !cb->writer ||
       !cb->on_stop))
    return 0;
  if (opt->interval_ns)
    *interval_ns = opt->interval_ns;
  else if (opt->interval <= INTERVAL_NS_MAX / 1000000)
    *interval_ns = opt->interval * 1000000;
  else
    return 0;
  return *interval_ns >= INTERVAL_NS_MIN && *interval_ns <= INTERVAL_NS_MAX;
}

/* Write down what the profile is of. Returns 0, or an errno. */
static int session_describe(Session *s)
{
  static const char *const modes[] = { "default", "leaf", "callgraph" };
  char num[40];
  lj_stream_meta(&s->stream, "clock",
		 s->clock.spec.kind == CLOCK_WALL ? "wall" : "cpu");
  snprintf(num, sizeof(num), "%llu", (unsigned long long)s->clock.spec.period);
  lj_stream_meta(&s->stream, "interval_ns", num);
  lj_stream_meta(&s->stream, "mode", modes[s->mode]);
  snprintf(num, sizeof(num), "%ld", (long)s->pid);
  lj_stream_meta(&s->stream, "pid", num);
  snprintf(num, sizeof(num), "%lld", (long long)time(NULL));
  lj_stream_meta(&s->stream, "start_time", num);
  lj_stream_meta(&s->stream, "base", LUAJIT_VERSION);
  return lj_stream_begin(&s->stream);
}

static Session *session_new(global_State *g,
			    const struct luam_Sysprof_Options *opt,
			    const SysprofCallbacks *cb)
{
  Session *s = (Session *)mmap(NULL, sizeof(Session), PROT_READ|PROT_WRITE,
			       MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
  if (s == MAP_FAILED) return NULL;
  s->g = g;
  s->mode = opt->mode;
  s->pid = getpid();
  s->start_ns = clock_ns(CLOCK_MONOTONIC);
  s->cb = *cb;
  s->ctx = opt->ctx;
  s->clock.tick = session_tick;
  s->clock.owner = s;
  s->host.pk = &s->peek;
  s->host.g = g;
  s->host.frames = cb->backtracer || opt->mode == LUAM_SYSPROF_DEFAULT ? NULL :
		   &s->host_frames;
  s->host.few_vm_frames = opt->mode != LUAM_SYSPROF_CALLGRAPH;
  s->lua.pk = &s->peek;
  s->lua.g = g;
  s->lua.hs = &s->host;
  s->lua.st = &s->symtab;
  s->lua.frames = &s->lua_frames;
  return s;
}

int lj_sysprof_start(lua_State *L, const struct luam_Sysprof_Options *opt,
		     const SysprofCallbacks *cb)
{
  static int exit_registered;
  global_State *g = G(L);
  uint64_t interval_ns;
  ProfiledVM *vm;
  Session *s = NULL;
  int status = PROFILE_ERRRUN, err = 0;
  ClockSpec spec;
  char why[CLOCK_WHY_MAX];
  if (!options_valid(opt, cb, &interval_ns)) return PROFILE_ERRUSE;
  pthread_mutex_lock(&session_lock);
  vm = vm_claim(g);
  if (vm && vm->g == g && vm->s && vm->s->pid != getpid())
    vm_stop(vm);  /* Of the process that forked this one. */
  if (!vm || vm->s) goto out;
  status = PROFILE_ERRMEM;
  s = session_new(g, opt, cb);
  if (!s || !lj_hstack_warmup()) {
    err = s ? ENOTSUP : errno;
    goto out;
  }
  if (!exit_registered) {
    if (atexit(stop_all) != 0) goto out;
    exit_registered = 1;
  }
  if (!lj_clockspec_parse(opt->clock == LUAM_SYSPROF_CLOCK_WALL ? "wall" : "cpu",
			  interval_ns, 0, 0, &spec, why)) {
    status = PROFILE_ERRUSE;
    goto out;
  }
  switch (lj_clock_open(&s->clock, &spec, lj_clock_tid(), why)) {
  case CLOCK_OK: break;
  case CLOCK_BUSY: status = PROFILE_ERRRUN; goto out;
  default: status = PROFILE_ERRIO; err = errno; goto out;
  }
  status = PROFILE_ERRIO;
  if (opt->mode != LUAM_SYSPROF_DEFAULT) {
    lj_stream_init(&s->stream, &s->symtab, s->counters,
		   (uint32_t)lj_clock_tid(), opt->buf, opt->len,
		   cb->writer, opt->ctx, 0);
    err = session_describe(s);
  }
  lj_peek_reset(&s->peek);
  s->cpu_us = clock_ns(CLOCK_THREAD_CPUTIME_ID) / 1000;
  if (err == 0 && lj_clock_arm(&s->clock) != CLOCK_OK)
    err = errno;
  if (err != 0) {
    lj_clock_close(&s->clock);
    goto out;
  }
  vm->g = g;
  vm->s = s;
  vm_latest = vm;
  nsessions++;
  s = NULL;
  status = PROFILE_SUCCESS;
out:
  if (s) munmap(s, sizeof(Session));
  pthread_mutex_unlock(&session_lock);
  errno = err;
  return status;
}

int lj_sysprof_stop(global_State *g)
{
  ProfiledVM *vm;
  int status = PROFILE_ERRRUN;
  pthread_mutex_lock(&session_lock);
  vm = vm_find(g);
  if (vm && vm->s) {
    int is_child = (vm->s->pid != getpid());
    status = vm_stop(vm);
    if (is_child) status = PROFILE_ERRRUN;  /* It was not profiled. */
  }
  pthread_mutex_unlock(&session_lock);
  return status;
}

int lj_sysprof_isrunning(global_State *g)
{
  ProfiledVM *vm;
  int running;
  pthread_mutex_lock(&session_lock);
  vm = vm_find(g);
  running = (vm && vm->s && vm->s->pid == getpid());
  pthread_mutex_unlock(&session_lock);
  return running;
}

void lj_sysprof_counters(global_State *g, struct luam_Sysprof_Counters *c)
{
  ProfiledVM *vm;
  memset(c, 0, sizeof(*c));
  pthread_mutex_lock(&session_lock);
  vm = g ? vm_find(g) : vm_latest;
  if (vm && vm->s) counters_copy(vm->s->counters, c);
  else if (vm) *c = vm->last;
  pthread_mutex_unlock(&session_lock);
}

/* -- Hooks in LuaJIT's own code ---------------------------------------------- */

void lj_sysprof_close(global_State *g)
{
  ProfiledVM *vm;
  if (!vm_latest) return;  /* Never started. */
  pthread_mutex_lock(&session_lock);
  vm = vm_find(g);
  if (vm) {
    if (vm->s) vm_stop(vm);
    vm->g = NULL;  /* Another VM may get this address. */
  }
  pthread_mutex_unlock(&session_lock);
}

void lj_sysprof_stack_move(lua_State *L, int begin)
{
  ProfiledVM *vm;
  if (LJ_LIKELY(nsessions == 0)) return;
  vm = vm_find(G(L));  /* Its own entry: no lock needed. */
  if (!vm || !vm->s) return;
  if (begin) vm->s->moving_from = (uintptr_t)tvref(L->stack);
  vm->s->moving = begin ? L : NULL;
}

void lj_sysprof_proto_free(global_State *g, GCproto *pt)
{
  ProfiledVM *vm;
  if (LJ_LIKELY(nsessions == 0)) return;
  vm = vm_find(g);  /* Its own entry: no lock needed. */
  if (vm && vm->s) lj_symtab_free(&vm->s->symtab, pt);
}
