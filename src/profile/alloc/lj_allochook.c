/*
** Allocation hook: the VM's memory allocator, with a countdown of bytes in front of it.
** Context: under the lock of lj_process, unless a function says otherwise.
*/

#define lj_allochook_c
#define LUA_CORE

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "profile/alloc/lj_allochook.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_safeload.h"

static AllocHook *hooks;

/* -- The function ------------------------------------------------------------ */

/* Does this thread run the VM, although it did not at the last look? Another thread may do so,
** and free the coroutine meanwhile.
*/
static int has_moved(const AllocHook *h)
{
  global_State *g = relaxed_get(&h->g);
  uintptr_t L;
  void *cframe;
  return g && lj_safeload_once(&L, &g->cur_L, sizeof(L)) &&
	 lj_safeload_once(&cframe, &((lua_State *)L)->cframe, sizeof(cframe)) &&
	 lj_osthread_onstack(cframe);
}

static void set_owner(AllocHook *h, uintptr_t owner)
{
  relaxed_set(&h->owner, owner);
  relaxed_set(&h->quick, h->each ? 0 : owner);
}

/* Does the hook count this call? */
static int is_counted(AllocHook *h)
{
  uintptr_t owner = relaxed_get(&h->owner);
  if (owner == osthread_pointer()) return 1;
  if (owner == 0) {
    relaxed_add(&h->calls, 1);
    return 0;
  }
  if (!has_moved(h)) return 0;
  set_owner(h, osthread_pointer());
  return 1;
}

/* Count a block down, and take a sample if the countdown has run out. */
static void count_down(AllocHook *h, size_t osize, size_t size, const WalkRegs *regs)
{
  if (!relaxed_get(&h->samples)) return;
  if (size > h->left) h->sample(h, osize, size, regs);
  else relaxed_set(&h->left, h->left - size);
}

/* Link-time optimisation does not see calls by assembler. */
#define CALLED_BY_ASSEMBLER __attribute__((used))

/* Is it the block of a Lua stack that the VM resizes? Such a stack can be walked only before. A hook
** without samples may have the door of a VM that was closed.
*/
static int is_luastack(const AllocHook *h, const void *p)
{
  return p && relaxed_get(&h->samples) &&
	 relaxed_get(&h->door->moving_from) == (uintptr_t)p;
}

/* Blocks that the allocator refuses do not count, except a Lua stack. */
CALLED_BY_ASSEMBLER void *lj_allochook_call(AllocHook *h, void *p, size_t osize,
					    size_t nsize, WalkRegs *regs)
{
  EventDoor *door = relaxed_get(&h->samples) ? h->door : NULL;
  int err = errno, was_sampled = p && alloclive_mayhave(&h->live, p);
  int counted = (nsize != 0 || was_sampled || h->each) && is_counted(h);
  int is_early = counted && nsize != 0 && is_luastack(h, p);
  void *block;
  regs->valid = WALKREG_PRESERVED;
  regs->is_return = 1;
  if (is_early) {
    eventdoor_work(h->door);
    count_down(h, osize, nsize, regs);
    eventdoor_rest(h->door);
  }
  errno = err;
  block = h->below(h->below_ud, p, osize, nsize);
  if (!counted) return block;
  err = errno;
  if (door) eventdoor_work(door);
  if (block || nsize == 0) {
    if (was_sampled) lj_alloclive_free(&h->live, p);
    if (nsize != 0 && !is_early) count_down(h, p ? osize : 0, nsize, regs);
    if (h->each) h->each(h->each_ud, p ? osize : 0, nsize, regs);
  }
  if (h->live.coming) lj_alloclive_enter(&h->live, block);
  if (door) eventdoor_rest(door);
  errno = err;
  return block;
}

/* In assembler, because it must leave no frame of its own, however it is compiled: it jumps to
** the allocator below, and captures the registers of its caller, in 168 bytes on the stack.
**
** A small block counts even if the allocator refuses it.
**
**   if (h->quick != osthread_pointer() || alloclive_mayhave(&h->live, p) || nsize > 4096 ||
**       nsize > h->left)
**     return lj_allochook_call(h, p, osize, nsize, registers of the caller);
**   h->left -= nsize;
**   return h->below(h->below_ud, p, osize, nsize);
*/
LJ_STATIC_ASSERT(offsetof(AllocHook, quick) == 0 && offsetof(AllocHook, left) == 8);
LJ_STATIC_ASSERT(offsetof(AllocHook, below) == 16 && offsetof(AllocHook, below_ud) == 24);
LJ_STATIC_ASSERT(offsetof(AllocHook, live) == 32 && offsetof(AllocLive, filter) == 0);
LJ_STATIC_ASSERT(ALLOCLIVE_FILTER == 65536);
LJ_STATIC_ASSERT(sizeof(WalkRegs) <= 168 && offsetof(WalkRegs, r) == 0);

#define UNUSED_ARG __attribute__((unused))
__attribute__((naked, noinline)) void *lj_allochook_f(UNUSED_ARG void *ud,
						      UNUSED_ARG void *p,
						      UNUSED_ARG size_t osize,
						      UNUSED_ARG size_t nsize)
{
  __asm__("movq (%rdi), %rax\n\t"
	  "cmpq %fs:0, %rax\n\t"
	  "jne 1f\n\t"
	  "movq %rsi, %rax\n\t"
	  "shrq $4, %rax\n\t"
	  "movzwl %ax, %eax\n\t"
	  "cmpb $0, 32(%rdi,%rax)\n\t"
	  "jne 1f\n\t"
	  "cmpq $4096, %rcx\n\t"
	  "ja 1f\n\t"
	  "movq 8(%rdi), %rax\n\t"
	  "subq %rcx, %rax\n\t"
	  "jb 1f\n\t"
	  "movq %rax, 8(%rdi)\n\t"
	  "movq 16(%rdi), %rax\n\t"
	  "movq 24(%rdi), %rdi\n\t"
	  "jmp *%rax\n"
	  "1:\n\t"
	  "subq $168, %rsp\n\t"
	  ".cfi_adjust_cfa_offset 168\n\t"
	  "movq %rsp, %r8\n\t"
	  "movq %rbx, 24(%r8)\n\t"
	  "movq %rbp, 48(%r8)\n\t"
	  "movq %r12, 96(%r8)\n\t"
	  "movq %r13, 104(%r8)\n\t"
	  "movq %r14, 112(%r8)\n\t"
	  "movq %r15, 120(%r8)\n\t"
	  "leaq 176(%rsp), %rax\n\t"
	  "movq %rax, 56(%r8)\n\t"
	  "movq 168(%rsp), %rax\n\t"
	  "movq %rax, 128(%r8)\n\t"
	  "call lj_allochook_call\n\t"
	  "addq $168, %rsp\n\t"
	  ".cfi_adjust_cfa_offset -168\n\t"
	  "ret");
}

/* -- The VM's allocator ------------------------------------------------------ */

/* A handler may come between the two stores, and call allochook_below. */
static void put_in(AllocHook *h)
{
  global_State *g = h->g;
  h->below = g->allocf;
  h->below_ud = g->allocd;
  g->allocd = h;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  g->allocf = lj_allochook_f;
  h->is_in = 1;
}

static void take_out(AllocHook *h)
{
  global_State *g = h->g;
  if (g->allocf != lj_allochook_f || g->allocd != h) return;
  g->allocf = h->below;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  g->allocd = h->below_ud;
  h->is_in = 0;
}

int lj_allochook_isin(AllocHook *h)
{
  global_State *g = h->g;
  uintptr_t owner = h->owner;
  uint32_t calls = h->calls;
  void *block;
  if (!h->is_in) return 0;
  if (g->allocf == lj_allochook_f && g->allocd == h) return 1;
  set_owner(h, 0);
  block = g->allocf(g->allocd, NULL, 0, sizeof(void *));
  if (block) g->allocf(g->allocd, block, sizeof(void *), 0);
  set_owner(h, owner);
  return h->calls != calls;
}

/* Find the hook of a VM, or one whose VM was closed. A library may have kept that one, so its
** allocator must be the same.
*/
static AllocHook *hook_find(const global_State *g)
{
  AllocHook *h;
  for (h = hooks; h; h = h->next)
    if (h->g == g) return h;
  for (h = hooks; h; h = h->next)
    if (!h->g && !h->is_in && h->below == g->allocf && h->below_ud == g->allocd) return h;
  return NULL;
}

AllocHook *lj_allochook_of(global_State *g)
{
  AllocHook *h = hook_find(g);
  /* What replaced the hook may still call it, so it must not be below that. */
  if (h && h->is_in && !lj_allochook_isin(h)) {
    relaxed_set(&h->g, NULL);
    h = NULL;
  }
  if (!h) {
    h = (AllocHook *)calloc(1, sizeof(*h));
    if (!h) return NULL;
    h->next = hooks;
    relaxed_set(&hooks, h);
  }
  relaxed_set(&h->g, g);
  return h;
}

/* Begin to count, for a countdown or somebody who watches. */
static void begin(AllocHook *h)
{
  if (!lj_allochook_isin(h)) put_in(h);
  set_owner(h, osthread_pointer());
}

/* End it, unless the other one goes on. */
static void end(AllocHook *h, int is_ours)
{
  if (relaxed_get(&h->samples) || h->each) {
    set_owner(h, h->owner);
    return;
  }
  set_owner(h, 0);
  if (is_ours && h->g) take_out(h);
}

int lj_allochook_any(void)
{
  return relaxed_get(&hooks) != NULL;
}

void lj_allochook_replace(const global_State *g)
{
  AllocHook *h;
  for (h = hooks; h; h = h->next)
    if (h->g == g && h->is_in && !lj_allochook_isin(h)) h->was_out = h->was_unwatched = 1;
}

void lj_allochook_start(AllocHook *h)
{
  h->was_out = 0;
  relaxed_set(&h->samples, 1);
  begin(h);
}

void lj_allochook_stop(AllocHook *h, int is_ours)
{
  relaxed_set(&h->samples, 0);
  end(h, is_ours);
}

void lj_allochook_watch(AllocHook *h,
			void (*each)(void *, size_t, size_t, const WalkRegs *), void *ud)
{
  h->each = each;
  h->each_ud = ud;
  h->was_unwatched = 0;
  begin(h);
}

int lj_allochook_unwatch(AllocHook *h)
{
  int was_in = lj_allochook_isin(h) && !h->was_unwatched;
  h->each = NULL;
  end(h, 1);
  return was_in;
}

/* LuaJIT unmaps all blocks of its own allocator, so nobody can use the hook after that. */
void lj_allochook_close(global_State *g)
{
  AllocHook **at = &hooks;
  while (*at) {
    AllocHook *h = *at;
    if (h->g == g) {
      h->each = NULL;
      lj_allochook_stop(h, 1);
      relaxed_set(&h->g, NULL);
      if (!h->is_in && allochook_islj(h->below)) {
	relaxed_set(at, h->next);
	lj_alloclive_close(&h->live);
	free(h);
	continue;
      }
    }
    at = &h->next;
  }
}

void lj_allochook_forget(void)
{
  AllocHook *h;
  for (h = hooks; h; h = h->next) lj_allochook_stop(h, 0);
}
