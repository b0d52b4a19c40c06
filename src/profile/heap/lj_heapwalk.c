/*
** Walk of a VM's heap: each object with its size and its edges, for a snapshot.
** Context: child of a snapshot; see the header.
*/

#define lj_heapwalk_c
#define LUA_CORE

#include <string.h>
#include <time.h>

#include "lj_obj.h"
#include "lj_gc.h"
#include "lj_buf.h"
#include "lj_str.h"
#include "lj_dispatch.h"
#include "lj_ctype.h"
#include "lj_ir.h"
#include "lj_jit.h"
#include "profile/format/lj_heap_format.h"
#include "profile/heap/lj_heapstack.h"
#include "profile/heap/lj_heapwalk.h"
#include "profile/symbols/lj_bcname.h"

#ifndef lj_str_size
#define lj_str_size(len) (sizeof(GCstr) + (len) + 1)
#endif

#define OBJECTS_PER_LOOK 1024 /* Between two looks at the clock. */
#define CTYPE_DEPTH      32   /* Attributes of a type. */

static void damaged(HeapWalk *w)
{
  w->state |= HPS_DAMAGED;
}

/* -- References -------------------------------------------------------------- */

/* References of n values. */
static void put_values(HeapWalk *w, cTValue *o, uint64_t n)
{
  uint64_t i;
  if (n && !heapmem_ok(&w->mem, o, n * sizeof(TValue))) {
    damaged(w);
    n = 0;
  }
  lj_heapout_uleb(&w->out, n);
  for (i = 0; i < n; i++) lj_heapref_value(w, &o[i]);
}

static void put_head(HeapWalk *w, uint8_t tag, const void *o, uint64_t size)
{
  w->own = (uintptr_t)o;
  heapout_byte(&w->out, tag);
  heapout_signed(&w->out, (int64_t)(w->own >> 3) - (int64_t)(w->last >> 3));
  lj_heapout_uleb(&w->out, size);
  w->last = w->own;
  w->objects++;
}

/* -- Strings, functions, upvalues -------------------------------------------- */

static void put_str(HeapWalk *w, const GCstr *s, uint64_t size)
{
  uint32_t len = w->no_strings ? 0 : s->len < HEAPWALK_TEXT ? s->len : HEAPWALK_TEXT;
  if (len && !heapmem_ok(&w->mem, strdata(s), len)) {
    damaged(w);
    len = 0;
  }
  put_head(w, HPF_STR, s, size);
  heapout_byte(&w->out, s->marked & LJ_GC_FIXED ? HPO_FIXED : 0);
  lj_heapout_uleb(&w->out, s->len);
  lj_heapout_uleb(&w->out, len);
  lj_heapout_bytes(&w->out, strdata(s), len);
}

static int put_upval(HeapWalk *w, const GCupval *uv)
{
  cTValue *o;
  if (!heapmem_ok(&w->mem, uv, sizeof(GCupval))) return 0;
  o = uvval(uv);
  put_head(w, HPF_UPVAL, uv, sizeof(GCupval));
  heapout_byte(&w->out, uv->closed ? HPO_CLOSED : 0);
  if (heapmem_ok(&w->mem, o, sizeof(TValue))) lj_heapref_value(w, o);
  else heapout_byte(&w->out, 0);
  return 1;
}

static int put_func(HeapWalk *w, const GCfunc *fn)
{
  uint32_t i, n;
  if (!heapmem_ok(&w->mem, fn, offsetof(GCfuncL, uvptr))) return 0;
  n = fn->c.nupvalues;
  if (isluafunc(fn)) {
    if (!heapmem_ok(&w->mem, fn, sizeLfunc(n))) return 0;
    put_head(w, HPF_FUNC, fn, sizeLfunc(n));
    lj_heapout_uleb(&w->out, fn->l.ffid);
    lj_heapref(w, gcrefp(fn->l.env, void));
    lj_heapref(w, funcproto(fn));
    lj_heapout_uleb(&w->out, n);
    for (i = 0; i < n; i++) lj_heapref(w, gcrefp(fn->l.uvptr[i], void));
  } else {
    if (!heapmem_ok(&w->mem, fn, sizeCfunc(n))) return 0;
    put_head(w, HPF_FUNC, fn, sizeCfunc(n));
    lj_heapout_uleb(&w->out, fn->c.ffid);
    lj_heapref(w, gcrefp(fn->c.env, void));
    lj_heapout_uleb(&w->out, (uint64_t)(uintptr_t)fn->c.f);
    put_values(w, fn->c.upvalue, n);
  }
  return 1;
}

/* A trace by its number, or NULL. */
static const void *trace_of(HeapWalk *w, TraceNo no)
{
#if LJ_HASJIT
  jit_State *J = G2J(w->g);
  if (no && no < J->sizetrace &&
      heapmem_ok(&w->mem, J->trace, (uint64_t)J->sizetrace * sizeof(GCRef)))
    return gcrefp(J->trace[no], void);
#endif
  UNUSED(w);
  UNUSED(no);
  return NULL;
}

static int put_proto(HeapWalk *w, const GCproto *pt)
{
  const GCRef *kgc;
  uint32_t i, n;
  if (!heapmem_ok(&w->mem, pt, sizeof(GCproto))) return 0;
  n = pt->sizekgc;
  kgc = mref(pt->k, GCRef);
  if (!heapmem_ok(&w->mem, pt, pt->sizept)) return 0;
  if (n && !heapmem_ok(&w->mem, kgc - n, (uint64_t)n * sizeof(GCRef))) return 0;
  put_head(w, HPF_PROTO, pt, pt->sizept);
  lj_heapref(w, gcrefp(pt->chunkname, void));
  lj_heapout_uleb(&w->out, (uint32_t)pt->firstline);
  lj_heapout_uleb(&w->out, (uint32_t)pt->numline);
  heapout_byte(&w->out, pt->flags);
  lj_heapref(w, trace_of(w, pt->trace));
  lj_heapout_uleb(&w->out, pt->sizeuv);
  for (i = 0; i < pt->sizeuv; i++) {
    NamePart np;
    if (!lj_bcname_upval(&w->mem.load, pt, i, &np)) np.len = 0;
    lj_heapout_uleb(&w->out, np.len);
    lj_heapout_bytes(&w->out, np.s, np.len);
  }
  lj_heapout_uleb(&w->out, n);
  for (i = 1; i <= n; i++) lj_heapref(w, gcrefp(kgc[-(ptrdiff_t)i], void));
  return 1;
}

/* -- Traces ------------------------------------------------------------------ */

#if LJ_HASJIT
/* Call f for each constant of a trace that is an object. Returns their number. */
static uint32_t each_constant(HeapWalk *w, const GCtrace *T,
			      void (*f)(HeapWalk *w, const void *o))
{
  uint32_t n = 0;
  IRRef ref;
  if (T->nk > REF_TRUE || !T->ir ||
      (T->nk < REF_TRUE &&
       !heapmem_ok(&w->mem, &T->ir[T->nk], (uint64_t)(REF_TRUE - T->nk) * sizeof(IRIns))))
    return 0;
  for (ref = T->nk; ref < REF_TRUE; ref++) {
    const IRIns *ir = &T->ir[ref];
    if (ir->o == IR_KGC && ref + 1 < REF_TRUE) {
      n++;
      if (f) f(w, (const void *)gcref(ir[LJ_GC64].gcr));
    }
    if (irt_is64(ir->t) && ir->o != IR_KNULL) ref++;
  }
  return n;
}

static int put_trace(HeapWalk *w, const GCtrace *T)
{
  uint64_t size;
  if (!heapmem_ok(&w->mem, T, sizeof(GCtrace))) return 0;
  size = ((sizeof(GCtrace) + 7) & ~(size_t)7) +
	 (T->nins > T->nk ? T->nins - T->nk : 0) * sizeof(IRIns) +
	 T->nsnap * sizeof(SnapShot) + (uint64_t)T->nsnapmap * sizeof(SnapEntry);
  put_head(w, HPF_TRACE, T, size);
  lj_heapout_uleb(&w->out, T->traceno);
  if (T->traceno == 0) { /* The collector passes it over, too. */
    heapout_byte(&w->out, 0);
    heapout_byte(&w->out, 0);
    return 1;
  }
  lj_heapref(w, gcrefp(T->startpt, void));
  lj_heapout_uleb(&w->out, 3 + each_constant(w, T, NULL));
  lj_heapref(w, trace_of(w, T->link));
  lj_heapref(w, trace_of(w, T->nextroot));
  lj_heapref(w, trace_of(w, T->nextside));
  each_constant(w, T, lj_heapref);
  return 1;
}
#endif

/* -- Data -------------------------------------------------------------------- */

#if LJ_HASFFI
/* Bytes of cdata of a type, as the VM frees it. */
static uint64_t ctype_size(HeapWalk *w, CTypeID id)
{
  const CTState *cts = ctype_ctsG(w->g);
  int i;
  if (!heapmem_ok(&w->mem, cts, sizeof(CTState))) return 0;
  for (i = 0; i < CTYPE_DEPTH; i++) {
    const CType *ct = &cts->tab[id];
    if (id >= cts->top || !heapmem_ok(&w->mem, ct, sizeof(CType))) break;
    if (!ctype_isattrib(ct->info)) return ctype_hassize(ct->info) ? ct->size : CTSIZE_PTR;
    id = ctype_cid(ct->info);
  }
  damaged(w);
  return 0;
}
#endif

static int put_cdata(HeapWalk *w, const GCcdata *cd)
{
  uint64_t size = 0;
  if (!heapmem_ok(&w->mem, cd, sizeof(GCcdata))) return 0;
#if LJ_HASFFI
  if (!cdataisv(cd)) size = sizeof(GCcdata) + ctype_size(w, cd->ctypeid);
  else if (heapmem_ok(&w->mem, cdatav(cd), sizeof(GCcdataVar)))
    size = (uint64_t)cdatav(cd)->len + cdatav(cd)->extra;
  else return 0;
#endif
  put_head(w, HPF_CDATA, cd, size);
  lj_heapout_uleb(&w->out, cd->ctypeid);
  return 1;
}

static int put_udata(HeapWalk *w, const GCudata *ud)
{
  uint64_t size;
  uint32_t n = 0;
#if LJ_HASBUFFER
  const SBufExt *sbx = NULL;
  const void *ref[3];
#endif
  if (!heapmem_ok(&w->mem, ud, sizeof(GCudata))) return 0;
  size = sizeof(GCudata) + (uint64_t)ud->len;
#if LJ_HASBUFFER
  if (ud->udtype == UDTYPE_BUFFER && ud->len >= sizeof(SBufExt) &&
      heapmem_ok(&w->mem, uddata(ud), sizeof(SBufExt))) {
    sbx = (const SBufExt *)uddata(ud);
    if (!sbufiscoworborrow(sbx)) size += sbufsz(sbx);
    if (sbufiscow(sbx)) ref[n++] = gcrefp(sbx->cowref, void);
    ref[n++] = gcrefp(sbx->dict_str, void);
    ref[n++] = gcrefp(sbx->dict_mt, void);
  }
#endif
  put_head(w, HPF_UDATA, ud, size);
  lj_heapout_uleb(&w->out, ud->udtype);
  lj_heapref(w, gcrefp(ud->metatable, void));
  lj_heapref(w, gcrefp(ud->env, void));
  lj_heapout_uleb(&w->out, n);
#if LJ_HASBUFFER
  {
    uint32_t i;
    for (i = 0; i < n; i++) lj_heapref(w, ref[i]);
  }
#endif
  return 1;
}

/* -- Tables ------------------------------------------------------------------ */

/* Nodes of a table that are readable; sets n to their number. */
static const Node *nodes_of(HeapWalk *w, const GCtab *t, uint64_t *n)
{
  const Node *node = noderef(t->node);
  *n = t->hmask ? (uint64_t)t->hmask + 1 : 0;
  if (*n == 0) return NULL;
  if ((*n & (*n - 1)) == 0 && heapmem_ok(&w->mem, node, *n * sizeof(Node))) return node;
  damaged(w);
  *n = 0;
  return NULL;
}

/* Flags of a field __mode, as the collector reads it. */
static uint32_t read_mode(HeapWalk *w, const GCtab *mt)
{
  const Node *node;
  uint64_t i, n;
  if (mt->nomm & (1u << MM_mode)) return 0;
  if (mt->hmask == 0) {
    n = 1;
    node = noderef(mt->node);
    if (!heapmem_ok(&w->mem, node, sizeof(Node))) return 0;
  } else {
    node = nodes_of(w, mt, &n);
  }
  for (i = 0; i < n; i++) {
    const GCstr *s;
    uint32_t flags = 0, j;
    if (!tvisstr(&node[i].key) || strV(&node[i].key) != mmname_str(w->g, MM_mode) ||
	!tvisstr(&node[i].val))
      continue;
    s = strV(&node[i].val);
    if (!lj_heapref_isobj(w, s, sizeof(GCstr), LJ_TSTR) ||
	!heapmem_ok(&w->mem, strdata(s), (uint64_t)s->len + 1))
      return 0;
    for (j = 0; j < s->len && strdata(s)[j]; j++) {
      if (strdata(s)[j] == 'k') flags |= HPO_WEAKKEY;
      else if (strdata(s)[j] == 'v') flags |= HPO_WEAKVALUE;
    }
    return flags;
  }
  return 0;
}

static uint32_t mode_of(HeapWalk *w, const GCtab *mt)
{
  uint32_t i = (uint32_t)((uintptr_t)mt >> 4) & (HEAPWALK_MODES - 1);
  if (!mt) return 0;
  if (w->mode[i].mt != mt) {
    if (!lj_heapref_isobj(w, mt, sizeof(GCtab), LJ_TTAB)) return 0;
    w->mode[i].flags = read_mode(w, mt);
    w->mode[i].mt = mt;
  }
  return w->mode[i].flags;
}

static void put_number(HeapWalk *w, double d)
{
  if (d >= -9007199254740992.0 && d <= 9007199254740992.0 && d == (double)(int64_t)d) {
    heapout_byte(&w->out, HPK_INT);
    heapout_signed(&w->out, (int64_t)d);
  } else {
    heapout_byte(&w->out, HPK_NUM);
    lj_heapout_bytes(&w->out, &d, sizeof(d));
  }
}

static void put_key(HeapWalk *w, cTValue *key)
{
  if (tvisgcv(key)) {
    heapout_byte(&w->out, HPK_OBJ);
    lj_heapref_value(w, key);
  } else if (tvisint(key)) {
    heapout_byte(&w->out, HPK_INT);
    heapout_signed(&w->out, intV(key));
  } else if (tvisnum(key)) {
    put_number(w, numV(key));
  } else if (tvisbool(key)) {
    heapout_byte(&w->out, boolV(key) ? HPK_TRUE : HPK_FALSE);
  } else {
    heapout_byte(&w->out, HPK_LIGHTUD);
    lj_heapout_uleb(&w->out, key->u64 & LJ_GCVMASK);
  }
}

static uint64_t put_array(HeapWalk *w, const GCtab *t)
{
  cTValue *array = tvref(t->array);
  uint64_t n = t->asize, i, used = 0, next = 0;
  if (n && !heapmem_ok(&w->mem, array, n * sizeof(TValue))) {
    damaged(w);
    n = 0;
  }
  for (i = 0; i < n; i++) {
    if (tvisnil(&array[i])) continue;
    used++;
    if (!tvisgcv(&array[i])) continue;
    lj_heapout_uleb(&w->out, i + 1 - next);
    lj_heapref_value(w, &array[i]);
    next = i + 1;
  }
  heapout_byte(&w->out, 0);
  return used;
}

static int put_tab(HeapWalk *w, const GCtab *t)
{
  const Node *node;
  uint64_t size, n, i, used;
  if (!heapmem_ok(&w->mem, t, sizeof(GCtab))) return 0;
  size = LJ_MAX_COLOSIZE != 0 && t->colo ? sizetabcolo((uint32_t)t->colo & 0x7f)
					 : sizeof(GCtab);
  if (t->asize && (LJ_MAX_COLOSIZE == 0 || t->colo <= 0))
    size += (uint64_t)t->asize * sizeof(TValue);
  if (t->hmask) size += ((uint64_t)t->hmask + 1) * sizeof(Node);
  put_head(w, HPF_TAB, t, size);
  heapout_byte(&w->out, (uint8_t)mode_of(w, tabref(t->metatable)));
  lj_heapref(w, gcrefp(t->metatable, void));
  used = put_array(w, t);
  node = nodes_of(w, t, &n);
  for (i = 0; i < n; i++) {
    if (tvisnil(&node[i].val)) continue;
    used++;
    if (!tvisgcv(&node[i].key) && !tvisgcv(&node[i].val)) continue;
    put_key(w, &node[i].key);
    lj_heapref_value(w, &node[i].val);
  }
  heapout_byte(&w->out, HPK_END);
  lj_heapout_uleb(&w->out, used);
  return 1;
}

/* -- Lists ------------------------------------------------------------------- */

static int put_thread(HeapWalk *w, const lua_State *th)
{
  const GCobj *o;
  uint64_t n = 0;
  if (!heapmem_ok(&w->mem, th, sizeof(lua_State))) return 0;
  put_head(w, HPF_THREAD, th, sizeof(lua_State) + (uint64_t)th->stacksize * sizeof(TValue));
  lj_heapstack(w, th);
  for (o = gcref(th->openupval); o; o = gcref(o->gch.nextgc)) {
    /* Each has a slot of its own. */
    if (!lj_heapref_isobj(w, o, sizeof(GCupval), LJ_TUPVAL) || n++ > th->stacksize)
      return 0;
    put_upval(w, &o->uv);
  }
  return 1;
}

/* Write an object. Returns 0 if it is damaged: then the list ends. */
static int put_object(HeapWalk *w, const GCobj *o)
{
  if (!heapmem_ok(&w->mem, o, sizeof(GChead))) return 0;
  switch (~(uint32_t)o->gch.gct & 0xff) {
  case LJ_TUPVAL & 0xff: return put_upval(w, &o->uv);
  case LJ_TTHREAD & 0xff: return put_thread(w, &o->th);
  case LJ_TPROTO & 0xff: return put_proto(w, &o->pt);
  case LJ_TFUNC & 0xff: return put_func(w, &o->fn);
#if LJ_HASJIT
  case LJ_TTRACE & 0xff: return put_trace(w, (const GCtrace *)o);
#endif
  case LJ_TCDATA & 0xff: return put_cdata(w, &o->cd);
  case LJ_TTAB & 0xff: return put_tab(w, &o->tab);
  case LJ_TUDATA & 0xff: return put_udata(w, &o->ud);
  default: return 0;
  }
}

/* A list that may be a circle without its first object: the mark moves to the current object at
** distances that double (Brent, "An Improved Monte Carlo Factorization Algorithm", 1980).
*/
typedef struct Circle {
  const void *mark;
  uint64_t steps, most;
} Circle;

static int circle_closes(Circle *c, const void *o)
{
  if (o == c->mark) return 1;
  if (c->steps++ == c->most) {
    c->mark = o;
    c->most = c->most * 2 + 1;
    c->steps = 0;
  }
  return 0;
}

/* Look at the clock from time to time. */
static void late(HeapWalk *w)
{
  if (w->objects % OBJECTS_PER_LOOK == 0 && w->out.n > HEAPOUT_BYTES / 2)
    lj_heapout_flush(&w->out);
}

static void put_list(HeapWalk *w, const GCobj *o)
{
  Circle c = { 0 };
  for (; o && !w->out.err; o = gcref(o->gch.nextgc)) {
    if (circle_closes(&c, o) || !put_object(w, o)) {
      damaged(w);
      return;
    }
    late(w);
  }
}

static void put_root(HeapWalk *w, uint8_t kind, uint32_t index, const void *o)
{
  if (!o) return;
  w->own = 0;
  heapout_byte(&w->out, HPF_ROOT);
  heapout_byte(&w->out, kind);
  lj_heapout_uleb(&w->out, index);
  lj_heapref(w, o);
}

/* Objects whose finalizers are due: a circle through the last one. */
static void put_finalized(HeapWalk *w)
{
  const GCobj *last = gcref(w->g->gc.mmudata), *o = last;
  Circle c = { 0 };
  if (!last) return;
  do {
    if (!heapmem_ok(&w->mem, o, sizeof(GChead)) || (o = gcref(o->gch.nextgc)) == NULL ||
	circle_closes(&c, o) || !put_object(w, o)) {
      damaged(w);
      return;
    }
    put_root(w, HPR_FINALIZE, 0, o);
  } while (o != last && !w->out.err);
}

static void put_string_chain(HeapWalk *w, const GCobj *o)
{
  Circle c = { 0 };
  for (; o && !w->out.err; o = gcref(o->gch.nextgc)) {
    if (circle_closes(&c, o) || !lj_heapref_isobj(w, o, sizeof(GCstr), LJ_TSTR)) {
      damaged(w);
      return;
    }
    put_str(w, &o->str, lj_str_size(o->str.len));
    late(w);
  }
}

static void put_strings(HeapWalk *w)
{
  const StrInternState *str = &w->g->str;
  uint64_t i, n = (uint64_t)str->mask + 1;
  put_str(w, &w->g->strempty, 0); /* Part of the state. */
  if ((n & (n - 1)) || !heapmem_ok(&w->mem, str->tab, n * sizeof(GCRef))) {
    damaged(w);
    return;
  }
  for (i = 0; i < n && !w->out.err; i++) /* The lowest bit of an anchor is a flag. */
    put_string_chain(w, (const GCobj *)(gcrefu(str->tab[i]) & ~(uintptr_t)1));
}

/* -- Roots and parts --------------------------------------------------------- */

static void put_current_constant(HeapWalk *w, const void *o)
{
  put_root(w, HPR_TRACE, 0, o);
}

static void put_roots(HeapWalk *w)
{
  global_State *g = w->g;
  const lua_State *mainth = mainthread(g);
  uint32_t i;
  put_root(w, HPR_MAIN, 0, mainth);
  if (heapmem_ok(&w->mem, mainth, sizeof(lua_State)))
    put_root(w, HPR_GLOBALS, 0, gcrefp(mainth->env, void));
  if (tvisgcv(&g->registrytv)) put_root(w, HPR_REGISTRY, 0, gcval(&g->registrytv));
  for (i = 0; i < GCROOT_MAX; i++) {
    int is_type = i >= GCROOT_BASEMT && i <= GCROOT_BASEMT_NUM;
    put_root(w, is_type ? HPR_TYPE : HPR_VM, is_type ? i - GCROOT_BASEMT : i,
	     gcrefp(g->gcroot[i], void));
  }
#if LJ_HASJIT
  if (G2J(g)->cur.traceno) {
    each_constant(w, &G2J(g)->cur, put_current_constant);
    put_root(w, HPR_TRACE, 0, gcrefp(G2J(g)->cur.startpt, void));
  }
#endif
}

static void put_part(HeapWalk *w, uint8_t kind, uint64_t bytes)
{
  if (!bytes) return;
  heapout_byte(&w->out, HPF_PART);
  heapout_byte(&w->out, kind);
  lj_heapout_uleb(&w->out, bytes);
}

static void put_parts(HeapWalk *w)
{
  global_State *g = w->g;
  put_part(w, HPP_STATE, sizeof(GG_State) - sizeof(lua_State));
  put_part(w, HPP_STRINGS, ((uint64_t)g->str.mask + 1) * sizeof(GCRef));
  put_part(w, HPP_BUFFER, sbufsz(&g->tmpbuf));
#if LJ_HASJIT
  {
    const jit_State *J = G2J(g);
    put_part(w, HPP_JIT,
	     (uint64_t)J->sizesnapmap * sizeof(SnapEntry) +
	       (uint64_t)J->sizesnap * sizeof(SnapShot) +
	       (uint64_t)(J->irtoplim - J->irbotlim) * sizeof(IRIns) +
	       (uint64_t)J->sizetrace * sizeof(GCRef));
    put_part(w, HPP_MCODE, J->szallmcarea);
  }
#endif
#if LJ_HASFFI
  {
    const CTState *cts = ctype_ctsG(g);
    if (cts && heapmem_ok(&w->mem, cts, sizeof(CTState)))
      put_part(w, HPP_CTYPES,
	       sizeof(CTState) + (uint64_t)cts->sizetab * sizeof(CType) +
		 (uint64_t)cts->cb.sizeid * sizeof(CTypeID1));
  }
#endif
#if LJ_64
  if (mref(g->gc.lightudseg, uint32_t))
    put_part(w, HPP_LIGHTUD,
	     sizeof(uint32_t) *
	       (uint64_t)(g->gc.lightudnum ? 2u << lj_fls(g->gc.lightudnum) : 2u));
#endif
}

void lj_heapwalk(HeapWalk *w, global_State *g, pid_t pid, int no_strings)
{
  static const uint8_t head[4] = { 'l', 'j', 'h', HPF_VERSION };
  w->g = g;
  w->no_strings = no_strings;
  lj_safeload_forget(&w->mem.load);
  lj_heapout_bytes(&w->out, head, sizeof(head));
  heapout_byte(&w->out, no_strings ? HPF_NO_STRINGS : 0);
  lj_heapout_uleb(&w->out, (uint64_t)pid);
  lj_heapout_uleb(&w->out, (uint64_t)time(NULL));
  put_parts(w);
  put_roots(w);
  put_list(w, gcref(g->gc.root));
  put_finalized(w);
  put_strings(w);
  heapout_byte(&w->out, HPF_END);
  lj_heapout_uleb(&w->out, w->objects);
  lj_heapout_uleb(&w->out, g->gc.total);
  heapout_byte(&w->out, (uint8_t)w->state);
  lj_heapout_end(&w->out);
}
