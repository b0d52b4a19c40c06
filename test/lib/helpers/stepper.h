/*
** Single-stepper for host stacks: runs code one instruction at a time, by the processor's
** trap flag, and walks the host stack at each instruction. It needs no timer, so no result
** depends on speed. Outside of the VM's code and traces it walks at some instructions only.
** It walks each stack twice: with the cache of the last walk, and without.
*/

#ifndef STEPPER_H
#define STEPPER_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "lj_obj.h"
#include "lj_frame.h"
#include "profile/host/lj_hostwalk.h"
#include "check.h"
#include "regs_of.h"

#define STEP_TRAP_FLAG  0x100 /* TF of EFLAGS. */
#define STEP_OTHERS     61    /* In host code, it walks at one instruction of so many. */
#define STEP_ROOT_MAX   64
#define STEP_FAULTS_MAX 6

typedef struct StepFault {
  const char *what;
  uintptr_t pc;
  int n;
  FrameWord list[24];
} StepFault;

static struct {
  volatile int on;
  int in_order; /* Only one coroutine: compare with its chain. */
  uint64_t steps, walks;
  uint64_t at_part[VMCODE_CALLBACK + 1], at_jit, at_stub, at_ffi_callback;
  uint64_t place[VMF_EXIT + 1], vmframes_max, on_other;
  uint64_t joined, joined_vm;    /* Walks that reused steps; also of a VM frame. */
  uintptr_t run_ret;             /* Return address of step_run. */
  uintptr_t root[STEP_ROOT_MAX]; /* Frames from there on, leaf first. */
  int nroot;
  uintptr_t other_lo, other_hi; /* Another C stack, */
  uintptr_t other_root;         /* and the function at its root. */
  uintptr_t let_lo, let_hi;     /* Code in which faults do not count. */
  int nfaults;
  StepFault fault[STEP_FAULTS_MAX];
  SafeLoad pk;
  FrameList frames, alone_frames;
  HostWalk hs, alone;  /* alone: does not reuse the last walk. */
  HostMemoLists lists; /* Of hs. */
} step;

static inline void step_fault(const char *what, uintptr_t pc)
{
  if (pc - step.let_lo < step.let_hi - step.let_lo) return;
  if (step.nfaults < STEP_FAULTS_MAX) {
    StepFault *f = &step.fault[step.nfaults];
    f->what = what;
    f->pc = pc;
    for (f->n = 0; f->n < (int)step.frames.len && f->n < 24; f->n++)
      f->list[f->n] = step.frames.list[f->n];
  }
  step.nfaults++;
}

static inline uint32_t step_chain(lua_State *L)
{
  uint32_t n = 0;
  void *cf;
  for (cf = cframe_raw(L->cframe); cf; cf = cframe_raw(cframe_prev(cf))) n++;
  return n;
}

/* The coroutine with the innermost VM frame; the main thread has the other frames. Newer
** LuaJITs run finalizers and events on a thread of their own, above the others.
*/
static inline lua_State *step_innermost(global_State *g, lua_State *L)
{
#ifdef vmthread
  if (vmthread(g)->cframe) return vmthread(g);
  if (L == vmthread(g)) return mainthread(g);
#else
  (void)g;
#endif
  return L;
}

/* VM frames of this coroutine and of the main thread below it. */
static inline uint32_t step_vmframes(global_State *g, lua_State *L)
{
  return step_chain(L) + (L != mainthread(g) ? step_chain(mainthread(g)) : 0);
}

static inline uintptr_t step_host(int i)
{
  FrameWord w = step.frames.list[i];
  return frame_kind(w) == SPF_FRAME_HOST ? (uintptr_t)frame_payload(w) : 0;
}

/* Does the walked stack end where this C stack begins? */
static inline int step_root_ok(uintptr_t sp)
{
  int m = (int)step.frames.len, i;
  if (sp - step.other_lo < step.other_hi - step.other_lo) {
    step.on_other++; /* The next frame is the C library's __start_context. */
    for (i = m - 2; i >= 0 && i >= m - 3; i--)
      if (step_host(i) - step.other_root < 256) return 1;
    return 0;
  }
  if (m < step.nroot) return 0;
  for (i = 0; i < step.nroot; i++)
    if (step_host(m - step.nroot + i) != step.root[i]) return 0;
  return 1;
}

/* Does a walk without the last one find the same frames? */
static inline int step_alone_same(ucontext_t *uc)
{
  const HostWalk *hs = &step.hs, *alone = &step.alone;
  uint32_t n = hs->nvm < HOSTWALK_VMFRAMES ? hs->nvm : HOSTWALK_VMFRAMES;
  if (hs->memo.reused) {
    step.joined++;
    if (hs->memo.lists->saved.step[hs->memo.reused - 1].sum.extra) step.joined_vm++;
  }
  lj_framelist_reset(&step.alone_frames);
  lj_hostwalk_walk(&step.alone, regs_of(uc));
  lj_framelist_finish(&step.alone_frames);
  return hs->leaf == alone->leaf && hs->broken == alone->broken && hs->nvm == alone->nvm &&
	 memcmp(hs->vm, alone->vm, n * sizeof(VMFrame)) == 0 &&
	 step.frames.n == step.alone_frames.n &&
	 memcmp(step.frames.list, step.alone_frames.list,
		step.frames.len * sizeof(FrameWord)) == 0;
}

static inline void step_look(ucontext_t *uc)
{
  uintptr_t pc = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
  uintptr_t sp = (uintptr_t)uc->uc_mcontext.gregs[REG_RSP];
  global_State *g = step.hs.g;
  lua_State *L = gcref(g->cur_L) ? step_innermost(g, &gcref(g->cur_L)->th) : NULL;
  VMCode part = lj_vmcode_part(pc);
  const uint8_t *saved;
  int isjit;
  lj_safeload_reset(&step.pk);
  isjit = lj_vmcode_isjit(NULL, &step.pk, g, pc);
  if (part == VMCODE_NONE && !isjit && lj_vmcode_partial(pc, &saved) < 0 &&
      step.steps % STEP_OTHERS != 0 && lj_vmcode_callback(&step.pk, g, pc, &saved) < 0)
    return;
  step.walks++;
  step.at_part[part]++;
  step.at_jit += (uint64_t)isjit;
  step.at_stub += (uint64_t)(isjit && lj_vmcode_isexitstub(g, pc));
  step.at_ffi_callback += lj_vmcode_callback(&step.pk, g, pc, &saved) >= 0;
  lj_framelist_reset(&step.frames);
  lj_hostwalk_walk(&step.hs, regs_of(uc));
  lj_framelist_finish(&step.frames);
  if (step.hs.nvm > step.vmframes_max) step.vmframes_max = step.hs.nvm;
  if (step.hs.nvm) step.place[step.hs.vm[0].place]++;
  if (!step_alone_same(uc)) step_fault("another stack than without the last walk", pc);
  if (step.hs.broken >= 0) step_fault("broken", pc);
  else if (step.nroot && !step_root_ok(sp)) step_fault("another root", pc);
  else if (step.in_order && L && step.hs.nvm != step_vmframes(g, L))
    step_fault("another number of VM frames", pc);
  else if (step.in_order && step.hs.nvm &&
	   step.hs.vm[0].cf != (uintptr_t)cframe_raw(L->cframe))
    step_fault("another VM frame", pc);
  else if (isjit &&
	   (!step.hs.nvm || step.hs.vm[0].code != pc ||
	    step.hs.vm[0].place != (lj_vmcode_isexitstub(g, pc) ? VMF_EXIT : VMF_TRACE)))
    step_fault("another place", pc);
  if (!step.nroot) { /* At the first walk, no VM code runs. */
    int i, m = (int)step.frames.len;
    for (i = 0; i < m && step_host(i) != step.run_ret - 1; i++)
      ;
    for (; i < m && step.nroot < STEP_ROOT_MAX; i++) step.root[step.nroot++] = step_host(i);
  }
}

static void step_handler(int sig, siginfo_t *info, void *context)
{
  ucontext_t *uc = (ucontext_t *)context;
  (void)sig;
  (void)info;
  if (!step.on) {
    uc->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)STEP_TRAP_FLAG;
    return;
  }
  uc->uc_mcontext.gregs[REG_EFL] |= STEP_TRAP_FLAG;
  step_look(uc);
  step.steps++;
}

/* Prepare for a VM. Returns 0 and prints the reason on a machine without single steps. */
static inline int step_init(lua_State *L)
{
  struct sigaction sa;
  pthread_attr_t attr;
  void *stack;
  size_t size;
  step.hs.pk = &step.pk;
  step.hs.memo.lists = &step.lists;
  step.hs.g = G(L);
  step.hs.frames = &step.frames;
  REQUIRE(pthread_getattr_np(pthread_self(), &attr) == 0 &&
	  pthread_attr_getstack(&attr, &stack, &size) == 0);
  pthread_attr_destroy(&attr);
  step.hs.stack_lo = (uintptr_t)stack;
  step.hs.stack_hi = step.hs.stack_lo + size;
  step.alone = step.hs;
  step.alone.frames = &step.alone_frames;
  REQUIRE(lj_hostwalk_warmup());
  memset(&sa, 0, sizeof(sa));
  sa.sa_sigaction = step_handler;
  sa.sa_flags = SA_SIGINFO;
  REQUIRE(sigaction(SIGTRAP, &sa, NULL) == 0);
  step.on = 1;
  raise(SIGTRAP);
  step.on = 0;
  if (step.steps < 5) puts("skipped: no single steps on this machine");
  return step.steps >= 5;
}

/* Call f step by step. in_order: its VM frames are those of one coroutine. */
__attribute__((noinline)) static void step_run(const char *name, void (*f)(lua_State *L),
					       lua_State *L, int in_order)
{
  int i, k;
  uint64_t steps = step.steps, walks = step.walks;
  step.run_ret = (uintptr_t)__builtin_return_address(0);
  step.in_order = in_order;
  step.nroot = step.nfaults = 0;
  step.steps = 0; /* So that it walks at the first instruction. */
  step.on = 1;
  raise(SIGTRAP);
  f(L);
  step.on = 0;
  step.steps += steps;
  printf("%-12s %8llu steps, %7llu walks, %7llu joined the last, %7llu in a VM "
	 "frame\n",
	 name, (unsigned long long)(step.steps - steps),
	 (unsigned long long)(step.walks - walks), (unsigned long long)step.joined,
	 (unsigned long long)step.joined_vm);
  step.joined = step.joined_vm = 0;
  CHECK(step.nroot > 0);
  step.nroot = 0;
  CHECK_EQ(step.nfaults, 0);
  for (i = 0; i < step.nfaults && i < STEP_FAULTS_MAX; i++) {
    Dl_info di;
    const StepFault *sf = &step.fault[i];
    int named = dladdr((void *)sf->pc, &di) && di.dli_sname;
    printf("  %s at %s+%#lx; kind:address from the leaf on:", sf->what,
	   named ? di.dli_sname : "?",
	   named ? (long)(sf->pc - (uintptr_t)di.dli_saddr) : (long)sf->pc);
    for (k = 0; k < sf->n; k++) {
      named = dladdr((void *)(uintptr_t)frame_payload(sf->list[k]), &di) && di.dli_sname;
      printf(" %d:%s", (int)frame_kind(sf->list[k]), named ? di.dli_sname : "?");
    }
    printf("\n");
  }
}

#endif
