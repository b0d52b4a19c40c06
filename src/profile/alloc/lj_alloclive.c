/*
** Live blocks: which of the sampled blocks of memory still exist.
** Context: the thread that runs the VM.
*/

#define lj_alloclive_c
#define LUA_CORE

#include <string.h>

#include "profile/alloc/lj_alloclive.h"
#include "profile/base/lj_hash.h"
#include "profile/base/lj_osmemory.h"

#define FILTER_FULL  255 /* A counter stays there: it no longer knows how many there are. */
#define REPORT_ENDED 64  /* Ended blocks that wait for a report, about. */

/* -- Lists ------------------------------------------------------------------- */

static LiveBlock *block_of(const AllocLive *l, uint32_t i)
{
  return &l->table->block[i];
}

static uint32_t *bucket_of(const AllocLive *l, uintptr_t p)
{
  return &l->table->bucket[hash_slot(p, ALLOCLIVE_BITS)];
}

static void put(AllocLive *l, uint32_t *list, uint32_t i)
{
  block_of(l, i)->next = *list;
  *list = i;
}

static int has_room(const AllocLive *l)
{
  return l->unused != 0 || l->used < ALLOCLIVE_MAX;
}

static uint32_t take_unused(AllocLive *l)
{
  uint32_t i = l->unused;
  if (i == 0) return ++l->used;
  l->unused = block_of(l, i)->next;
  return i;
}

/* A block has ended. */
static void end(AllocLive *l, uint32_t i, int how)
{
  LiveBlock *b = block_of(l, i);
  b->how = how;
  b->cycle = *l->cycles - b->cycle;
  put(l, &l->ended, i);
  l->nended++;
}

/* Take the block of a list out of the table. */
static void take_out(AllocLive *l, uint32_t *link, int how)
{
  uint32_t i = *link;
  LiveBlock *b = block_of(l, i);
  uint8_t *filter = &l->filter[alloclive_filter(b->address)];
  if (*filter != FILTER_FULL) --*filter;
  *link = b->next;
  end(l, i, how);
}

/* -- Open and close ---------------------------------------------------------- */

int lj_alloclive_open(AllocLive *l, uint64_t period, const uint32_t *cycles)
{
  lj_alloclive_close(l);
  l->table = (LiveTable *)lj_osmemory_new(sizeof(*l->table), 0);
  if (!l->table) return 0;
  l->period = period;
  l->cycles = cycles;
  return 1;
}

void lj_alloclive_close(AllocLive *l)
{
  if (!l->table) return;
  lj_osmemory_free(l->table, sizeof(*l->table));
  memset(l, 0, sizeof(*l));
}

/* -- Ends -------------------------------------------------------------------- */

int lj_alloclive_report(AllocLive *l, Event *ev)
{
  while (l->ended) {
    const LiveBlock *first = block_of(l, l->ended), *b = first;
    SampleEnd *ends = l->table->ends;
    uint32_t i = l->ended, last = i;
    int n = 0;
    for (; i && n < SAMPLE_ENDS_MAX; i = b->next) {
      b = block_of(l, i);
      if (b->session != first->session || b->how != first->how) break;
      ends[n].thing = b->thing;
      ends[n++].age = b->cycle;
      last = i;
    }
    if (!ev->ended(ev, first->session, first->how, ends, n)) return 0;
    i = block_of(l, last)->next;
    block_of(l, last)->next = l->unused;
    l->unused = l->ended;
    l->ended = i;
    l->nended -= (uint32_t)n;
  }
  return 1;
}

/* Raise the period of the table, and drop blocks by the ratios of their probabilities. */
static void thin(AllocLive *l, AllocDraw *d, uint64_t period)
{
  uint32_t i;
  for (i = 0; i < ALLOCLIVE_MAX; i++) {
    uint32_t *link = &l->table->bucket[i];
    while (*link) {
      LiveBlock *b = block_of(l, *link);
      if (lj_allocdraw_keeps(d, b->size, b->period, period)) {
	if (period > b->period) b->period = period;
	link = &b->next;
      } else {
	take_out(l, link, SPF_ENDED_DROPPED);
      }
    }
  }
  l->period = period;
}

void lj_alloclive_end(AllocLive *l, int how)
{
  uint32_t i;
  for (i = 0; i < ALLOCLIVE_MAX; i++)
    while (l->table->bucket[i]) take_out(l, &l->table->bucket[i], how);
}

int lj_alloclive_makeroom(AllocLive *l, AllocDraw *d, Event *ev)
{
  if (l->nended >= REPORT_ENDED) lj_alloclive_report(l, ev);
  while (!has_room(l)) {
    if (l->ended == 0) thin(l, d, l->period * 2);
    else if (!lj_alloclive_report(l, ev)) return 0;
  }
  return 1;
}

/* -- Blocks ------------------------------------------------------------------ */

/* Who left the allocator by a jump has left a coming block behind. */
uint64_t lj_alloclive_begin(AllocLive *l, AllocDraw *d, uint64_t period, uint64_t size)
{
  LiveBlock *b;
  if (l->coming) end(l, l->coming, SPF_ENDED_DROPPED);
  l->coming = 0;
  if (!lj_allocdraw_keeps(d, size, period, l->period)) return 0;
  l->coming = take_unused(l);
  b = block_of(l, l->coming);
  b->size = size;
  b->period = period > l->period ? period : l->period;
  b->cycle = *l->cycles;
  b->thing = ++l->thing;
  return b->thing;
}

void lj_alloclive_sampled(AllocLive *l, uint32_t session)
{
  if (l->coming) block_of(l, l->coming)->session = session;
}

void lj_alloclive_lost(AllocLive *l)
{
  if (l->coming) put(l, &l->unused, l->coming);
  l->coming = 0;
}

void lj_alloclive_free(AllocLive *l, const void *p)
{
  uint32_t *link = bucket_of(l, (uintptr_t)p);
  while (*link && block_of(l, *link)->address != (uintptr_t)p)
    link = &block_of(l, *link)->next;
  if (*link) take_out(l, link, SPF_ENDED_GONE);
}

/* A block of the same address is gone: another thread has freed it. */
void lj_alloclive_enter(AllocLive *l, const void *p)
{
  uint32_t i = l->coming;
  uint8_t *filter;
  l->coming = 0;
  if (!p) {
    end(l, i, SPF_ENDED_GONE);
    return;
  }
  if (alloclive_mayhave(l, p)) lj_alloclive_free(l, p);
  block_of(l, i)->address = (uintptr_t)p;
  put(l, bucket_of(l, (uintptr_t)p), i);
  filter = &l->filter[alloclive_filter((uintptr_t)p)];
  if (*filter != FILTER_FULL) ++*filter;
}
