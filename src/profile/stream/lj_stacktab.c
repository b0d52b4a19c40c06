/*
** Stack table: writes each stack once in a chunk, and refers to it by its id.
** Context: handler.
*/

#define lj_stacktab_c
#define LUA_CORE

#include <string.h>

#include "profile/base/lj_hash.h"
#include "profile/stream/lj_stacktab.h"

/* Largest differences of two addresses and of two lines that are written. */
#define NEAR_MAX  ((int64_t)1 << 40)
#define LINES_MAX 1000

/* -- Hashes ------------------------------------------------------------------ */

/* For the sum of all pairs. */
#define END_KEY    U64x(bf58476d, 1ce4e5b9)
#define END_FACTOR U64x(94d049bb, 133111eb)

/* The processor hashes the pairs of frames side by side: no hash depends on another. */
uint64_t lj_stacktab_hash(const FrameSpan *fr)
{
  uint64_t h = fr->len, key = HASH_KEY;
  uint32_t i;
  for (i = 0; i + 2 <= fr->len; i += 2, key += HASH_FACTOR)
    h += hash_pair(fr->list[i] ^ key, fr->list[i + 1] ^ ~(key * 3));
  if (i < fr->len) h += hash_pair(fr->list[i] ^ key, HASH_FACTOR);
  h = hash_pair(h ^ END_KEY, END_FACTOR);
  return h ? h : 1;
}

/* -- Writing ----------------------------------------------------------------- */

/* The two slots of a beginning are side by side. */
static StackPrefix *prefix_home(StackTab *t, uint64_t hash)
{
  return t->has_moved ? &t->more->prefix[(hash >> 40) & (STACKTAB_MORE_PREFIXES - 2)]
		      : &t->prefix[(hash >> 40) & (STACKTAB_PREFIXES - 2)];
}

/* Slot of the n outermost frames, by the hashes in t->path: their slot, or a slot for
** them.
*/
static StackPrefix *prefix_slot(StackTab *t, uint32_t n)
{
  uint64_t hash = t->path[n - 1];
  StackPrefix *p = prefix_home(t, hash);
  if (p[0].hash == hash || p[0].epoch != t->epoch) return p;
  return p + 1;
}

/* Number of outermost frames that another stack of this chunk shares. *base gets the id of
** that stack. From now on, the longer beginnings belong to the stack with this id.
*/
static uint32_t prefix_share(StackTab *t, const FrameSpan *fr, uint32_t id, uint32_t *base)
{
  uint64_t h = 0;
  uint32_t n;
  for (n = 1; n <= fr->len; n++) t->path[n - 1] = h = hash_next(h, fr->list[fr->len - n]);
  *base = 0;
  for (n = fr->len; n > 0; n--) {
    StackPrefix *p = prefix_slot(t, n);
    if (p->hash == t->path[n - 1] && p->epoch == t->epoch) {
      *base = p->id;
      break;
    }
    p->hash = t->path[n - 1];
    p->id = id;
    p->epoch = t->epoch;
    t->nprefix++;
  }
  return n;
}

/* The nearest frames towards the root; the next ones are differences to them. */
typedef struct Above {
  FrameWord lua, host; /* LFUNC and HOST, 0 for none. */
} Above;

/* Write a frame as a difference of numbers, if that is small. */
static int near_put(WBuf *wb, int kind, uint64_t diff, int64_t most)
{
  int64_t sdiff = (int64_t)diff;
  if (sdiff < -most || sdiff > most) return 0;
  lj_wbuf_uleb(wb, frame_word(kind, wbuf_signed(sdiff)));
  return 1;
}

static void frame_put(WBuf *wb, FrameWord w, Above *above)
{
  int kind = frame_kind(w);
  if (kind == SPF_FRAME_LFUNC) {
    FrameWord lua = above->lua;
    above->lua = w;
    if (lua && frame_payload_lo(lua) == frame_payload_lo(w) &&
	near_put(wb, SPF_FRAME_LSAME, (uint64_t)frame_aux(w) - (uint64_t)frame_aux(lua),
		 LINES_MAX))
      return;
  } else if (kind == SPF_FRAME_HOST) {
    FrameWord host = above->host;
    above->host = w;
    if (host &&
	near_put(wb, SPF_FRAME_NEAR, frame_payload(w) - frame_payload(host), NEAR_MAX))
      return;
  }
  if (kind == SPF_FRAME_CLOSURE) {
    lj_wbuf_uleb(wb, frame_word(kind, frame_addr(w)));
    lj_wbuf_uleb(wb, frame_closure_number(w));
  } else if (frame_hasaux(w)) {
    lj_wbuf_uleb(wb, (uint32_t)w);
    lj_wbuf_uleb(wb, frame_aux(w));
  } else {
    lj_wbuf_uleb(wb, w);
  }
}

/* Most references are to the last two stacks, and with many new stacks, ids are large. */
void lj_stacktab_ref(const StackTab *t, WBuf *wb, uint32_t id)
{
  uint32_t before = t->nstack - id; /* Stacks defined after it. */
  lj_wbuf_uleb(wb, id == 0 ? 0 : before < 2 ? before + 1 : id + 2);
}

/* Write a stack, as a difference to another one of this chunk. */
static void stack_define(StackTab *t, Symtab *st, const Batch *b, WBuf *wb, StackEntry *e,
			 const FrameSpan *fr)
{
  uint32_t i, base, keep = prefix_share(t, fr, e->id, &base);
  uint32_t fresh = fr->len - keep;
  Above above = { 0, 0 };
  size_t mark;
  for (i = 0; i < fr->len; i++) {
    FrameWord w = fr->list[i];
    if (frame_kind(w) == SPF_FRAME_LFUNC) {
      lj_symtab_define(st, b, wb, frame_payload_lo(w), t->epoch);
      if (i >= fresh && !above.lua) above.lua = w;
    } else if (frame_kind(w) == SPF_FRAME_HOST) {
      if (i >= fresh && !above.host) above.host = w;
    }
    if (i < fresh) lj_symtab_see(st, w);
  }
  mark = lj_wbuf_short_begin(wb);
  lj_stacktab_ref(t, wb, base);
  lj_wbuf_uleb(wb, keep);
  for (i = fresh; i-- > 0;) frame_put(wb, fr->list[i], &above);
  lj_wbuf_short_end(wb, mark, SPF_STACK, SPF_STACK_LENGTH);
  e->epoch = t->epoch;
  t->nstack = e->id;
}

/* Slot of the stack with a hash, or a slot for it: a free or void one if there is one. */
static StackEntry *stack_slot(StackTab *t, uint64_t hash)
{
  StackEntry *table = t->has_moved ? t->more->stack : t->stack, *found = NULL;
  uint32_t mask = (t->has_moved ? STACKTAB_MORE_STACKS : STACKTAB_STACKS) - 1;
  uint32_t i, slot = (uint32_t)hash & mask;
  for (i = 0; i < STACKTAB_PROBES; i++) {
    StackEntry *e = &table[(slot + i) & mask];
    if (e->hash == hash) return e;
    if (!found && e->epoch != t->epoch) found = e;
    if (e->hash == 0) break;
  }
  if (!found) found = &table[slot]; /* Replace another. */
  found->epoch = 0;
  return found;
}

/* Do the stacks of this chunk fill half of a small table, and is a larger one there? */
static int must_grow(const StackTab *t)
{
  return t->more && !t->has_moved &&
	 (t->nstack >= STACKTAB_STACKS / 2 || t->nprefix >= STACKTAB_PREFIXES / 2);
}

/* Move all stacks of this chunk to the larger tables. */
static void grow(StackTab *t)
{
  uint32_t i;
  t->has_moved = 1;
  for (i = 0; i < STACKTAB_STACKS; i++)
    if (t->stack[i].epoch == t->epoch) *stack_slot(t, t->stack[i].hash) = t->stack[i];
  for (i = 0; i < STACKTAB_PREFIXES; i++)
    if (t->prefix[i].epoch == t->epoch) {
      StackPrefix *p = prefix_home(t, t->prefix[i].hash);
      *(p->epoch == t->epoch ? p + 1 : p) = t->prefix[i];
    }
}

uint32_t lj_stacktab_id(StackTab *t, Symtab *st, const Batch *b, WBuf *wb,
			const FrameSpan *fr, uint64_t hash)
{
  StackEntry *e;
  if (fr->len == 0) return 0;
  e = stack_slot(t, hash);
  if (e->epoch != t->epoch) {
    if (LJ_UNLIKELY(must_grow(t))) {
      grow(t);
      e = stack_slot(t, hash);
    }
    e->hash = hash;
    e->id = t->nstack + 1;
    stack_define(t, st, b, wb, e, fr);
  }
  return e->id;
}

void lj_stacktab_reset(StackTab *t)
{
  if (t->epoch == 0) return;
  memset(t->stack, 0, sizeof(t->stack));
  memset(t->prefix, 0, sizeof(t->prefix));
  if (t->has_moved) memset(t->more, 0, sizeof(*t->more));
  t->has_moved = 0;
  t->epoch = 0;
}
