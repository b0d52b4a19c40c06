/*
** The table of live blocks against a naive list: each sampled block ends once, for the right
** reason and with the right age, whatever is freed, resized or refused, and while its session
** is in use now and then. When the table is full, what stays stands for all: sums by the last
** period are the truth within six standard errors, for each size.
*/

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "profile/alloc/lj_alloclive.h"

#define SIGMA  6
#define THINGS 4000000
#define SIZES  5

/* Of each size, so many blocks stay that their number is about normal. */
static const uint64_t sizes[SIZES] = { 200, 1000, 4000, 20000, 60000 };

/* What the test knows of a thing, by number. */
typedef struct Thing {
  uintptr_t address; /* 0: not allocated any more. */
  uint64_t size;
  uint64_t period;                /* Of its sample. */
  uint32_t session, birth, death; /* Cycles. */
  int ends;                       /* Reports of its end. */
} Thing;

static AllocLive live;
static AllocDraw draw;
static Thing *thing;
static uint32_t cycles;
static uint64_t last, dropped;
static int busy; /* The next reports are refused. */

/* Event.ended */
static int ended(Event *ev, uint32_t session, int how, const SampleEnd *end, int n)
{
  int i;
  (void)ev;
  if (busy > 0) {
    busy--;
    return 0;
  }
  CHECK(n > 0 && n <= SAMPLE_ENDS_MAX);
  for (i = 0; i < n; i++) {
    Thing *t = &thing[end[i].thing];
    REQUIRE(end[i].thing > 0 && end[i].thing <= last);
    CHECK_EQ(t->ends++, 0);
    CHECK_EQ(t->session, session);
    if (how == SPF_ENDED_GONE) {
      CHECK_EQ(t->address, 0);
      CHECK_EQ(end[i].age, t->death - t->birth);
    } else {
      dropped++;
    }
  }
  return 1;
}

static Event event = { .ended = ended };

static void begin(uint64_t period)
{
  memset(thing, 0, THINGS * sizeof(*thing));
  last = dropped = 0;
  cycles = 0;
  busy = 0;
  REQUIRE(lj_alloclive_open(&live, period, &cycles));
}

/* A block was sampled with a period. Returns its number, or 0. */
static uint64_t sample(uint64_t period, uint64_t size, uint32_t session)
{
  uint64_t n;
  if (!lj_alloclive_makeroom(&live, &draw, &event)) return 0;
  n = lj_alloclive_begin(&live, &draw, period, size);
  if (n == 0) return 0;
  REQUIRE(n == last + 1 && n < THINGS);
  last = n;
  thing[n].size = size;
  thing[n].session = session;
  thing[n].birth = cycles;
  lj_alloclive_sampled(&live, session);
  return n;
}

static void enter(uint64_t n, uintptr_t address)
{
  thing[n].address = address;
  thing[n].death = cycles;
  lj_alloclive_enter(&live, (void *)address);
}

static void release(uint64_t n)
{
  uintptr_t address = thing[n].address;
  int is_there = alloclive_mayhave(&live, (void *)address);
  thing[n].address = 0;
  thing[n].death = cycles;
  if (is_there) lj_alloclive_free(&live, (void *)address);
  else CHECK_EQ(thing[n].ends, 1); /* Dropped before. */
}

static void finish(void)
{
  uint64_t i;
  busy = 0;
  CHECK(lj_alloclive_report(&live, &event));
  CHECK_EQ(live.nended, 0);
  for (i = 1; i <= last; i++)
    if (thing[i].address == 0) CHECK_EQ(thing[i].ends, 1);
  lj_alloclive_close(&live);
}

/* -- Blocks come and go ------------------------------------------------------ */

static uint32_t seed = 1;

static uint32_t any(uint32_t n)
{
  seed = seed * 1103515245 + 12345;
  return (seed >> 8) % n;
}

#define SLOTS 3000

static void check_random(void)
{
  static uint64_t at[SLOTS]; /* Numbers by address, 0: not sampled. */
  int i;
  memset(at, 0, sizeof(at));
  begin(1);
  for (i = 0; i < 1000000; i++) {
    uint32_t slot = any(SLOTS);
    uintptr_t address = 0x7f0000001000 + (uintptr_t)slot * 48;
    uint64_t n;
    if (any(1000) == 0) cycles++;
    if (any(5000) == 0) busy = (int)any(4);
    if (at[slot] && any(3) != 0) {
      release(at[slot]);
      at[slot] = 0;
      continue;
    }
    n = sample(1, 1 + any(100), any(3));
    if (n == 0) continue;
    if (any(50) == 0) { /* The allocation fails. */
      enter(n, 0);
    } else if (any(50) == 0) { /* The stream has lost it: the number is given up. */
      lj_alloclive_lost(&live);
      thing[n].ends = 1;
    } else if (any(200) == 0) { /* A jump left the allocator; the next sample ends it. */
      thing[n].death = cycles;
    } else { /* Resized, if there was one; or another thread has freed it. */
      if (at[slot] && any(2) == 0) release(at[slot]);
      else if (at[slot]) thing[at[slot]].address = 0, thing[at[slot]].death = cycles;
      enter(n, address);
      at[slot] = n;
    }
  }
  lj_alloclive_begin(&live, &draw, 1, 1);
  lj_alloclive_lost(&live);
  CHECK_EQ(live.period, 1);
  finish();
}

/* -- The table is full ------------------------------------------------------- */

static double chance(uint64_t period, uint64_t size)
{
  return period <= 1 ? 1 : -expm1(-(double)size / (double)period);
}

/* Allocates, with samples by a period that changes, frees a third, and compares what stays. */
static void check_full(uint64_t period, int n)
{
  double sum[SIZES] = { 0 };
  uint64_t truth[SIZES] = { 0 }, i;
  int k, s;
  begin(period);
  for (k = 0; k < n; k++) {
    uint64_t size = sizes[s = (int)any(SIZES)], p = k % 1000 < 500 ? period : period * 4,
	     id;
    uintptr_t address = 0x7f0000000000 + (uintptr_t)k * 64;
    int stays = any(3) != 0;
    truth[s] += (uint64_t)stays;
    if (!lj_allocdraw_keeps(&draw, size, 1, p)) continue; /* Not sampled. */
    id = sample(p, size, 0);
    if (id == 0) continue;
    thing[id].period = p;
    enter(id, address);
    if (!stays) release(id);
  }
  lj_alloclive_report(&live, &event);
  for (i = 1; i <= last; i++)
    if (thing[i].ends == 0)
      for (s = 0; s < SIZES; s++)
	if (thing[i].size == sizes[s]) {
	  uint64_t longer = thing[i].period > live.period ? thing[i].period : live.period;
	  sum[s] += 1 / chance(longer, sizes[s]);
	}
  CHECK(live.used <= ALLOCLIVE_MAX);
  for (s = 0; s < SIZES; s++) {
    /* The standard error is largest if all have the longest period. */
    double c = chance(live.period > period * 4 ? live.period : period * 4, sizes[s]);
    double err = sqrt((double)truth[s] * (1 - c) / c);
    printf("period %llu -> %llu, size %7llu: %.0f of %llu, %+.2f standard errors\n",
	   (unsigned long long)period, (unsigned long long)live.period,
	   (unsigned long long)sizes[s], sum[s], (unsigned long long)truth[s],
	   err > 0 ? (sum[s] - (double)truth[s]) / err : 0);
    CHECK(fabs(sum[s] - (double)truth[s]) <= SIGMA * err);
  }
  if (n > 1000000) CHECK(dropped > 0);
  finish();
}

/* A table that is full while its session is in use takes nothing, and loses nothing. */
static void check_busy(void)
{
  uint64_t i, n;
  begin(1);
  for (i = 0; i < ALLOCLIVE_MAX; i++) enter(sample(1, 100, 0), 0x1000 + i * 16);
  for (i = 1; i <= ALLOCLIVE_MAX; i++) release(i);
  busy = 2;
  CHECK_EQ(sample(1, 100, 0), 0);
  CHECK_EQ(live.period, 1);
  n = sample(1, 100, 0);
  CHECK_EQ(n, ALLOCLIVE_MAX + 1);
  enter(n, 0x1000);
  CHECK_EQ(dropped, 0);
  finish();
}

int main(void)
{
  thing = (Thing *)malloc(THINGS * sizeof(*thing));
  REQUIRE(thing != NULL);
  lj_allocdraw_seed(&draw, 20261125);
  check_random();
  check_full(1, 3000000);
  check_full(4096, 3000000);
  check_full(524288, 300000);
  check_busy();
  free(thing);
  return check_status();
}
