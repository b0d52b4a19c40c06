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
  int limit;     /* The limit that the last function met. */
} BodyRead;

enum { LIMIT_NONE, LIMIT_LEVELS, LIMIT_WORK };

#define COST_OBJECT \
  256 /* An object may cost a miss of the cache: as much as so many bytes. */

/* Kinds of constants. */
enum { K_STRING = 1, K_NUMBER, K_PRIMITIVE, K_TABLE, K_FUNCTION, K_CDATA };

/* Pay for an object of so many bytes. */
static int take(BodyRead *b, uint64_t bytes)
{
  if (b->work < bytes + COST_OBJECT) {
    b->limit = LIMIT_WORK;
    return 0;
  }
  b->work -= (uint32_t)bytes + COST_OBJECT;
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

static int add_bytes(BodyRead *b, const char *p, uint32_t n, uint64_t *h)
{
  if (n && !lj_heapread_ok(b->read, p, n)) return 0;
  *h = hash_bytes(*h, (const uint8_t *)p, (const uint8_t *)p + n);
  return 1;
}

/* The end of a long string counts, too. */
static int add_string(BodyRead *b, const GCstr *s, uint64_t *h)
{
  uint32_t n, tail;
  if (!lj_heapread_isobj(b->read, s, sizeof(GCstr), LJ_TSTR)) return 0;
  n = s->len < BODYHASH_STRING ? s->len : BODYHASH_STRING;
  tail = s->len - n < BODYHASH_TAIL ? s->len - n : BODYHASH_TAIL;
  if (!take(b, n + tail)) return 0;
  *h = hash_next(*h, ((uint64_t)K_STRING << 32) | s->len);
  return add_bytes(b, strdata(s), n, h) &&
	 add_bytes(b, strdata(s) + (s->len - tail), tail, h);
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
      t->hmask >= HEAPREAD_TABLE ||
      !take(b, t->asize * sizeof(TValue) + (t->hmask + 1) * sizeof(Node)))
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

static uint64_t body_of(BodyRead *b, const GCproto *pt, uint32_t levels, uint32_t *height);

static int add_function(BodyRead *b, const GCproto *pt, uint32_t levels, uint64_t *h,
			uint32_t *height)
{
  uint32_t inner;
  uint64_t body = body_of(b, pt, levels, &inner);
  if (body == 0) return 0;
  if (*height < inner + 1) *height = inner + 1;
  *h = hash_next(hash_next(*h, K_FUNCTION), body);
  return 1;
}

static int add_object(BodyRead *b, const GCobj *o, uint32_t levels, uint64_t *h,
		      uint32_t *height)
{
  if (((uintptr_t)o & 7) != 0 || !lj_heapread_ok(b->read, o, sizeof(GChead))) return 0;
  switch (o->gch.gct) {
  case (uint8_t)~LJ_TSTR: return add_string(b, &o->str, h);
  case (uint8_t)~LJ_TTAB: return add_table(b, &o->tab, h);
  case (uint8_t)~LJ_TCDATA: return add_cdata(b, &o->cd, h);
  case (uint8_t)~LJ_TPROTO: return add_function(b, &o->pt, levels - 1, h, height);
  default: return 0;
  }
}

static int add_constants(BodyRead *b, const GCproto *pt, uint32_t levels, uint64_t *h,
			 uint32_t *height)
{
  const GCRef *kgc = mref(pt->k, const GCRef);
  cTValue *kn = mref(pt->k, cTValue);
  uint32_t i;
  for (i = 1; i <= pt->sizekgc; i++)
    if (!add_object(b, gcref(*(kgc - (ptrdiff_t)i)), levels, h, height)) return 0;
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

static int is_own_name(const FuncEntry *fe, const char *name, size_t len)
{
  return fe && len > 0 && fe->namelen == len && memcmp(fe->name, name, len) == 0;
}

/* Which outer variables a function uses: their names, and whether the enclosing function has
** them itself. Their slots do not count: they change with variables that the function does not
** use. Without debug information, there are no names. Of a function that calls itself, its own
** name does not count.
*/
static int add_upvalues(const GCproto *pt, const FuncEntry *fe, uint64_t *h)
{
  const uint16_t *uv = proto_uv(pt);
  const char *name = (const char *)proto_uvinfo(pt), *end = (const char *)pt + pt->sizept;
  int has_names = name > (const char *)pt && name < end;
  uint32_t i;
  if (((uintptr_t)uv & 1) != 0 || !is_within(pt, (const char *)uv, pt->sizeuv, sizeof(*uv)))
    return 0;
  for (i = 0; i < pt->sizeuv; i++) {
    *h = hash_next(*h, uv[i] & PROTO_UV_LOCAL);
    if (has_names) {
      const char *next = (const char *)memchr(name, 0, (size_t)(end - name));
      if (!next) return 0;
      if (is_own_name(fe, name, (size_t)(next - name))) *h = hash_next(*h, K_FUNCTION);
      else *h = hash_bytes(*h, (const uint8_t *)name, (const uint8_t *)next + 1);
      name = next + 1;
    }
  }
  return 1;
}

/* Read a function of at most so many levels. */
static uint64_t read_body(BodyRead *b, const GCproto *pt, uint32_t levels, uint32_t *height)
{
  const char *k;
  uint64_t h;
  *height = 1;
  if (!lj_heapread_isobj(b->read, pt, sizeof(GCproto), LJ_TPROTO) ||
      pt->sizept < sizeof(GCproto))
    return 0;
  k = mref(pt->k, const char);
  if (((uintptr_t)k & 7) != 0 ||
      !is_within(pt, (const char *)proto_bc(pt), pt->sizebc, sizeof(BCIns)) ||
      !is_within(pt, k, pt->sizekn, sizeof(TValue)) ||
      !is_within(pt, k - pt->sizekgc * sizeof(GCRef), pt->sizekgc, sizeof(GCRef)) ||
      !take(b, pt->sizept) || !lj_heapread_ok(b->read, pt, pt->sizept))
    return 0;
  h = hash_next(0, ((uint64_t)pt->numparams << 16) | ((uint64_t)pt->sizeuv << 8) |
		     (pt->flags & PROTO_VARARG));
  h = hash_next(h, ((uint64_t)pt->sizebc << 32) | pt->sizekgc);
  if (!add_code(b, pt, &h) || !add_upvalues(pt, lj_functab_find(b->ft, pt), &h) ||
      !add_constants(b, pt, levels, &h, height))
    return 0;
  return h ? h : 1;
}

/* Hash and height of a function of at most so many levels, 0 for none. An entry of the table
** keeps what does not depend on the functions around it.
*/
static uint64_t body_of(BodyRead *b, const GCproto *pt, uint32_t levels, uint32_t *height)
{
  FuncEntry *fe = lj_functab_find(b->ft, pt);
  uint64_t body;
  if (fe && fe->height) {
    *height = fe->height;
    if (fe->height <= levels) return fe->body;
    if (fe->height != FUNC_NO_BODY) b->limit = LIMIT_LEVELS;
    return 0;
  }
  if (levels == 0) {
    b->limit = LIMIT_LEVELS;
    return 0;
  }
  body = read_body(b, pt, levels, height);
  if (fe && body) {
    fe->body = body;
    fe->height = (uint8_t)*height;
  } else if (fe && b->limit == LIMIT_NONE) {
    fe->height = FUNC_NO_BODY;
  }
  return body;
}

void lj_bodyhash_all(FuncTab *ft, HeapRead *r, const global_State *g)
{
  BodyRead b = { ft, r, g, BODYHASH_WORK, LIMIT_NONE };
  uint32_t i;
  for (i = 0; i < FUNCTAB_FUNCS; i++) {
    FuncEntry *fe = &ft->func[i];
    uint32_t height, work = b.work;
    uint64_t body;
    if (!fe->fid || !fe->pt || fe->height || fe->pt->firstline == ~(BCLine)0) continue;
    b.limit = LIMIT_NONE;
    body = body_of(&b, fe->pt, BODYHASH_LEVELS, &height);
    /* The next dump goes on. But a function that takes all gets no second try. */
    if (b.limit == LIMIT_WORK && work < BODYHASH_WORK) break;
    fe->body = body;
    fe->height = body ? (uint8_t)height : FUNC_NO_BODY;
    if (b.limit == LIMIT_WORK) break;
  }
}
