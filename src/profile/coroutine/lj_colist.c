/*
** Coroutine list: finds coroutines, reads their stacks, groups them.
** Context: ordinary code of the thread that runs the VM.
**
** Coroutines first have equal stacks if their bytecode positions are equal: lines would need a
** search for each frame. The few groups of positions are then merged by lines.
*/

#define lj_colist_c
#define LUA_CORE

#include <stdlib.h>
#include <string.h>

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_debug.h"
#include "lj_ff.h"
#include "lj_frame.h"
#include "lj_gc.h"
#include "profile/base/lj_hash.h"
#include "profile/coroutine/lj_colist.h"
#include "profile/coroutine/lj_cowait.h"
#include "profile/coroutine/lj_cowalk.h"

#define AHEAD_THREAD 16 /* Coroutines whose memory is fetched ahead, */
#define AHEAD_STACK  8  /* and whose stack is. */

/* Groups under construction. */
typedef struct Groups {
  CoGroup *group;
  uint32_t ngroup, group_room;
  CoFrame *frame;
  size_t nframe, frame_room;
  uint32_t *index; /* Hash table of groups, plus 1. */
  int bits;
} Groups;

/* -- Memory ------------------------------------------------------------------ */

/* Make room for n more elements. Returns 0 without memory. */
static int frames_reserve(Groups *gs, size_t n)
{
  size_t room = gs->frame_room ? gs->frame_room : 4096;
  CoFrame *frame;
  if (gs->nframe + n <= gs->frame_room) return 1;
  while (room < gs->nframe + n) room *= 2;
  frame = (CoFrame *)realloc(gs->frame, room * sizeof(CoFrame));
  if (!frame) return 0;
  gs->frame = frame;
  gs->frame_room = room;
  return 1;
}

static void index_add(Groups *gs, uint32_t i)
{
  uint32_t slot = hash_slot(gs->group[i].hash, gs->bits), mask = (1u << gs->bits) - 1;
  while (gs->index[slot]) slot = (slot + 1) & mask;
  gs->index[slot] = i + 1;
}

/* Make room for one more group. The table has four slots for each. */
static int groups_reserve(Groups *gs)
{
  uint32_t room = gs->group_room ? gs->group_room * 2 : 256, i;
  CoGroup *group;
  if (gs->ngroup < gs->group_room) return 1;
  group = (CoGroup *)realloc(gs->group, room * sizeof(CoGroup));
  if (!group) return 0;
  gs->group = group;
  free(gs->index);
  gs->index = (uint32_t *)calloc((size_t)room * 4, sizeof(uint32_t));
  if (!gs->index) return 0;
  gs->group_room = room;
  gs->bits = gs->bits ? gs->bits + 1 : 10;
  for (i = 0; i < gs->ngroup; i++) index_add(gs, i);
  return 1;
}

static void groups_free(Groups *gs)
{
  free(gs->group);
  free(gs->frame);
  free(gs->index);
}

/* -- Groups ------------------------------------------------------------------ */

static void age_add(CoAge *to, const CoAge *age)
{
  if (age->n == 0) return;
  if (to->n == 0 || age->min_ns < to->min_ns) to->min_ns = age->min_ns;
  if (age->max_ns > to->max_ns) to->max_ns = age->max_ns;
  to->n += age->n;
  to->nleast += age->nleast;
}

static int is_equal(const Groups *gs, const CoGroup *a, const CoGroup *b)
{
  return a->hash == b->hash && a->state == b->state && a->nframe == b->nframe &&
	 memcmp(gs->frame + a->at, gs->frame + b->at, a->nframe * sizeof(CoFrame)) == 0;
}

/* Add coroutines whose frames are the last nframe ones. Returns 0 without memory. */
static int groups_add(Groups *gs, CoGroup *add)
{
  uint32_t slot, mask, i;
  if (!groups_reserve(gs)) return 0;
  add->hash = hash_next(0, (uint64_t)add->state);
  for (i = 0; i < add->nframe; i++) {
    const CoFrame *fr = &gs->frame[add->at + i];
    add->hash = hash_next(add->hash, fr->what);
    add->hash = hash_next(add->hash, ((uint64_t)fr->line << 32) | fr->kind);
  }
  mask = (1u << gs->bits) - 1;
  for (slot = hash_slot(add->hash, gs->bits); gs->index[slot]; slot = (slot + 1) & mask) {
    CoGroup *gr = &gs->group[gs->index[slot] - 1];
    if (is_equal(gs, gr, add)) {
      gr->count += add->count;
      age_add(&gr->age, &add->age);
      gs->nframe = add->at; /* The frames are there already. */
      return 1;
    }
  }
  gs->group[gs->ngroup] = *add;
  gs->index[slot] = ++gs->ngroup;
  return 1;
}

/* -- Coroutines -------------------------------------------------------------- */

static CoState state_of(lua_State *L, lua_State *running)
{
  if (L == running) return CO_RUNNING;
  if (L->status == LUA_YIELD) return CO_SUSPENDED;
  if (L->status != LUA_OK) return CO_FAILED;
  if (L->cframe || L->base > tvref(L->stack) + 1 + LJ_FR2) return CO_NORMAL;
  return L->top > L->base && tvisfunc(L->base) ? CO_NEW : CO_DEAD;
}

/* Until the groups are merged, the line of a Lua function is its bytecode position plus 1. */
static void frame_set(CoFrame *fr, const GCfunc *fn, const BCIns *pc)
{
  fr->line = 0;
  if (isluafunc(fn)) {
    const GCproto *pt = funcproto(fn);
    fr->kind = CO_LUA;
    fr->what = (uintptr_t)pt;
    if (pc > proto_bc(pt) && pc <= proto_bc(pt) + pt->sizebc)
      fr->line = (uint32_t)(pc - proto_bc(pt));
  } else if (fn->c.ffid > FF_C) {
    fr->kind = CO_BUILTIN;
    fr->what = fn->c.ffid;
  } else {
    fr->kind = CO_C;
    fr->what = (uintptr_t)fn->c.f;
  }
}

/* Add one coroutine. Returns 0 without memory. */
static int add_thread(Groups *gs, lua_State *L, CoState state)
{
  CoGroup add = { .state = state, .count = 1, .L = L, .at = gs->nframe };
  int is_least;
  uintptr_t cut = 0;
  CoWalk w;
  CoStep step;
  if (!frames_reserve(gs, COLIST_FRAMES + 1)) return 0;
  if (lj_cowait_age(L, &add.age.min_ns, &is_least)) {
    add.age.max_ns = add.age.min_ns;
    add.age.n = 1;
    add.age.nleast = (uint32_t)is_least;
  }
  if (state == CO_NEW) {
    frame_set(&gs->frame[gs->nframe++], funcV(L->base), NULL);
  } else if (state != CO_DEAD) {
    lj_cowalk_begin(&w, L);
    while (lj_cowalk_next(&w, &step)) {
      if (gs->nframe - add.at < COLIST_FRAMES)
	frame_set(&gs->frame[gs->nframe++], step.fn, step.pc);
      else cut++;
    }
  }
  if (cut) gs->frame[gs->nframe++] = (CoFrame){ cut, CO_CUT, 0 };
  add.nframe = (uint32_t)(gs->nframe - add.at);
  return groups_add(gs, &add);
}

/* The main thread is the last coroutine in the list of the collector's objects. */
static lua_State **find_threads(global_State *g, uint32_t *n)
{
  lua_State **list = NULL;
  uint32_t room = 0;
  GCobj *o;
  *n = 0;
  for (o = gcref(g->gc.root); o; o = gcref(o->gch.nextgc)) {
    if (o->gch.gct != (uint8_t)~LJ_TTHREAD || isdead(g, o)) continue;
    if (*n == room) {
      lua_State **more;
      room = room ? room * 2 : 1024;
      more = (lua_State **)realloc(list, room * sizeof(*list));
      if (!more) {
	free(list);
	return NULL;
      }
      list = more;
    }
    list[(*n)++] = gco2th(o);
    if (gco2th(o) == mainthread(g)) break;
  }
  return list;
}

/* Newer LuaJITs have a coroutine for events and finalizers, which no program has made. */
static int is_of_vm(global_State *g, lua_State *L)
{
#ifdef vmthread
  return L == vmthread(g);
#else
  UNUSED(g);
  UNUSED(L);
  return 0;
#endif
}

static int add_threads(CoList *cl, Groups *gs, lua_State *L)
{
  uint32_t i, n, nidle = 0;
  lua_State **list = find_threads(cl->g, &n);
  if (!list) return 0;
  for (i = 0; i < n; i++) {
    CoState state;
    if (i + AHEAD_THREAD < n) {
      __builtin_prefetch(list[i + AHEAD_THREAD]);
      __builtin_prefetch(list[i + AHEAD_STACK]->base - 2);
    }
    state = state_of(list[i], L);
    if (state == CO_DEAD && is_of_vm(cl->g, list[i])) {
      nidle++;
      continue;
    }
    cl->count[state]++;
    if (!add_thread(gs, list[i], state)) break;
  }
  free(list);
  cl->n = n - nidle;
  return i == n;
}

/* -- Lines ------------------------------------------------------------------- */

/* A function that was not called yet is where it is defined. */
static void find_line(CoFrame *fr, CoState state)
{
  GCproto *pt = (GCproto *)fr->what;
  if (fr->kind != CO_LUA) return;
  if (state == CO_NEW) fr->line = (uint32_t)pt->firstline;
  else if (fr->line && proto_lineinfo(pt))
    fr->line = (uint32_t)lj_debug_line(pt, fr->line - 1);
  else fr->line = 0;
}

/* Merge groups whose lines are equal. */
static int merge(Groups *to, const Groups *from)
{
  uint32_t i, j;
  for (i = 0; i < from->ngroup; i++) {
    CoGroup add = from->group[i];
    if (!frames_reserve(to, add.nframe)) return 0;
    for (j = 0; j < add.nframe; j++) {
      to->frame[to->nframe + j] = from->frame[add.at + j];
      find_line(&to->frame[to->nframe + j], add.state);
    }
    add.at = to->nframe;
    to->nframe += add.nframe;
    if (!groups_add(to, &add)) return 0;
  }
  return 1;
}

/* The largest first; then in the order of states, then in that of the program. */
static int group_cmp(const void *a, const void *b)
{
  const CoGroup *x = (const CoGroup *)a, *y = (const CoGroup *)b;
  if (x->count != y->count) return x->count > y->count ? -1 : 1;
  if (x->state != y->state) return x->state < y->state ? -1 : 1;
  return x->at < y->at ? 1 : -1;
}

int lj_colist_read(CoList *cl, lua_State *L)
{
  Groups by_pos, by_line;
  int ok;
  memset(cl, 0, sizeof(*cl));
  memset(&by_pos, 0, sizeof(by_pos));
  memset(&by_line, 0, sizeof(by_line));
  cl->g = G(L);
  ok = add_threads(cl, &by_pos, L) && merge(&by_line, &by_pos);
  groups_free(&by_pos);
  free(by_line.index);
  cl->group = by_line.group;
  cl->ngroup = by_line.ngroup;
  cl->frame = by_line.frame;
  cl->nframe = by_line.nframe;
  if (ok) qsort(cl->group, cl->ngroup, sizeof(CoGroup), group_cmp);
  else lj_colist_free(cl);
  return ok;
}

void lj_colist_free(CoList *cl)
{
  free(cl->group);
  free(cl->frame);
  cl->group = NULL;
  cl->frame = NULL;
}
