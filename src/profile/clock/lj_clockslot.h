/*
** The table of the clocks that run: which one a signal is of.
**
** What a clock's signals carry names its slot and a generation, so a late one of a
** clock that is gone is known as such. Handlers read the table without a lock; who
** uses a slot is counted in it, so that a clock can be closed from any thread.
*/

#ifndef _LJ_CLOCKSLOT_H
#define _LJ_CLOCKSLOT_H

#include "profile/clock/lj_clock.h"
#include "profile/base/lj_relaxed.h"

/* The value of a slot: a tag, a generation that changes with every claim, and
** the slot. Without the tag no signal belongs to it.
*/
#define CLOCKSLOT_TAG        ((uintptr_t)0x5350 << 48)
#define CLOCKSLOT_TAG_MASK   ((uintptr_t)0xffff << 48)
#define CLOCKSLOT_INDEX_MASK ((uintptr_t)(CLOCKS_MAX - 1))

typedef struct ClockSlot {
  uintptr_t value; /* Set last by the claim. */
  int users;       /* Handlers that use the slot, */
  int ticks;       /* and ticks among them, of the clock's thread. */
  Clock *clock;    /* There while the value is, or the slot has users. */
  /* Copies, so that a look at them needs no use. */
  int tid, signo, kind;
  int next; /* Ring of slots with the same thread and signal. */
} ClockSlot;

LJ_DATA ClockSlot lj_clockslots[CLOCKS_MAX];
LJ_DATA int lj_clockslots_top; /* Beyond the highest that was ever claimed. */

/* -- For handlers, async-signal-safe ----------------------------------------- */

/* Is it the value of a slot? */
static LJ_AINLINE int clockslot_isvalue(uintptr_t value)
{
  return (value & CLOCKSLOT_TAG_MASK) == CLOCKSLOT_TAG;
}

/* The slot that a value names. */
static LJ_AINLINE ClockSlot *clockslot_of(uintptr_t value)
{
  return &lj_clockslots[value & CLOCKSLOT_INDEX_MASK];
}

/* Does a value belong to a clock that is not retired yet? */
static LJ_AINLINE int clockslot_islive(uintptr_t value)
{
  return relaxed_get(&clockslot_of(value)->value) == value;
}

/* Does a tick of the clock run? */
static LJ_AINLINE int clockslot_isticking(const Clock *c)
{
  return clockslot_islive(c->value) && relaxed_get(&clockslot_of(c->value)->ticks) > 0;
}

/* Use the slot of a value until done. NULL if its clock is closed: it is not in use then. */
static LJ_AINLINE Clock *clockslot_use(uintptr_t value)
{
  ClockSlot *slot = clockslot_of(value);
  __atomic_add_fetch(&slot->users, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&slot->value, __ATOMIC_SEQ_CST) == value) return slot->clock;
  __atomic_sub_fetch(&slot->users, 1, __ATOMIC_SEQ_CST);
  return NULL;
}

static LJ_AINLINE void clockslot_done(uintptr_t value)
{
  __atomic_sub_fetch(&clockslot_of(value)->users, 1, __ATOMIC_SEQ_CST);
}

/* -- Outside of the handler -------------------------------------------------- */

/* Give a clock a slot and a value. Returns 0 if all are taken. Under the lock of
** lj_clock, as kind and free.
*/
LJ_FUNC int lj_clockslot_claim(Clock *c);

/* The clock's kind is known now. */
LJ_FUNC void lj_clockslot_kind(const Clock *c);

/* End the ticks of a clock: none is running when it returns, and none will. Not
** under the lock: another thread's tick may take its time.
*/
LJ_FUNC void lj_clockslot_retire(Clock *c);

/* Free the slot of a retired clock that sends no more signals. own: this is the
** clock's thread.
*/
LJ_FUNC void lj_clockslot_free(const Clock *c, int own);

/* In a child of fork(): free all. */
LJ_FUNC void lj_clockslot_forget(void);

#endif
