/*
** C functions that Lua calls: a number for each closure of a lua_CFunction, and their names.
** Context: see the header.
*/

#define lj_cfunctab_c
#define LUA_CORE

#include <string.h>

#include "lj_obj.h"
#include "lj_gc.h"
#include "profile/symbols/lj_cfunctab.h"

/* -- Numbers ------------------------------------------------------------------ */

/* A closure that is being noted. */
#define noted(fn) ((fn) | 1)

/* Entry for a closure or a function, NULL without room. hash: its address. */
static CFuncEntry *insert(CFuncTab *ct, uintptr_t hash, uintptr_t fn, uintptr_t f,
			  uint32_t number)
{
  uint32_t i, slot = hash_slot(hash, CFUNCTAB_BITS);
  for (i = 0; i < CFUNCTAB_PROBES; i++) {
    CFuncEntry *e = &ct->entry[(slot + i) & (CFUNCTAB_FUNCS - 1)];
    if (e->f != 0 && e->fn != CFUNCTAB_GONE) continue;
    e->number = number;
    e->tries = 0;
    ct->call[e - ct->entry].len = 0;
    ct->names[e - ct->entry].n = 0;
    e->f = f;
    __atomic_store_n(&e->fn, fn, __ATOMIC_SEQ_CST);
    ct->n++;
    return e;
  }
  return NULL;
}

static CFuncEntry *add(CFuncTab *ct, uintptr_t fn, uintptr_t f, uintptr_t as)
{
  CFuncEntry *all = cfunctab_find(ct, 0, f), *e;
  if (!all) all = insert(ct, f, 0, f, 0);
  if (!all || all->number == CFUNCTAB_CLOSURES) return NULL;
  e = insert(ct, fn, as, f, all->number + 1);
  if (e) all->number++;
  return e;
}

CFuncEntry *lj_cfunctab_add(CFuncTab *ct, uintptr_t fn, uintptr_t f)
{
  return add(ct, fn, f, fn);
}

/* Entry of a closure that is being noted. */
static CFuncEntry *find_noted(CFuncTab *ct, uintptr_t fn, uintptr_t f)
{
  uint32_t i, slot = hash_slot(fn, CFUNCTAB_BITS);
  for (i = 0; i < CFUNCTAB_PROBES; i++) {
    CFuncEntry *e = &ct->entry[(slot + i) & (CFUNCTAB_FUNCS - 1)];
    if (e->fn == noted(fn) && e->f == f) return e;
    if (e->f == 0) break;
  }
  return NULL;
}

uint32_t lj_cfunctab_note(CFuncTab *ct, uintptr_t fn, uintptr_t f)
{
  const CFuncEntry *e = cfunctab_find(ct, fn, f);
  if (!e) e = find_noted(ct, fn, f);
  if (!e) e = add(ct, fn, f, noted(fn));
  return e ? e->number : 0;
}

int lj_cfunctab_settle(CFuncTab *ct, uintptr_t fn, uintptr_t f, int keep)
{
  CFuncEntry *e = find_noted(ct, fn, f);
  uintptr_t expected = noted(fn);
  if (!e) return keep && (cfunctab_find(ct, fn, f) != NULL);
  return __atomic_compare_exchange_n(&e->fn, &expected, keep ? fn : CFUNCTAB_GONE, 0,
				     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) &&
	 keep;
}

/* Nobody may read a closure that is being noted: it may be freed already. */
uint32_t lj_cfunctab_marked(CFuncTab *ct, global_State *g)
{
  uint32_t i, dead = 0;
  /* A thread that notes a closure sees that, or this thread sees the closure. */
  __atomic_add_fetch(&ct->marks, 1, __ATOMIC_SEQ_CST);
  for (i = 0; i < CFUNCTAB_FUNCS && ct->n > 0; i++) {
    CFuncEntry *e = &ct->entry[i];
    uintptr_t fn = __atomic_load_n(&e->fn, __ATOMIC_SEQ_CST);
    if (fn <= CFUNCTAB_GONE || ((fn & 1) == 0 && !isdead(g, (GCobj *)fn))) continue;
    __atomic_store_n(&e->fn, CFUNCTAB_GONE, __ATOMIC_SEQ_CST);
    dead++;
  }
  return dead;
}

/* -- Names -------------------------------------------------------------------- */

void lj_cfunctab_unname(CFuncTab *ct)
{
  uint32_t i;
  for (i = 0; i < CFUNCTAB_FUNCS; i++)
    if (ct->entry[i].f)
      ct->names[i].n = ct->names[i].has_more = ct->names[i].has_upvals = 0;
}

/* Order of names: the shorter one first, then by their bytes. */
static int compare(const char *a, uint32_t alen, const char *b, uint32_t blen)
{
  return alen != blen ? (alen < blen ? -1 : 1) : memcmp(a, b, alen);
}

int lj_cfunctab_offer(CFuncTab *ct, const CFuncEntry *e, uint32_t grade, const char *name,
		      uint32_t len)
{
  CFuncNames *nm = cfunctab_names(ct, e);
  int is_first = nm->n == 0;
  uint32_t i;
  if (!is_first && grade > nm->grade) return 0;
  if (grade != nm->grade) nm->n = nm->has_more = 0;
  nm->grade = (uint8_t)grade;
  for (i = 0; i < nm->n; i++) {
    int order = compare(name, len, nm->name[i], nm->len[i]);
    if (order == 0) return 0;
    if (order < 0) break;
  }
  if (nm->n == CFUNCTAB_NAMES) nm->has_more = 1;
  else nm->n++;
  if (i == CFUNCTAB_NAMES) return 0;
  memmove(nm->name[i + 1], nm->name[i], (nm->n - i - 1u) * CFUNCTAB_NAME_MAX);
  memmove(&nm->len[i + 1], &nm->len[i], nm->n - i - 1u);
  memcpy(nm->name[i], name, len);
  nm->len[i] = (uint8_t)len;
  return is_first;
}

void lj_cfunctab_called(CFuncTab *ct, CFuncEntry *e, const char *name, uint32_t len)
{
  CFuncCall *call = &ct->call[e - ct->entry];
  if (len > CFUNCTAB_NAME_MAX) len = CFUNCTAB_NAME_MAX;
  memcpy(call->name, name, len);
  call->len = (uint8_t)len;
  e->tries = CFUNCTAB_TRIES;
}

/* As its caller names a closure. The places of its function are better, if they count. */
static uint32_t call_text(CFuncTab *ct, const CFuncEntry *e, char *text)
{
  const CFuncCall *call = &ct->call[e - ct->entry];
  const CFuncEntry *all = cfunctab_find(ct, 0, e->f);
  const CFuncNames *nm = all ? cfunctab_names(ct, all) : NULL;
  if (nm && nm->n && !nm->has_upvals) return 0;
  memcpy(text, call->name, call->len);
  return call->len;
}

uint32_t lj_cfunctab_text(CFuncTab *ct, const CFuncEntry *e, char *text)
{
  const CFuncNames *nm = cfunctab_names(ct, e);
  uint32_t i, len = 0;
  if (nm->n == 0) return call_text(ct, e, text);
  for (i = 0; i < nm->n; i++) {
    if (i) text[len++] = '|';
    memcpy(text + len, nm->name[i], nm->len[i]);
    len += nm->len[i];
  }
  if (nm->has_more) {
    memcpy(text + len, "|...", 4);
    len += 4;
  }
  return len;
}
