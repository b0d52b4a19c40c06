/*
** Allocation hook: the VM's memory allocator, with a countdown of bytes in front of it.
** Context: under the lock of lj_process, unless a function says otherwise.
**
** LuaJIT calls lua_Alloc for each block. A hook puts a function of ours in place of the VM's,
** so a VM without a hook pays nothing. Our function counts bytes down, and passes each call
** on to the allocator below. When the countdown has run out, it calls AllocHook.sample. It
** knows when a sampled block is freed (lj_alloclive.h). It calls AllocHook.each for every
** call, while somebody watches.
**
** Only the thread that runs the VM counts. A library may call lua_getallocf, and then call our
** function on another thread, even for another VM: such calls only pass through.
**
** The allocator and its data are two words of the VM. Only the thread that runs the VM may
** exchange them. If another thread stops the hook, our function stays and passes through. It
** also stays below a wrapper that the program has put around it. A hook lives as long as its
** VM, or longer: what a library keeps stays valid.
*/

#ifndef _LJ_ALLOCHOOK_H
#define _LJ_ALLOCHOOK_H

#include "lj_obj.h"
#include "lj_alloc.h"
#include "profile/alloc/lj_allocdraw.h"
#include "profile/alloc/lj_alloclive.h"
#include "profile/base/lj_relaxed.h"
#include "profile/event/lj_event.h"

typedef struct AllocHook AllocHook;
struct AllocHook {
  uintptr_t quick; /* The owner, or 0 while somebody watches. */
  uint64_t left;   /* Bytes until the next sample. */
  lua_Alloc below; /* The hook passes calls on to this allocator, */
  void *below_ud;  /* with this data. */
  AllocLive live;  /* Sampled blocks. */
  /* A block of size bytes was allocated, or resized from osize, and the countdown has run out.
  ** A Lua stack is not resized yet. Sets left, and may begin a block in live. regs: of the call of
  ** the allocator. Ordinary code of the VM's thread.
  */
  void (*sample)(AllocHook *h, size_t osize, size_t size, const WalkRegs *regs);
  /* Of the source. Only the VM's thread draws. */
  EventDoor *door;
  Event *home; /* Of the VM's own session. */
  AllocDraw draw;
  uint64_t period;    /* Bytes. */
  uint64_t since_ns;  /* Samples were weighed last (CLOCK_MONOTONIC), */
  uint64_t spent_ns;  /* and have taken this time since then. */
  uint64_t drawn;     /* Bytes that the countdown began with, */
  uint64_t uncounted; /* and those before it that no event has counted. */
  global_State *g;    /* The VM, or NULL once it is closed. */
  int is_in;          /* The hook may be in use: by the VM, a wrapper, or a library. */
  uint32_t calls;     /* Of its function while it does not count. */
  uintptr_t owner;    /* osthread_pointer of the thread that counts, or 0. */
  int samples;        /* The countdown runs. */
  /* The program had replaced the hook for some time since the start, or since the watch began. */
  int was_out, was_unwatched;
  /* A block of osize bytes was resized to nsize, allocated (osize 0), or freed (nsize 0). NULL:
  ** nobody watches. Ordinary code of the VM's thread.
  */
  void (*each)(void *ud, size_t osize, size_t nsize, const WalkRegs *regs);
  void *each_ud;
  AllocHook *next; /* All hooks. */
};

/* Get the hook of a VM, or make one. Returns NULL without memory. On the thread that runs the
** VM. It may make an allocation.
*/
LJ_FUNC AllocHook *lj_allochook_of(global_State *g);

/* Begin the countdown, with the members left and sample set. On the thread that runs the VM. */
LJ_FUNC void lj_allochook_start(AllocHook *h);

/* Does each allocation of the VM still pass through the hook? The program may have put a
** wrapper around it, or an allocator in place of it. On the thread that runs the VM. May make
** an allocation.
*/
LJ_FUNC int lj_allochook_isin(AllocHook *h);

/* The program is about to replace the VM's allocator. On the thread that runs the VM. */
LJ_FUNC void lj_allochook_replace(const global_State *g);

/* Is there a hook of any VM? Any thread. */
LJ_FUNC int lj_allochook_any(void);

/* End the countdown. is_ours: no other thread runs the VM. */
LJ_FUNC void lj_allochook_stop(AllocHook *h, int is_ours);

/* Begin and end to watch each call. On the thread that runs the VM. The end returns 0 if the
** program replaced the VM's allocator meanwhile, so that calls may be missing.
*/
LJ_FUNC void lj_allochook_watch(AllocHook *h,
				void (*each)(void *, size_t, size_t, const WalkRegs *),
				void *ud);
LJ_FUNC int lj_allochook_unwatch(AllocHook *h);

/* The VM is about to be freed, on this thread. */
LJ_FUNC void lj_allochook_close(global_State *g);

/* In a child of fork(): no hook samples. */
LJ_FUNC void lj_allochook_forget(void);

/* Called by lj_allochook_f when it cannot just count down. regs: of its caller. */
LJ_FUNC void *lj_allochook_call(AllocHook *h, void *p, size_t osize, size_t nsize,
				WalkRegs *regs);

/* The function of all hooks; its data is an AllocHook. Any thread. */
LJ_FUNC void *lj_allochook_f(void *ud, void *p, size_t osize, size_t nsize);

/* Is it LuaJIT's own allocator? Any thread. */
static LJ_AINLINE int allochook_islj(lua_Alloc f)
{
#ifdef LUAJIT_USE_SYSMALLOC
  UNUSED(f);
  return 0;
#else
  return f == lj_alloc_f;
#endif
}

/* The allocator of a VM below our hook. Handler of the thread that runs the VM. */
static LJ_AINLINE lua_Alloc allochook_below(const global_State *g)
{
  lua_Alloc f = g->allocf;
  return LJ_LIKELY(f != lj_allochook_f) ? f : ((const AllocHook *)g->allocd)->below;
}

#endif
