/*
** Table of open clocks: claim, retire, free.
** Context: any thread, not the handler; see the header.
*/

#define lj_clockslot_c
#define LUA_CORE

#include <time.h>

#include "profile/clock/lj_clockslot.h"
#include "profile/base/lj_osthread.h"

#define VALUE_GENERATION ((uintptr_t)CLOCKS_MAX)
#define VALUE_FREE       ((uintptr_t)0)
#define VALUE_RETIRED    ((uintptr_t)1) /* Not to be claimed yet. */

#define RETRY_NS 20000 /* Between two polls of another thread's tick. */

ClockSlot lj_clockslot_table[CLOCKS_MAX];
int lj_clockslot_top;

static uintptr_t generation; /* Of the last claim. */

#define slots lj_clockslot_table

static void ring_join(int slot)
{
  int i;
  relaxed_set(&slots[slot].next, slot);
  for (i = 0; i < lj_clockslot_top; i++) {
    if (i != slot && lj_clockslot_istagged(relaxed_get(&slots[i].value)) &&
	slots[i].tid == slots[slot].tid && slots[i].signo == slots[slot].signo) {
      relaxed_set(&slots[slot].next, slots[i].next);
      relaxed_set(&slots[i].next, slot);
      break;
    }
  }
}

static void ring_leave(int slot)
{
  int i = slot;
  while (slots[i].next != slot) i = slots[i].next;
  relaxed_set(&slots[i].next, slots[slot].next);
}

int lj_clockslot_claim(Clock *c)
{
  ClockSlot *slot;
  int i = 0;
  while (i < CLOCKS_MAX && relaxed_get(&slots[i].value) != VALUE_FREE) i++;
  if (i == CLOCKS_MAX) return 0;
  generation += VALUE_GENERATION;
  c->value = CLOCKSLOT_TAG | (generation & ~CLOCKSLOT_TAG_MASK) | (uintptr_t)i;
  slot = &slots[i];
  slot->clock = c;
  relaxed_set(&slot->tid, c->tid);
  relaxed_set(&slot->signo, c->signo);
  relaxed_set(&slot->kind, (int)c->spec.kind);
  ring_join(i);
  if (i >= lj_clockslot_top) relaxed_set(&lj_clockslot_top, i + 1);
  __atomic_store_n(&slot->value, c->value, __ATOMIC_SEQ_CST);
  return 1;
}

void lj_clockslot_setkind(const Clock *c)
{
  relaxed_set(&lj_clockslot_of(c->value)->kind, (int)c->spec.kind);
}

/* A tick that runs on the clock's own thread has called here, so waiting would never end.
** Nor does a tick end if its thread was cancelled.
*/
void lj_clockslot_retire(Clock *c)
{
  static const struct timespec retry = { 0, RETRY_NS };
  ClockSlot *slot = lj_clockslot_of(c->value);
  int own = (c->tid == lj_osthread_self());
  __atomic_store_n(&slot->value, VALUE_RETIRED, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&slot->users, __ATOMIC_SEQ_CST) > 0) {
    if ((own || !lj_osthread_lives(c->tid)) &&
	relaxed_get(&slot->users) <= relaxed_get(&slot->delivering))
      break;
    nanosleep(&retry, NULL);
  }
}

/* The slot remains retired if a tick will never end. Any other handler that still counts
** as a user only reads, and sees that the clock is closed.
*/
void lj_clockslot_free(const Clock *c, int own)
{
  ClockSlot *slot = lj_clockslot_of(c->value);
  ring_leave((int)(slot - slots));
  if (own || relaxed_get(&slot->delivering) == 0) relaxed_set(&slot->value, VALUE_FREE);
}

void lj_clockslot_forget(void)
{
  int i;
  for (i = 0; i < lj_clockslot_top; i++) {
    relaxed_set(&slots[i].value, VALUE_FREE);
    relaxed_set(&slots[i].users, 0);
    relaxed_set(&slots[i].delivering, 0);
  }
}
