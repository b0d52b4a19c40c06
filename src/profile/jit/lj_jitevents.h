/*
** Events of the compiler: calls from LuaJIT's recorder, and the samples that they take.
** Context: ordinary code of the thread that runs the VM, unless a function says otherwise.
**
** LuaJIT calls these where it gives up a trace, blacklists a bytecode, saves a trace, frees all
** traces, or leaves a trace by an exit. A VM that never had such an event compares one pointer.
** No Lua code runs, and the compiler's state stays as it is.
**
** A sample begins at the innermost Lua function: the compiler's own frames are left out. That of a
** blacklisted bytecode, or of a saved trace, has only the function and line where the trace begins, or of
** the call that ends it.
**
** Each kind has a budget of samples. Beyond it, events are summed by line and reason. Each second
** and at the end, each sum becomes a sample. So counts by line and reason are exact.
*/

#ifndef _LJ_JITEVENTS_H
#define _LJ_JITEVENTS_H

#include "lj_obj.h"
#include "lj_dispatch.h"
#include "profile/event/lj_event.h"

typedef enum JitKind {
  JIT_ABORT,
  JIT_BLACKLIST,
  JIT_FLUSH,
  JIT_STOP,
  JIT_EXIT,
  JIT__MAX
} JitKind;

/* Limit of samples with a stack of each event of the compiler, in a second: (only line and reason) */
#define JIT_SAMPLES_MAX 1000
#define JIT_BURST       10000 /* The first ones, and those after some time without any. */

#define JIT_BITS 10 /* Of a row of the next table. */
/* Limit of lines and reasons of the compiler's events without a stack, in a second: [lost samples] */
#define JIT_SUMS 1024

/* Id of the first reason. Smaller ones are other sources'. */
#define JIT_TEXT_FIRST 64

/* Fields of a sample. An exit has no reason; only a flush and a new trace have machine code. */
enum {
  JITFIELD_TRACE,
  JITFIELD_PARENT,
  JITFIELD_EXIT,
  JITFIELD_REASON,
  JITFIELD_MCODE,
  JITFIELD__MAX
};

/* State of a VM. It lives until the VM is closed. */
typedef struct JitEvents JitEvents;

#if LJ_HASJIT

/* Get the state of a VM, or make it. Returns NULL without memory. Under the lock. */
LJ_FUNC JitEvents *lj_jitevents_of(global_State *g);

/* Begin and end a kind of event. Under the lock. */
LJ_FUNC void lj_jitevents_start(JitEvents *je, JitKind kind, const Event *ev);
LJ_FUNC void lj_jitevents_stop(JitEvents *je, JitKind kind);

/* Make samples of all sums of a kind; what the session has no room for stays. On the thread that
** runs the VM, or while none does.
*/
LJ_FUNC void lj_jitevents_flush(JitEvents *je, JitKind kind, Event *ev);

/* The same by another thread: samples with only the reasons. Under the lock, after the stop. */
LJ_FUNC void lj_jitevents_rest(JitEvents *je, JitKind kind, Event *ev);

/* The collector has marked all that lives, and is about to free the rest. */
LJ_FUNC void lj_jitevents_marked(JitEvents *je);

/* Exits that no total has. Under the lock. */
LJ_FUNC uint64_t lj_jitevents_untold(JitEvents *je);

/* Since the start of a kind: events without a stack of their own, and those of them without a line.
** Any thread.
*/
LJ_FUNC void lj_jitevents_many(const JitEvents *je, JitKind kind, uint64_t *many,
			       uint64_t *unplaced);

/* The VM is about to be freed. Under the lock. */
LJ_FUNC void lj_jitevents_close(global_State *g);

/* In a child of fork(): no event runs. */
LJ_FUNC void lj_jitevents_forget(void);

/* -- Calls from LuaJIT -------------------------------------------------------- */

LJ_FUNC void lj_jitevents_aborts(jit_State *J);
LJ_FUNC void lj_jitevents_blacklists(jit_State *J, const GCproto *pt, const BCIns *pc);
LJ_FUNC void lj_jitevents_saves(jit_State *J);
LJ_FUNC void lj_jitevents_flushes(jit_State *J);
LJ_FUNC void lj_jitevents_exits(jit_State *J, const BCIns *pc);

#define jithook_ison(J) LJ_UNLIKELY(J2GG(J)->jitevents != NULL)

/* The compiler gives up a trace, or tries again. The error is on the Lua stack. */
#define lj_jithook_abort(J) \
  do { \
    if (jithook_ison(J)) lj_jitevents_aborts(J); \
  } while (0)

/* The compiler is about to give up a bytecode for good. */
#define lj_jithook_blacklist(J, pt, pc) \
  do { \
    if (jithook_ison(J)) lj_jitevents_blacklists((J), (pt), (pc)); \
  } while (0)

/* A trace is complete. */
#define lj_jithook_save(J) \
  do { \
    if (jithook_ison(J)) lj_jitevents_saves(J); \
  } while (0)

/* All traces are being freed. Their machine code is still there. */
#define lj_jithook_flush(J) \
  do { \
    if (jithook_ison(J)) lj_jitevents_flushes(J); \
  } while (0)

/* A trace was left by an exit. The interpreter will go on at pc. */
#define lj_jithook_exit(J, pc) \
  do { \
    if (jithook_ison(J)) lj_jitevents_exits((J), (pc)); \
  } while (0)

#else

#define lj_jitevents_close(g)   UNUSED(g)
#define lj_jitevents_marked(je) UNUSED(je)

#endif

#endif
