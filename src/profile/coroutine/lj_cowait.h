/*
** Waits of coroutines: from a yield to the resume, by exact times.
** Context: ordinary code of the thread that runs the VM, unless a function says otherwise.
**
** A yield notes the time in the coroutine's record. The resume subtracts it. A wait above the
** threshold becomes a sample with the coroutine's stack. The others are summed by the line that
** yielded and the coroutine's labels.
** Samples spend a credit, a part of the time. Without credit, a long wait goes into a sum, too.
**
** When the thread last slept, a coroutine that was ready would have run. So it waited at least
** until the end of that sleep. Afterwards it was ready, or still waited, while the thread was
** busy. Each such wait has two samples: of the time before, and of the time afterwards. A sleep
** while a coroutine runs does not count: nobody could have run.
**
** Stubs in front of the builtin functions (lj_vmstub.h), and hooks in lua_yield and lua_resume,
** see all yields and resumes. A yield in a hook of the program is not seen.
*/

#ifndef _LJ_COWAIT_H
#define _LJ_COWAIT_H

#include "lj_obj.h"
#include "profile/base/lj_ticks.h"
#include "profile/coroutine/lj_corecord.h"
#include "profile/event/lj_event.h"

#define COWAIT_BITS 12
#define COWAIT_SITES \
  (1 << COWAIT_BITS) /* Lines and labels whose waits are summed at a time. */

/* Why waits are summed. */
enum { COSUM_SHORT, COSUM_MANY, COSUM__MAX };

typedef struct CoSum {
  uint64_t ticks, waits;
} CoSum;

#define COWAIT_PLACE 48 /* Bytes of a place, with its NUL. */

/* Waits of coroutines that yielded at one place, with the same labels. */
typedef struct CoSite {
  uintptr_t pc;      /* Behind the call that yielded, 0: free. */
  const GCproto *pt; /* Its function. NULL: no Lua function has called. */
  CoSum sum[COSUM__MAX];
  uint32_t label;           /* Number of their set of labels, which the site holds. */
  uint32_t waiting;         /* Coroutines that wait now. */
  char place[COWAIT_PLACE]; /* "source:line", cut at the left. */
} CoSite;

/* State of a VM. It lives until the VM is closed. */
typedef struct CoWait CoWait;
struct CoWait {
  global_State *g;
  CoRecords *records; /* Of the VM. */
  int on;             /* The event runs. */
  TickRate rate;
  uint64_t since;     /* Tick at which the event began. */
  uint64_t threshold; /* Ticks: shorter waits are summed. */
  uint64_t flush_at;  /* Tick at which the sums become samples. */
  int64_t credit_ns;  /* Time that samples may take now, below 0: have taken too much, */
  uint64_t credit_at; /* and the tick of its last growth. */
  uint64_t many; /* Waits above the threshold that were summed, because they were many. */
  uint64_t untimed;            /* Waits of coroutines without a record. */
  uint64_t last;               /* Tick of the last yield or resume, */
  uint64_t gap;                /* and ticks after which the thread may have slept. */
  const lua_State *running;    /* Coroutine that was resumed last, unless it has yielded. */
  uint64_t slept;              /* Tick at which the thread had just slept, */
  long sleeps;                 /* and how often it had. */
  EventDoor *door;             /* Way to the running profile, */
  const struct SourceOps *ops; /* and the source of its event. */
  CoSite site[COWAIT_SITES], other; /* other: of lines and labels without room. */
  CoWait *next;                     /* All of them. Under the lock. */
};

/* Get the state of a VM, or make it. Returns NULL without memory. Under the lock. */
LJ_FUNC CoWait *lj_cowait_of(global_State *g);

/* Begin and end to record. is_ours: no other thread runs the VM. Under the lock; begin on the
** thread that runs the VM.
*/
LJ_FUNC void lj_cowait_start(CoWait *w, const Event *ev, uint64_t threshold_ns);
LJ_FUNC void lj_cowait_stop(CoWait *w, int is_ours);

/* Make samples of all sums. Returns 0 if some are left: the session is in use. */
LJ_FUNC int lj_cowait_flush(CoWait *w, Event *ev);

/* The same by another thread: one sample without a stack. Under the lock, after the stop. */
LJ_FUNC void lj_cowait_rest(CoWait *w, Event *ev);

/* The VM, which has a state: a coroutine is about to yield; is about to be resumed. */
LJ_FUNC void lj_cowait_yield(lua_State *L);
LJ_FUNC void lj_cowait_resume(lua_State *L);

/* A coroutine that the host program has resumed yields or has ended. */
LJ_FUNC void lj_cowait_left(lua_State *L);

/* The collector has marked all that lives, and is about to free the rest. */
LJ_FUNC void lj_cowait_marked(CoWait *w);

/* LuaJIT is about to free a coroutine, which may refer to freed objects. */
LJ_FUNC void lj_cowait_threadfree(CoWait *w, const lua_State *L);

/* Give a coroutine, which may wait, a set of labels or none. */
LJ_FUNC void lj_cowait_label(lua_State *L, uint32_t label);

/* Call known for each place where coroutines wait that have yielded since the event began, as far
** as places are known; place NULL: elsewhere. Any thread that keeps the VM from being closed. The
** numbers may change meanwhile. Returns 0 if the event does not run.
*/
LJ_FUNC int lj_cowait_known(const global_State *g,
			    void (*known)(void *ctx, const char *place, uint32_t n),
			    void *ctx);

/* How long has a suspended coroutine waited? Returns 0 if it is not known. *ns: at least so long
** if *is_least is set: it yielded before the event began.
*/
LJ_FUNC int lj_cowait_age(const lua_State *L, uint64_t *ns, int *is_least);

/* The VM is about to be freed. Under the lock. */
LJ_FUNC void lj_cowait_close(global_State *g);

/* In a child of fork(): no event runs. */
LJ_FUNC void lj_cowait_forget(void);

#endif
