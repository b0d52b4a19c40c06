/*
** Call names: the name that a caller uses for a Lua function.
** Context: handler; see the header.
*/

#define lj_callname_c
#define LUA_CORE

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_frame.h"
#include "lj_tab.h"
#include "profile/symbols/lj_callname.h"
#include "profile/symbols/lj_bcname.h"

#define LOOKUPS_MAX 12                       /* Names searched in one sample. */
#define INDEX_MAX   8                        /* Tables of an __index chain. */
#define NODES_MAX   64                       /* Nodes of a hash chain. */
#define FUNC_SIZE   offsetof(GCfuncL, uvptr) /* Without upvalues. */

/* A call. In compiled code, the caller may have no frame of its own. */
typedef struct Call {
  FuncTab *ft;
  SafeLoad *pk;
  global_State *g;
  const GCproto *pt;       /* Prototype of the called function, NULL for C. */
  const GCfunc *fn;        /* The function, NULL if only pt is known. */
  const GCproto *caller;   /* Prototype of the caller. */
  const GCfuncL *callerfn; /* The caller, NULL if only that is known. */
  uintptr_t slots;         /* Live slots of the caller, */
  uintptr_t slots_end;     /* up to here; 0 for none. */
  cTValue *arg[2];         /* First two arguments, NULL if unknown. */
  TValue *found;           /* Room for the value of a field. */
} Call;

/* -- Checked reading of values ---------------------------------------------- */

static int gcobj_ok(SafeLoad *pk, const void *o, size_t sz, uint32_t it)
{
  return ((uintptr_t)o & 7) == 0 && lj_safeload_ok(pk, o, sz) &&
	 ((const GChead *)o)->gct == (uint8_t)~it;
}

/* Raw lookup of a string key. Returns NULL without such a field. While the VM resizes a
** table, its size and its nodes do not fit, and the node may be outside of the VM's memory.
*/
static cTValue *tab_getstr(const Call *c, const GCtab *t, const GCstr *key)
{
  const Node *n;
  Node node;
  int i;
  if (!gcobj_ok(c->pk, t, sizeof(GCtab), LJ_TTAB) ||
      !lj_safeload_ok(c->pk, key, sizeof(GCstr)))
    return NULL;
  n = hashstr(t, key);
  for (i = 0; n && i < NODES_MAX; i++) {
    if (((uintptr_t)n & 7) != 0 || !lj_safeload_copy(c->pk, &node, n, sizeof(node))) break;
    if (tvisstr(&node.key) && strV(&node.key) == key) {
      if (tvisnil(&node.val)) return NULL;
      *c->found = node.val;
      return c->found;
    }
    n = nextnode(&node);
  }
  return NULL;
}

/* The table of a reference that may be NULL. */
static const GCtab *table_of(GCRef r)
{
  return (const GCtab *)(uintptr_t)gcrefu(r);
}

/* Metatable of a value, NULL if it has none. */
static const GCtab *value_meta(const Call *c, cTValue *o)
{
  if (tvistab(o)) {
    const GCtab *t = tabV(o);
    return gcobj_ok(c->pk, t, sizeof(GCtab), LJ_TTAB) ? table_of(t->metatable) : NULL;
  } else if (tvisudata(o)) {
    const GCudata *ud = udataV(o);
    return gcobj_ok(c->pk, ud, sizeof(GCudata), LJ_TUDATA) ? table_of(ud->metatable) : NULL;
  } else if (itypemap(o) > (uint32_t)~LJ_TNUMX) {
    return NULL;
  }
  return table_of(basemt_obj(c->g, o));
}

static cTValue *value_metafield(const Call *c, cTValue *o, MMS mm)
{
  const GCtab *mt = value_meta(c, o);
  return mt ? tab_getstr(c, mt, mmname_str(c->g, mm)) : NULL;
}

/* A field of a value, through tables in __index if needed. */
static cTValue *value_index(const Call *c, cTValue *o, const GCstr *key)
{
  int i;
  for (i = 0; o && i < INDEX_MAX; i++) {
    if (tvistab(o)) {
      cTValue *v = tab_getstr(c, tabV(o), key);
      if (v) return v;
    }
    o = value_metafield(c, o, MM_index);
  }
  return NULL;
}

/* Is a value the running function, or one of the same prototype? */
static int value_iscallee(const Call *c, cTValue *o)
{
  const GCfunc *fn;
  if (!o || !tvisfunc(o)) return 0;
  fn = funcV(o);
  if (fn == c->fn) return 1;
  return c->pt && gcobj_ok(c->pk, fn, FUNC_SIZE, LJ_TFUNC) && isluafunc(fn) &&
	 mref(fn->l.pc, const BCIns) == proto_bc(c->pt);
}

/* A slot of the caller. */
static cTValue *caller_slot(const Call *c, BCReg slot)
{
  uintptr_t p = c->slots + slot * sizeof(TValue);
  if (!c->slots || p >= c->slots_end ||
      !lj_safeload_ok(c->pk, (const void *)p, sizeof(TValue)))
    return NULL;
  return (cTValue *)p;
}

static cTValue *caller_upval(const Call *c, uint32_t idx)
{
  const GCfuncL *fn = c->callerfn;
  const GCupval *uv;
  uintptr_t v;
  if (!fn || idx >= fn->nupvalues || !lj_safeload_ok(c->pk, &fn->uvptr[idx], sizeof(GCRef)))
    return NULL;
  uv = (const GCupval *)gcref(fn->uvptr[idx]);
  if (!gcobj_ok(c->pk, uv, sizeof(GCupval), LJ_TUPVAL)) return NULL;
  v = (uintptr_t)uvval(uv);
  return (v & 7) == 0 && lj_safeload_ok(c->pk, (const void *)v, sizeof(TValue))
	   ? (cTValue *)v
	   : NULL;
}

static cTValue *caller_global(const Call *c, const GCstr *key)
{
  const GCtab *env = table_of(c->callerfn ? c->callerfn->env : mainthread(c->g)->env);
  return tab_getstr(c, env, key);
}

/* -- Names of calls --------------------------------------------------------- */

/* Value that a path leads to now, NULL if unknown. */
static cTValue *path_value(const Call *c, const NamePath *path)
{
  const NameStep *st = &path->step[0];
  cTValue *o = NULL;
  uint32_t i;
  if (path->n == 0) return NULL;
  switch (st->kind) {
  case STEP_LOCAL: o = caller_slot(c, st->idx); break;
  case STEP_UPVAL: o = caller_upval(c, st->idx); break;
  case STEP_GLOBAL: o = caller_global(c, st->key); break;
  default: break;
  }
  for (i = 1; i < path->n && o; i++) o = value_index(c, o, path->step[i].key);
  return o;
}

/* Name a function that a call instruction calls. */
static int name_call(const Call *c, FuncEntry *fe, BCPos pos, BCReg slot)
{
  const NameStep *last;
  NamePath path;
  NamePart part[NAMEPATH_MAX];
  cTValue *o;
  uint32_t n;
  lj_bcname_slot(c->pk, c->caller, pos, slot, &path);
  if (path.n == 0) return 0;
  last = &path.step[path.n - 1];
  o = path_value(c, &path);
  if (!o && last->kind == STEP_METHOD && c->arg[0])
    o = value_index(c, c->arg[0], last->key);
  if (!value_iscallee(c, o)) return 0;
  /* The name has the field of a caller's variable, not the variable. */
  n = lj_bcname_join(&path, part);
  if (n > 1 && (last->kind == STEP_METHOD || path.step[0].kind == STEP_LOCAL)) {
    part[0] = part[n - 1];
    n = 1;
  }
  if (n == 0 || part[n - 1].len == 0) return 0;
  lj_functab_setname(fe, NAME_CALL, part, n);
  return 1;
}

static void name_role(FuncEntry *fe, const char *role)
{
  NamePart part;
  part.s = role;
  part.len = 0;
  while (role[part.len]) part.len++;
  lj_functab_setname(fe, NAME_ROLE, &part, 1);
}

/* Name a function that is a metamethod of one of its arguments. */
static int name_metamethod(const Call *c, FuncEntry *fe, MMS mm)
{
  NamePart part;
  int i;
  for (i = 0; i < 2; i++)
    if (c->arg[i] && value_iscallee(c, value_metafield(c, c->arg[i], mm))) {
      if (!lj_bcname_str(c->pk, mmname_str(c->g, mm), &part)) return 0;
      lj_functab_setname(fe, NAME_ROLE, &part, 1);
      return 1;
    }
  return 0;
}

/* May this sample search one more name? */
static int lookup_begin(const Call *c)
{
  FuncTab *ft = c->ft;
  if (ft->lookups_gen != c->pk->generation) {
    ft->lookups_gen = c->pk->generation;
    ft->lookups = 0;
  }
  return ft->lookups++ < LOOKUPS_MAX;
}

/* Name a function by the instruction that called it. */
static void name_site(const Call *c, FuncEntry *fe, uintptr_t pc)
{
  BCPos pos = (BCPos)((pc - (uintptr_t)proto_bc(c->caller)) / sizeof(BCIns));
  BCIns ins;
  MMS mm;
  if (lj_callname_isdone(fe, pc) || pos-- == 0 || !lookup_begin(c) ||
      !lj_bcname_ins(c->pk, c->caller, pos, &ins))
    return;
  fe->site = (uint32_t)pc ^ (uint32_t)(pc >> 32);
  mm = bcmode_mm(bc_op(ins));
  if (bc_op(ins) == BC_ITERC) {
    if (value_iscallee(c, caller_slot(c, bc_a(ins) - 3))) name_role(fe, "for iterator");
  } else if (mm == MM_call) {
    if (name_call(c, fe, pos, bc_a(ins))) return;
    name_metamethod(c, fe, MM_call);
  } else if (mm < MM__MAX && !name_metamethod(c, fe, mm) && mm == MM_le) {
    name_metamethod(c, fe, MM_lt);
  }
  fe->tries++;
}

/* Read the Lua function of a valid frame. */
static const GCfunc *frame_luafunc(SafeLoad *pk, uintptr_t f)
{
  cTValue *o = (cTValue *)(f - 8);
  const GCfunc *fn;
  if (!lj_safeload_ok(pk, o, sizeof(TValue)) || !tvisfunc(o)) return NULL;
  fn = funcV(o);
  return gcobj_ok(pk, fn, FUNC_SIZE, LJ_TFUNC) && isluafunc(fn) ? fn : NULL;
}

/* The arguments are in the slots; of a vararg function, some are below them. A C function may have
** put other values there.
*/
static void call_args(Call *c, const CallFrame *cf)
{
  uint32_t i;
  for (i = 0; i < 2; i++) {
    int in_slots = c->pt && i < c->pt->numparams;
    uintptr_t p = (in_slots ? cf->slots : cf->f + 8) + i * sizeof(TValue);
    if ((in_slots || !c->pt || (c->pt->flags & PROTO_VARARG)) &&
	lj_safeload_ok(c->pk, (const void *)p, sizeof(TValue)))
      c->arg[i] = (cTValue *)p;
  }
}

void lj_callname_frame(FuncTab *ft, FuncEntry *fe, SafeLoad *pk, global_State *g,
		       const CallFrame *cf)
{
  TValue found;
  Call c = { ft, pk, g, fe->pt, cf->fn, NULL, NULL, 0, 0, { NULL, NULL }, &found };
  uint64_t link = *(const uint64_t *)cf->f;
  const GCfunc *fn;
  if ((link & FRAME_TYPEP) == FRAME_VARG) return;
  call_args(&c, cf);
  switch (link & FRAME_TYPE) {
  case FRAME_CONT:
    if ((link & FRAME_P) != 0) return; /* FRAME_PCALL */
    if (LJ_HASFFI && *(const uint64_t *)(cf->f - 24) == LJ_CONT_FFI_CALLBACK) {
      name_role(fe, "ffi callback");
      return;
    }
    break;
  case FRAME_LUA: break;
  default: return;
  }
  fn = cf->pc ? frame_luafunc(pk, cf->prev) : NULL;
  if (!fn) return;
  c.caller = funcproto(fn);
  c.callerfn = &fn->l;
  c.slots = cf->prev + 8;
  c.slots_end = cf->f - 8;
  name_site(&c, fe, cf->pc);
}

void lj_callname_cfunc(FuncTab *ft, CFuncEntry *e, SafeLoad *pk, global_State *g,
		       const CallFrame *cf)
{
  FuncEntry fe;
  fe.pt = NULL;
  fe.rank = NAME_NONE;
  fe.namelen = 0;
  fe.tries = 0;
  fe.site = 0;
  e->tries++;
  lj_callname_frame(ft, &fe, pk, g, cf);
  if (fe.namelen) lj_cfunctab_called(&ft->cfuncs, e, fe.name, fe.namelen);
}

LJ_STATIC_ASSERT(CFRAME_OFS_ERRF == CFRAME_OFS_NRES + 4);

int lj_callname_isfinalizer(SafeLoad *pk, const global_State *g, uintptr_t f,
			    uintptr_t vmframe)
{
  uintptr_t w;
  return (*(const uint64_t *)f & FRAME_TYPEP) == FRAME_CP && (g->hookmask & HOOK_GC) &&
	 lj_safeload_word(pk, vmframe + CFRAME_OFS_NRES, &w) && (int32_t)(w >> 32) == -1;
}

void lj_callname_finalizer(FuncEntry *fe)
{
  name_role(fe, "__gc");
}

void lj_callname_cfinalizer(FuncTab *ft, CFuncEntry *e)
{
  lj_cfunctab_called(&ft->cfuncs, e, "__gc", 4);
}

int lj_callname_isfinal(const FuncEntry *fe, const global_State *g, const CallFrame *cf)
{
  uint64_t link = *(const uint64_t *)cf->f;
  switch (link & FRAME_TYPE) {
  case FRAME_C: return (link & FRAME_TYPEP) != FRAME_CP || !(g->hookmask & HOOK_GC);
  case FRAME_CONT:
    if ((link & FRAME_P) != 0) return 1;
    if (LJ_HASFFI && *(const uint64_t *)(cf->f - 24) == LJ_CONT_FFI_CALLBACK)
      return fe->rank != NAME_NONE;
    break;
  case FRAME_LUA: break;
  default: return 1;
  }
  return !cf->pc || lj_callname_isdone(fe, cf->pc);
}

void lj_callname_inlined(FuncTab *ft, FuncEntry *fe, SafeLoad *pk, global_State *g,
			 const GCproto *caller, uintptr_t pc)
{
  TValue found;
  Call c = { ft, pk, g, fe->pt, NULL, caller, NULL, 0, 0, { NULL, NULL }, &found };
  name_site(&c, fe, pc);
}
