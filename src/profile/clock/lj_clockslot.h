/*
** Table of open clocks: one slot each, which the handler reads without a lock.
** Context: handler | claim, setkind, retire, free, forget: any thread, not the handler.
**
** The signals of a clock carry its value: slot and generation. A claim changes the
** generation, so a late signal of a closed clock names no open clock. The handler counts
** itself in the slot, and a close waits for that count.
**
**   claim -> setkind -> (use -> enter -> leave -> done) -> retire -> free
*/

#ifndef _LJ_CLOCKSLOT_H
#define _LJ_CLOCKSLOT_H

#include "profile/base/lj_relaxed.h"
#include "profile/clock/lj_clockops.h"

typedef struct ClockSlot {
  uintptr_t value; /* Set last by the claim. */
  int users;       /* Handlers that use the slot. */
  int delivering;  /* Users that take a sample, on the clock's thread. */
  Clock *clock;    /* Valid while the value is, or the slot has users. */
  /* Copies, for reads without a use. */
  int tid, signo, kind;
  int next; /* Ring of slots with the same thread and signal. */
} ClockSlot;

LJ_DATA ClockSlot lj_clockslot_table[CLOCKS_MAX];
LJ_DATA int lj_clockslot_top; /* Beyond the highest slot that was ever claimed. */

/* A value: a tag, a generation, and the index. A value without the tag belongs to another
** sender, or to no clock.
*/
#define CLOCKSLOT_TAG        ((uintptr_t)0x5350 << 48)
#define CLOCKSLOT_TAG_MASK   ((uintptr_t)0xffff << 48)
#define CLOCKSLOT_INDEX_MASK ((uintptr_t)(CLOCKS_MAX - 1))

static LJ_AINLINE int lj_clockslot_istagged(uintptr_t value)
{
  return (value & CLOCKSLOT_TAG_MASK) == CLOCKSLOT_TAG;
}

static LJ_AINLINE ClockSlot *lj_clockslot_of(uintptr_t value)
{
  return &lj_clockslot_table[value & CLOCKSLOT_INDEX_MASK];
}

/* Does a value belong to a clock that is not retired? */
static LJ_AINLINE int lj_clockslot_islive(uintptr_t value)
{
  return relaxed_get(&lj_clockslot_of(value)->value) == value;
}

/* Use the slot of a value until done. Returns NULL, without a use, if its clock is
** closed.
*/
static LJ_AINLINE Clock *lj_clockslot_use(uintptr_t value)
{
  ClockSlot *slot = lj_clockslot_of(value);
  __atomic_add_fetch(&slot->users, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&slot->value, __ATOMIC_SEQ_CST) == value) return slot->clock;
  __atomic_sub_fetch(&slot->users, 1, __ATOMIC_SEQ_CST);
  return NULL;
}

static LJ_AINLINE void lj_clockslot_done(uintptr_t value)
{
  __atomic_sub_fetch(&lj_clockslot_of(value)->users, 1, __ATOMIC_SEQ_CST);
}

/* A user takes a sample from here to leave, on the clock's thread. */
static LJ_AINLINE void lj_clockslot_enter(uintptr_t value)
{
  relaxed_add(&lj_clockslot_of(value)->delivering, 1);
}

static LJ_AINLINE void lj_clockslot_leave(uintptr_t value)
{
  relaxed_add(&lj_clockslot_of(value)->delivering, -1);
}

/* Does a user take a sample? */
static LJ_AINLINE int lj_clockslot_isentered(uintptr_t value)
{
  return relaxed_get(&lj_clockslot_of(value)->delivering) > 0;
}

/* Next slot of a ring. Another thread may change the ring: check isof. */
static LJ_AINLINE const ClockSlot *lj_clockslot_next(const ClockSlot *slot)
{
  return &lj_clockslot_table[relaxed_get(&slot->next)];
}

/* Does a slot belong to this thread and signal? It may be free. */
static LJ_AINLINE int lj_clockslot_isof(const ClockSlot *slot, int tid, int signo)
{
  return relaxed_get(&slot->tid) == tid && relaxed_get(&slot->signo) == signo;
}

/* -- Not in the handler ------------------------------------------------------ */

/* Give a clock a slot and a value. Returns 0 if all slots are taken. Under the lock of
** lj_clock, like setkind and free.
*/
LJ_FUNC int lj_clockslot_claim(Clock *c);

/* Enter the clock's kind, once it is known. */
LJ_FUNC void lj_clockslot_setkind(const Clock *c);

/* End the ticks of a clock: waits for one that runs; no other follows. Not under the lock,
** because that tick may take long.
*/
LJ_FUNC void lj_clockslot_retire(Clock *c);

/* Free the slot of a retired clock that sends no more signals. own: the caller is the
** clock's thread.
*/
LJ_FUNC void lj_clockslot_free(const Clock *c, int own);

/* In a child of fork(): free all slots. */
LJ_FUNC void lj_clockslot_forget(void);

#endif
