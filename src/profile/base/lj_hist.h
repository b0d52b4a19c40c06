/*
** Histogram of times, with a running 99th percentile.
** Context: handler. Async-signal-safe.
**
** Four classes for each power of two: the error of a value is at most a fifth. A new value
** costs bounded work and no allocation; it moves the percentile by a few classes at most.
*/

#ifndef _LJ_HIST_H
#define _LJ_HIST_H

#include "lj_def.h"
#include "profile/base/lj_relaxed.h"

#define HIST_SUB_BITS 2 /* Classes for each power of two: 2^2. */
#define HIST_CLASSES  (64 << HIST_SUB_BITS)

typedef struct Hist {
  uint32_t n[HIST_CLASSES]; /* Values in each class. */
  uint64_t total;           /* All values. */
  uint64_t above;           /* Values in classes above p99. */
  uint32_t p99; /* Lowest class such that 99 % of the values are in it or below. */
} Hist;

static LJ_AINLINE uint32_t hist_class(uint64_t v)
{
  uint32_t e;
  if (v < (1u << HIST_SUB_BITS)) return (uint32_t)v;
  e = 63u - (uint32_t)__builtin_clzll(v);
  return ((e - HIST_SUB_BITS + 1) << HIST_SUB_BITS) +
	 (uint32_t)((v >> (e - HIST_SUB_BITS)) & ((1u << HIST_SUB_BITS) - 1));
}

/* Largest value of a class. */
static LJ_AINLINE uint64_t hist_top(uint32_t c)
{
  uint32_t e = c >> HIST_SUB_BITS;
  uint64_t sub = c & ((1u << HIST_SUB_BITS) - 1);
  if (e == 0) return sub;
  return ((((uint64_t)1 << HIST_SUB_BITS) + sub + 1) << (e - 1)) - 1;
}

/* Move the percentile to its class. A new value of a lower class moves it down by one
** class at most.
*/
static LJ_AINLINE void hist_settle(Hist *h)
{
  while (h->above * 100 > h->total && h->p99 < HIST_CLASSES - 1) h->above -= h->n[++h->p99];
  while (h->p99 > 0 && (h->above + h->n[h->p99]) * 100 <= h->total)
    h->above += h->n[h->p99--];
}

/* Count n values of class c. Async-signal-safe. */
static LJ_AINLINE void hist_add(Hist *h, uint32_t c, uint32_t n)
{
  relaxed_add(&h->n[c], n); /* Other threads read it. */
  h->total += n;
  if (c > h->p99) h->above += n;
  hist_settle(h);
}

/* A bound that 99 % of the values do not exceed; at most a quarter above the smallest
** such bound.
*/
static LJ_AINLINE uint64_t hist_p99(const Hist *h)
{
  return h->total ? hist_top(h->p99) : 0;
}

#endif
