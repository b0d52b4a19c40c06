/*
** Sets of labels: what the coroutines of a VM work for, such as a route and a tenant.
** Context: as in the header.
*/

#define lj_labels_c
#define LUA_CORE

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lj_obj.h"
#include "lj_dispatch.h"
#include "profile/base/lj_cleantext.h"
#include "profile/base/lj_hash.h"
#include "profile/base/lj_osmemory.h"
#include "profile/labels/lj_labels.h"

/* The number stands in a gap of lua_State: so it has the size that the compiler knows. */
LJ_STATIC_ASSERT(offsetof(lua_State, glref) == 16 &&
		 offsetof(lua_State, sysprof_label) == 12);

static uint32_t last_id; /* Of all VMs. Any thread. */
static int has_wrapped;  /* All ids were in use once. */

#define KEPT 256 /* Sets that nobody holds: more give their numbers to others. */

/* -- Sets -------------------------------------------------------------------- */

/* An id that no set of the VM has. The sets of other VMs are in other sessions of a stream. */
static uint32_t new_id(const Labels *ls)
{
  for (;;) {
    uint32_t id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED), i;
    if (id == 0) relaxed_set(&has_wrapped, 1);
    if (id == 0) continue;
    if (LJ_LIKELY(!relaxed_get(&has_wrapped))) return id;
    for (i = LABELS_OTHER; i < ls->used && ls->id[i] != id; i++) {}
    if (i >= ls->used) return id;
  }
}

static uint32_t *chain_of(Labels *ls, const uint8_t *payload, uint32_t len)
{
  return &ls->chain[hash_slot(hash_bytes(len, payload, payload + len), LABELS_HASH_BITS)];
}

/* Take a number that was never in use. Returns 0 without one, or without memory. */
static uint32_t take_new(Labels *ls)
{
  LabelSet **block = &ls->block[ls->used >> LABELS_BLOCK_BITS];
  if (ls->used == LABELS_NUMBERS) return 0;
  if (!*block)
    relaxed_set(block, (LabelSet *)lj_osmemory_new(LABELS_BLOCK * sizeof(LabelSet), 0));
  return *block ? ls->used++ : 0;
}

/* Take the number of a set that nobody holds. */
static uint32_t take_old(Labels *ls)
{
  uint32_t *link;
  const LabelSet *set;
  do
    if (++ls->hand >= ls->used) ls->hand = LABELS_OTHER + 1;
  while (ls->refs[ls->hand] != 0);
  set = labels_at(ls, ls->hand);
  for (link = chain_of(ls, set->payload, set->len); *link != ls->hand;)
    link = &labels_at(ls, *link)->next;
  *link = set->next;
  __atomic_store_n(&ls->id[ls->hand], 0, __ATOMIC_SEQ_CST);
  return ls->hand;
}

/* Take a number for a set. Returns 0 if all sets are held. */
static uint32_t take_number(Labels *ls)
{
  uint32_t unheld = ls->used - LABELS_OTHER - ls->held, number = 0;
  if (unheld < KEPT) number = take_new(ls);
  return number || unheld == 0 ? number : take_old(ls);
}

static void set_fill(Labels *ls, uint32_t number, const uint8_t *payload, uint32_t len)
{
  LabelSet *set = labels_at(ls, number);
  set->len = len;
  memcpy(set->payload, payload, len);
  __atomic_store_n(&ls->id[number], new_id(ls), __ATOMIC_RELEASE);
}

uint32_t lj_labels_get(Labels *ls, const uint8_t *payload, uint32_t len)
{
  uint32_t *chain = chain_of(ls, payload, len), number;
  const LabelSet *set;
  if (len == 0) return 0;
  for (number = *chain; number; number = set->next) {
    set = labels_at(ls, number);
    if (set->len == len && memcmp(set->payload, payload, len) == 0) break;
  }
  if (!number && (number = take_number(ls)) != 0) {
    set_fill(ls, number, payload, len);
    labels_at(ls, number)->next = *chain;
    *chain = number;
  }
  if (!number) {
    relaxed_set(&ls->others, ls->others + 1);
    number = LABELS_OTHER;
  }
  labels_hold(ls, number);
  return number;
}

/* -- Texts ------------------------------------------------------------------- */

/* Append a string of the stream: cleaned, and cut between characters. */
static uint8_t *put_text(uint8_t *to, const char *s, size_t len, size_t max)
{
  char text[LABELS_VALUE + 1];
  size_t n;
  lj_cleantext(text, max + 1, s, len);
  n = strlen(text);
  if (n >= 128) *to++ = (uint8_t)(n | 128);
  *to++ = (uint8_t)(n >= 128 ? n >> 7 : n);
  memcpy(to, text, n);
  return to + n;
}

static int is_after(const LabelPair *a, const LabelPair *b)
{
  size_t n = a->klen < b->klen ? a->klen : b->klen;
  int order = memcmp(a->key, b->key, n);
  return order != 0 ? order > 0 : a->klen > b->klen;
}

/* The order of a Lua table is arbitrary. */
static void sort_pairs(LabelPair *pair, int n)
{
  int i, j;
  for (i = 1; i < n; i++) {
    LabelPair p = pair[i];
    for (j = i; j > 0 && is_after(&pair[j - 1], &p); j--) pair[j] = pair[j - 1];
    pair[j] = p;
  }
}

uint32_t lj_labels_encode(Labels *ls, LabelPair *pair, int n)
{
  uint8_t *end = ls->made;
  int i;
  sort_pairs(pair, n);
  for (i = 0; i < n; i++) {
    end = put_text(end, pair[i].key, pair[i].klen, LABELS_KEY);
    end = put_text(end, pair[i].value, pair[i].vlen, LABELS_VALUE);
  }
  return (uint32_t)(end - ls->made);
}

/* -- Begin and end ----------------------------------------------------------- */

Labels *lj_labels_of(global_State *g)
{
  static const uint8_t other[] = "\7[other]\7[other]";
  Labels *ls = G2GG(g)->labels;
  if (ls) return ls;
  ls = (Labels *)calloc(1, sizeof(*ls));
  if (!ls) return NULL;
  ls->used = LABELS_OTHER;
  ls->hand = LABELS_OTHER;
  if (!take_new(ls)) {
    free(ls);
    return NULL;
  }
  set_fill(ls, LABELS_OTHER, other, sizeof(other) - 1);
  labels_hold(ls, LABELS_OTHER);
  __atomic_store_n(&G2GG(g)->labels, ls, __ATOMIC_RELEASE);
  return ls;
}

void lj_labels_close(global_State *g)
{
  Labels *ls = G2GG(g)->labels;
  int i;
  if (!ls) return;
  __atomic_store_n(&G2GG(g)->labels, NULL, __ATOMIC_RELAXED);
  for (i = 0; i < LABELS_BLOCKS && ls->block[i]; i++)
    lj_osmemory_free(ls->block[i], LABELS_BLOCK * sizeof(LabelSet));
  free(ls);
}

/* -- Coroutines -------------------------------------------------------------- */

/* The VM keeps the coroutine that ran last as the current one, also in an event loop: only one with
** a C frame runs. A host that has resumed another one within C code passes the one that runs.
*/
void lj_labels_inherit(lua_State *L, lua_State *L1)
{
  GCobj *o = gcref(G(L)->cur_L);
  const lua_State *from = o && gco2th(o)->cframe ? gco2th(o) : L;
  if (from->cframe && from->sysprof_label)
    labels_set(L2GG(L)->labels, L1, from->sysprof_label);
}

/* -- Samples ----------------------------------------------------------------- */

void lj_labels_define(const global_State *g, uint32_t number, SampleDef *def)
{
  const Labels *ls = G2GG((global_State *)g)->labels;
  const LabelSet *set = labels_at(ls, number);
  def->tag = SPF_LABELS;
  def->id = ls->id[number];
  def->payload = set->payload;
  def->len = set->len;
}

void lj_labels_begin(global_State *g)
{
  Labels *ls = relaxed_get(&G2GG(g)->labels);
  if (ls) relaxed_set(&ls->before, relaxed_get(&ls->others));
}

void lj_labels_limit(const global_State *g, char *text, size_t size)
{
  const Labels *ls = relaxed_get(&G2GG((global_State *)g)->labels);
  uint64_t n = ls ? relaxed_get(&ls->others) - relaxed_get(&ls->before) : 0;
  text[0] = '\0';
  if (n)
    snprintf(text, size,
	     "labels: %llu calls found %d sets in use, and set [other]; use fewer values",
	     (unsigned long long)n, LABELS_SETS);
}
