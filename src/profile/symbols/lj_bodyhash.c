/*
** Body hash: what the bytecode of a Lua function does.
** Context: VM thread; see the header.
*/

#define lj_bodyhash_c
#define LUA_CORE

#include <string.h>

#include "lj_obj.h"
#include "lj_bc.h"
#if LJ_HASFFI
#include "lj_ctype.h"
#endif
#if LJ_HASJIT
#include "lj_dispatch.h"
#include "lj_jit.h"
#endif
#include "profile/base/lj_hash.h"
#include "profile/symbols/lj_bodyhash.h"

typedef struct BodyRead {
  FuncTab *ft;
  HeapRead *read;
  const global_State *g;
  uint32_t work; /* Left of BODYHASH_WORK. */
} BodyRead;

/* Kinds of constants. */
enum { K_STRING = 1, K_NUMBER, K_PRIMITIVE, K_TABLE, K_FUNCTION, K_CDATA };

static int take(BodyRead *b, uint32_t n)
{
  if (b->work < n) return 0;
  b->work -= n;
  return 1;
}

/* -- Instructions ------------------------------------------------------------ */

/* Get the instruction that the start of a trace has replaced. */
static int trace_start(const BodyRead *b, const GCproto *pt, BCReg no, BCIns *ins)
{
#if LJ_HASJIT
  const jit_State *J = G2J(b->g);
  const GCtrace *T;
  if (no >= J->sizetrace || !lj_heapread_ok(b->read, &J->trace[no], sizeof(GCRef)))
    return 0;
  T = (const GCtrace *)gcref(J->trace[no]);
  if (!lj_heapread_isobj(b->read, T, sizeof(GCtrace), LJ_TTRACE) ||
      (const GCproto *)gcref(T->startpt) != pt)
    return 0;
  *ins = T->startins;
  return bc_op(*ins) != BC_JLOOP;
#else
  UNUSED(b)
  , UNUSED(pt)
  , UNUSED(no)
  , UNUSED(ins);
  return 0;
#endif
}

/* Restore an instruction. The operand D of the ends of loops is where the loop begins, which
** its first instruction tells, too; the number of a trace may have replaced it. Returns 0 if
** the instruction is not valid.
*/
static int as_compiled(const BodyRead *b, const GCproto *pt, BCIns *ins)
{
  if (bc_op(*ins) == BC_JLOOP && !trace_start(b, pt, bc_d(*ins), ins)) return 0;
  switch (bc_op(*ins)) {
  case BC_JFORI: setbc_op(ins, BC_FORI); break;
  case BC_FORL:
  case BC_IFORL:
  case BC_JFORL: *ins = BCINS_AD(BC_FORL, bc_a(*ins), 0); break;
  case BC_ITERL:
  case BC_IITERL:
  case BC_JITERL: *ins = BCINS_AD(BC_ITERL, bc_a(*ins), 0); break;
  case BC_ILOOP: setbc_op(ins, BC_LOOP); break;
  case BC_FUNCF:
  case BC_IFUNCF:
  case BC_JFUNCF: *ins = BCINS_AD(BC_FUNCF, bc_a(*ins), 0); break;
  case BC_FUNCV:
  case BC_IFUNCV:
  case BC_JFUNCV: *ins = BCINS_AD(BC_FUNCV, bc_a(*ins), 0); break;
  case BC_TNEW:
    *ins = BCINS_AD(BC_TNEW, bc_a(*ins), 0);
    break; /* The JIT may bump the size. */
  /* Both are a guess of the parser, which the VM takes back where it was wrong. */
  case BC_ISNEXT: setbc_op(ins, BC_JMP); break;
  case BC_ITERN: setbc_op(ins, BC_ITERC); break;
  default: break;
  }
  return bc_op(*ins) < BC__MAX;
}

static int add_code(BodyRead *b, const GCproto *pt, uint64_t *h)
{
  const BCIns *bc = proto_bc(pt);
  BCPos i;
  for (i = 0; i < pt->sizebc; i++) {
    BCIns ins = bc[i];
    if (!as_compiled(b, pt, &ins)) return 0;
    *h = hash_next(*h, ins);
  }
  return 1;
}

/* -- Constants --------------------------------------------------------------- */

static int add_string(BodyRead *b, const GCstr *s, uint64_t *h)
{
  uint32_t n;
  if (!lj_heapread_isobj(b->read, s, sizeof(GCstr), LJ_TSTR)) return 0;
  n = s->len < BODYHASH_STRING ? s->len : BODYHASH_STRING;
  if (!take(b, n / 8 + 1) || !lj_heapread_ok(b->read, strdata(s), n + 1)) return 0;
  *h = hash_next(*h, ((uint64_t)K_STRING << 32) | s->len);
  *h = hash_bytes(*h, (const uint8_t *)strdata(s), (const uint8_t *)strdata(s) + n);
  return 1;
}

static void add_number(lua_Number n, uint64_t *h)
{
  uint64_t u;
  memcpy(&u, &n, sizeof(u));
  *h = hash_next(hash_next(*h, K_NUMBER), u);
}

static int add_value(BodyRead *b, cTValue *o, uint64_t *h)
{
  if (tvisstr(o)) return add_string(b, (const GCstr *)heapread_obj(o), h);
  if (tvisnumber(o)) add_number(numberVnum(o), h);
  else if (tvispri(o)) *h = hash_next(*h, ((uint64_t)K_PRIMITIVE << 32) | itype(o));
  else return 0;
  return 1;
}

/* The order of a table's slots may differ: its hash is a sum. The JIT may add keys without values. */
static int add_table(BodyRead *b, const GCtab *t, uint64_t *h)
{
  uint64_t sum = 0;
  uint32_t i;
  if (!lj_heapread_isobj(b->read, t, sizeof(GCtab), LJ_TTAB) ||
      !lj_heapread_istab(b->read, t) || t->asize > HEAPREAD_TABLE ||
      t->hmask >= HEAPREAD_TABLE || !take(b, t->asize + t->hmask + 1))
    return 0;
  for (i = 0; i < t->asize; i++) {
    cTValue *o = tvref(t->array) + i;
    uint64_t one = 0;
    if (!lj_heapread_ok(b->read, o, sizeof(TValue))) return 0;
    if (tvisnil(o)) continue;
    add_number((lua_Number)i, &one);
    if (!add_value(b, o, &one)) return 0;
    sum += one;
  }
  for (i = 0; i <= t->hmask; i++) {
    const Node *n = noderef(t->node) + i;
    uint64_t one = 0;
    if (!lj_heapread_ok(b->read, n, sizeof(Node))) return 0;
    if (tvisnil(&n->val)) continue;
    if (!add_value(b, &n->key, &one) || !add_value(b, &n->val, &one)) return 0;
    sum += one;
  }
  *h = hash_next(hash_next(*h, K_TABLE), sum);
  return 1;
}

static int add_cdata(BodyRead *b, const GCcdata *cd, uint64_t *h)
{
#if LJ_HASFFI
  const uint8_t *p = (const uint8_t *)(cd + 1);
  size_t size;
  if (!lj_heapread_ok(b->read, cd, sizeof(GCcdata))) return 0;
  size = cd->ctypeid == CTID_COMPLEX_DOUBLE ? 16 : 8;
  if (!lj_heapread_ok(b->read, p, size)) return 0;
  *h = hash_next(*h, ((uint64_t)K_CDATA << 32) | cd->ctypeid);
  *h = hash_bytes(*h, p, p + size);
  return 1;
#else
  UNUSED(b)
  , UNUSED(cd)
  , UNUSED(h);
  return 0;
#endif
}

static uint64_t body_of(BodyRead *b, const GCproto *pt, uint32_t depth);

/* A function of the table keeps its hash. */
static int add_function(BodyRead *b, const GCproto *pt, uint32_t depth, uint64_t *h)
{
  FuncEntry *fe = lj_functab_find(b->ft, pt);
  uint64_t body = fe && fe->body ? fe->body : body_of(b, pt, depth);
  if (body == 0) return 0;
  if (fe) fe->body = body;
  *h = hash_next(hash_next(*h, K_FUNCTION), body);
  return 1;
}

static int add_object(BodyRead *b, const GCobj *o, uint32_t depth, uint64_t *h)
{
  if (((uintptr_t)o & 7) != 0 || !lj_heapread_ok(b->read, o, sizeof(GChead))) return 0;
  switch (o->gch.gct) {
  case (uint8_t)~LJ_TSTR: return add_string(b, &o->str, h);
  case (uint8_t)~LJ_TTAB: return add_table(b, &o->tab, h);
  case (uint8_t)~LJ_TCDATA: return add_cdata(b, &o->cd, h);
  case (uint8_t)~LJ_TPROTO: return depth > 0 && add_function(b, &o->pt, depth - 1, h);
  default: return 0;
  }
}

static int add_constants(BodyRead *b, const GCproto *pt, uint32_t depth, uint64_t *h)
{
  const GCRef *kgc = mref(pt->k, const GCRef);
  cTValue *kn = mref(pt->k, cTValue);
  uint32_t i;
  for (i = 1; i <= pt->sizekgc; i++)
    if (!add_object(b, gcref(*(kgc - (ptrdiff_t)i)), depth, h)) return 0;
  for (i = 0; i < pt->sizekn; i++)
    if (!add_value(b, kn + i, h)) return 0;
  return 1;
}

/* -- Functions --------------------------------------------------------------- */

/* Does a prototype hold n elements of a size at p? */
static int is_within(const GCproto *pt, const char *p, uint64_t n, uint64_t size)
{
  const char *bot = (const char *)(pt + 1), *end = (const char *)pt + pt->sizept;
  return p >= bot && p <= end && n * size <= (uint64_t)(end - p);
}

/* Hash of a function, 0 for none. */
static uint64_t body_of(BodyRead *b, const GCproto *pt, uint32_t depth)
{
  const char *k;
  uint64_t h;
  if (!lj_heapread_isobj(b->read, pt, sizeof(GCproto), LJ_TPROTO) ||
      pt->sizept < sizeof(GCproto))
    return 0;
  k = mref(pt->k, const char);
  if (((uintptr_t)k & 7) != 0 ||
      !is_within(pt, (const char *)proto_bc(pt), pt->sizebc, sizeof(BCIns)) ||
      !is_within(pt, k, pt->sizekn, sizeof(TValue)) ||
      !is_within(pt, k - pt->sizekgc * sizeof(GCRef), pt->sizekgc, sizeof(GCRef)) ||
      !take(b, pt->sizebc) || !take(b, pt->sizekgc) || !take(b, pt->sizekn) ||
      !lj_heapread_ok(b->read, pt, pt->sizept))
    return 0;
  h = hash_next(0, ((uint64_t)pt->numparams << 16) | ((uint64_t)pt->sizeuv << 8) |
		     (pt->flags & PROTO_VARARG));
  h = hash_next(h, ((uint64_t)pt->sizebc << 32) | pt->sizekgc);
  if (!add_code(b, pt, &h) || !add_constants(b, pt, depth, &h)) return 0;
  return h ? h : 1;
}

void lj_bodyhash_all(FuncTab *ft, HeapRead *r, const global_State *g)
{
  BodyRead b = { ft, r, g, BODYHASH_WORK };
  uint32_t i;
  for (i = 0; i < FUNCTAB_FUNCS; i++) {
    FuncEntry *fe = &ft->func[i];
    if (fe->fid && fe->pt && !fe->body && fe->pt->firstline != ~(BCLine)0)
      fe->body = body_of(&b, fe->pt, BODYHASH_DEPTH);
  }
}
