/*
** The table of the clocks that run; see the header.
*/

#define lj_clockslot_c
#define LUA_CORE

#include <time.h>

#include "profile/clock/lj_clockslot.h"
#include "profile/base/lj_osthread.h"

#define VALUE_GENERATION ((uintptr_t)CLOCKS_MAX)
#define VALUE_FREE       ((uintptr_t)0)
#define VALUE_RETIRED    ((uintptr_t)1) /* Not to be claimed yet. */

#define RETRY_NS 20000 /* Between two looks at another thread's tick. */

ClockSlot lj_clockslots[CLOCKS_MAX];
int lj_clockslots_top;

static uintptr_t generation; /* Of the last claim. */

/* Clocks of one thread and signal are a ring. */
static void ring_join(int slot)
{
  ClockSlot *s = lj_clockslots;
  int i;
  relaxed_set(&s[slot].next, slot);
  for (i = 0; i < lj_clockslots_top; i++) {
    if (i != slot && clockslot_isvalue(relaxed_get(&s[i].value)) &&
	s[i].tid == s[slot].tid && s[i].signo == s[slot].signo) {
      relaxed_set(&s[slot].next, s[i].next);
      relaxed_set(&s[i].next, slot);
      break;
    }
  }
}

static void ring_leave(int slot)
{
  int i = slot;
  while (lj_clockslots[i].next != slot) i = lj_clockslots[i].next;
  relaxed_set(&lj_clockslots[i].next, lj_clockslots[slot].next);
}

int lj_clockslot_claim(Clock *c)
{
  ClockSlot *slot;
  int i = 0;
  while (i < CLOCKS_MAX && relaxed_get(&lj_clockslots[i].value) != VALUE_FREE) i++;
  if (i == CLOCKS_MAX) return 0;
  generation += VALUE_GENERATION;
  c->value = CLOCKSLOT_TAG | (generation & ~CLOCKSLOT_TAG_MASK) | (uintptr_t)i;
  slot = &lj_clockslots[i];
  slot->clock = c;
  relaxed_set(&slot->tid, c->tid);
  relaxed_set(&slot->signo, c->signo);
  relaxed_set(&slot->kind, (int)c->spec.kind);
  ring_join(i);
  if (i >= lj_clockslots_top) relaxed_set(&lj_clockslots_top, i + 1);
  __atomic_store_n(&slot->value, c->value, __ATOMIC_SEQ_CST);
  return 1;
}

void lj_clockslot_kind(const Clock *c)
{
  relaxed_set(&clockslot_of(c->value)->kind, (int)c->spec.kind);
}

/* Ticks run on the clock's thread. On this one a tick can only be below us: it is
** what calls here, and cannot be waited for. One on a thread that was cancelled in
** it will never end.
*/
void lj_clockslot_retire(Clock *c)
{
  static const struct timespec retry = { 0, RETRY_NS };
  ClockSlot *slot = clockslot_of(c->value);
  int own = (c->tid == lj_osthread_self());
  __atomic_store_n(&slot->value, VALUE_RETIRED, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&slot->users, __ATOMIC_SEQ_CST) > 0) {
    if ((own || !lj_osthread_exists(c->tid)) &&
	relaxed_get(&slot->users) <= relaxed_get(&slot->ticks))
      break;
    nanosleep(&retry, NULL);
  }
}

/* It stays retired if a tick will never end. A user that is none looks only, and
** finds that the clock is gone.
*/
void lj_clockslot_free(const Clock *c, int own)
{
  ClockSlot *slot = clockslot_of(c->value);
  ring_leave((int)(slot - lj_clockslots));
  if (own || relaxed_get(&slot->ticks) == 0) relaxed_set(&slot->value, VALUE_FREE);
}

void lj_clockslot_forget(void)
{
  int i;
  for (i = 0; i < CLOCKS_MAX; i++) {
    relaxed_set(&lj_clockslots[i].value, VALUE_FREE);
    relaxed_set(&lj_clockslots[i].users, 0);
    relaxed_set(&lj_clockslots[i].ticks, 0);
  }
}
