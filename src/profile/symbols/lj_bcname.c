/*
** Bytecode names: variables and fields of a prototype.
** Context: handler, VM thread; see the header.
*/

#define lj_bcname_c
#define LUA_CORE

#include <string.h>

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_debug.h"
#include "profile/symbols/lj_bcname.h"

#define SCAN_BACK  400   /* Instructions searched for a definition. */
#define SCAN_STORE 8     /* Instructions from a function to its store. */
#define SCAN_INFO  16384 /* Bytes of debug information. */

/* -- Checked reading -------------------------------------------------------- */

int lj_bcname_ins(SafeLoad *pk, const GCproto *pt, BCPos pos, BCIns *ins)
{
  const BCIns *p = proto_bc(pt) + pos;
  if (pos >= pt->sizebc || !lj_safeload_ok(pk, p, sizeof(BCIns))) return 0;
  *ins = *p;
  return bc_op(*ins) < BC__MAX;
}

int lj_bcname_str(SafeLoad *pk, const GCstr *s, NamePart *np)
{
  if (((uintptr_t)s & 7) != 0 || !lj_safeload_ok(pk, s, sizeof(GCstr)) ||
      s->gct != (uint8_t)~LJ_TSTR || s->len == 0)
    return 0;
  np->s = strdata(s);
  np->len = s->len < FUNCTAB_NAME_MAX ? s->len : FUNCTAB_NAME_MAX;
  return lj_safeload_ok(pk, np->s, np->len);
}

/* A collectable constant, by the operand of an instruction. */
static const GCobj *proto_const(SafeLoad *pk, const GCproto *pt, BCReg d)
{
  const GCRef *k = mref(pt->k, const GCRef) - 1 - (ptrdiff_t)d;
  const GCobj *o;
  if (d >= pt->sizekgc || ((uintptr_t)k & 7) != 0 || !lj_safeload_ok(pk, k, sizeof(GCRef)))
    return NULL;
  o = gcref(*k);
  if (((uintptr_t)o & 7) != 0 || !lj_safeload_ok(pk, o, sizeof(GCstr))) return NULL;
  return o;
}

static int const_str(SafeLoad *pk, const GCproto *pt, BCReg d, NameStep *st)
{
  const GCobj *o = proto_const(pk, pt, d);
  if (!o) return 0;
  st->key = &o->str;
  return lj_bcname_str(pk, st->key, &st->name);
}

/* Bytes of debug information; they end with the prototype at the latest. */
typedef struct Info {
  SafeLoad *pk;
  const uint8_t *p, *end;
  uintptr_t page; /* Page that was readable. */
} Info;

static int info_init(Info *in, SafeLoad *pk, const GCproto *pt, const uint8_t *p)
{
  const uint8_t *bot = (const uint8_t *)pt;
  in->pk = pk;
  in->p = p;
  in->end = bot + pt->sizept;
  if (p < bot || p >= in->end) return 0; /* No debug information. */
  if ((size_t)(in->end - p) > SCAN_INFO) in->end = p + SCAN_INFO;
  in->page = 0;
  return 1;
}

/* The next byte, -1 at the end. */
static int info_byte(Info *in)
{
  uintptr_t page = (uintptr_t)in->p >> SAFELOAD_PAGE_BITS;
  if (in->p >= in->end) return -1;
  if (page != in->page) {
    if (!lj_safeload_ok(in->pk, in->p, 1)) return -1;
    in->page = page;
  }
  return *in->p++;
}

static int info_uleb(Info *in, uint32_t *v)
{
  uint32_t x = 0, shift = 0;
  int b;
  do {
    b = info_byte(in);
    if (b < 0 || shift > 28) return 0;
    x |= (uint32_t)(b & 0x7f) << shift;
    shift += 7;
  } while (b >= 0x80);
  *v = x;
  return 1;
}

/* Pass a string. Gives its beginning, FUNCTAB_NAME_MAX bytes at most. */
static int info_str(Info *in, NamePart *np)
{
  int b;
  np->s = (const char *)in->p;
  do b = info_byte(in);
  while (b > 0);
  np->len = (uint32_t)((const char *)in->p - 1 - np->s);
  if (np->len > FUNCTAB_NAME_MAX) np->len = FUNCTAB_NAME_MAX;
  return b == 0;
}

/* The next variable of the debug information. Returns 0 at the end. start: position where it begins, as a
** sum; len: positions where it lives.
*/
static int info_var(Info *in, NamePart *np, BCPos *start, BCPos *len)
{
  uint32_t delta, n;
  int kind = info_byte(in);
  if (kind <= VARNAME_END) return 0;
  np->len = 0; /* The VM's own variables have a number, no name. */
  if (kind >= VARNAME__MAX) {
    in->p--;
    if (!info_str(in, np)) return 0;
  }
  if (!info_uleb(in, &delta) || !info_uleb(in, &n)) return 0;
  *start += delta;
  *len = n;
  return 1;
}

int lj_bcname_local(SafeLoad *pk, const GCproto *pt, BCPos pos, BCReg slot, NamePart *np)
{
  Info in;
  BCPos start = 0, len;
  if (!info_init(&in, pk, pt, proto_varinfo(pt))) return 0;
  while (info_var(&in, np, &start, &len) && start <= pos)
    if (pos - start < len && slot-- == 0) return 1;
  return 0;
}

BCReg lj_bcname_nlocal(SafeLoad *pk, const GCproto *pt, BCPos pos)
{
  NamePart np;
  Info in;
  BCPos start = 0, len;
  BCReg n = 0;
  if (!info_init(&in, pk, pt, proto_varinfo(pt))) return 0;
  while (info_var(&in, &np, &start, &len) && start <= pos) n += pos - start < len;
  return n;
}

int lj_bcname_isself(SafeLoad *pk, const GCproto *pt)
{
  NamePart np;
  return pt->numparams > 0 && lj_bcname_local(pk, pt, 0, 0, &np) && np.len == 4 &&
	 memcmp(np.s, "self", 4) == 0;
}

int lj_bcname_upval(SafeLoad *pk, const GCproto *pt, uint32_t idx, NamePart *np)
{
  Info in;
  if (idx >= pt->sizeuv || !info_init(&in, pk, pt, proto_uvinfo(pt))) return 0;
  do {
    if (!info_str(&in, np)) return 0;
  } while (idx-- > 0);
  return np->len != 0;
}

/* -- Where a value comes from ----------------------------------------------- */

/* Position of the last instruction before pos that sets a slot, 0 if unknown. Does not
** follow jumps, like the VM's own error messages.
*/
static BCPos slot_setter(SafeLoad *pk, const GCproto *pt, BCPos pos, BCReg slot, BCIns *ins)
{
  BCPos stop = pos > SCAN_BACK ? pos - SCAN_BACK : 0;
  while (pos > stop + 1) {
    BCReg a;
    pos--;
    if (!lj_bcname_ins(pk, pt, pos, ins)) return 0;
    a = bc_a(*ins);
    if (bcmode_a(bc_op(*ins)) == BCMbase) {
      if (slot >= a && (bc_op(*ins) != BC_KNIL || slot <= bc_d(*ins))) return 0;
    } else if (bcmode_a(bc_op(*ins)) == BCMdst && a == slot) {
      return pos;
    }
  }
  return 0;
}

void lj_bcname_slot(SafeLoad *pk, const GCproto *pt, BCPos pos, BCReg slot, NamePath *path)
{
  NameStep st[NAMEPATH_MAX]; /* The last one first. */
  uint32_t n = 0, loops;
  path->n = 0;
  for (loops = 0; loops < 2 * NAMEPATH_MAX && n < NAMEPATH_MAX; loops++) {
    NameStep *s = &st[n];
    BCIns ins, prev;
    s->kind = STEP_UNKNOWN;
    s->idx = slot;
    s->key = NULL;
    s->name.len = 0;
    if (lj_bcname_local(pk, pt, pos, slot, &s->name)) {
      s->kind = STEP_LOCAL;
      n++;
      break;
    }
    pos = slot_setter(pk, pt, pos, slot, &ins);
    if (pos != 0) {
      switch (bc_op(ins)) {
      case BC_MOV: slot = bc_d(ins); continue;
      case BC_GGET:
	if (const_str(pk, pt, bc_d(ins), s)) s->kind = STEP_GLOBAL;
	break;
      case BC_UGET:
	s->idx = bc_d(ins);
	if (lj_bcname_upval(pk, pt, s->idx, &s->name)) s->kind = STEP_UPVAL;
	break;
      case BC_TGETS:
	if (!const_str(pk, pt, bc_c(ins), s)) return;
	s->kind = STEP_FIELD;
	slot = bc_b(ins);
	if (n == 0 && lj_bcname_ins(pk, pt, pos - 1, &prev) && bc_op(prev) == BC_MOV &&
	    bc_a(prev) == bc_a(ins) + 1 + LJ_FR2 && bc_d(prev) == slot)
	  s->kind = STEP_METHOD;
	n++;
	continue;
      default: break;
      }
    }
    n++;
    break;
  }
  if (n == NAMEPATH_MAX && st[n - 1].kind >= STEP_FIELD) return; /* Too long. */
  while (n > 0) path->step[path->n++] = st[--n];
}

uint32_t lj_bcname_join(const NamePath *path, NamePart *part)
{
  uint32_t i, n = 0;
  for (i = 0; i < path->n; i++) {
    const NameStep *st = &path->step[i];
    if (st->kind == STEP_UNKNOWN || st->name.len == 0) continue;
    if (i == 0 && path->n > 1 && st->kind == STEP_GLOBAL && st->name.len == 2 &&
	st->name.s[0] == '_' && st->name.s[1] == 'G')
      continue;
    part[n++] = st->name;
  }
  return n;
}

/* -- Where a function is stored --------------------------------------------- */

uint32_t lj_bcname_new(SafeLoad *pk, const GCproto *pt, BCPos pos, NamePart *part)
{
  BCIns ins;
  BCReg slot;
  BCPos i;
  if (!lj_bcname_ins(pk, pt, pos, &ins)) return 0;
  slot = bc_a(ins);
  for (i = pos + 1; i <= pos + SCAN_STORE; i++) {
    BCOp op;
    NamePath path;
    NameStep st;
    if (lj_bcname_local(pk, pt, i, slot, &part[0])) return part[0].len != 0;
    if (!lj_bcname_ins(pk, pt, i, &ins)) return 0;
    op = bc_op(ins);
    switch (op) {
    case BC_GSET:
      if (bc_a(ins) != slot) continue;
      if (!const_str(pk, pt, bc_d(ins), &st)) return 0;
      part[0] = st.name;
      return 1;
    case BC_USETV:
      if (bc_d(ins) != slot) continue;
      return (uint32_t)lj_bcname_upval(pk, pt, bc_a(ins), &part[0]);
    case BC_TSETS:
      if (bc_a(ins) != slot) continue;
      if (!const_str(pk, pt, bc_c(ins), &st)) return 0;
      lj_bcname_slot(pk, pt, i, bc_b(ins), &path);
      if (path.n == NAMEPATH_MAX) return 0;
      st.kind = STEP_FIELD;
      path.step[path.n++] = st;
      return lj_bcname_join(&path, part);
    case BC_MOV:
      if (bc_d(ins) != slot) break;
      return lj_bcname_local(pk, pt, i + 1, bc_a(ins), &part[0]) && part[0].len != 0;
    case BC_TSETV:
    case BC_TSETB:
      if (bc_a(ins) == slot) return 0;
      break;
    default:
      if (bc_isret(op)) return 0;
      break;
    }
    /* Is it overwritten, passed on, or is this the end of the expression? */
    if (bcmode_a(op) == BCMdst
	  ? bc_a(ins) == slot
	  : bcmode_a(op) == BCMbase && (op != BC_KNIL || bc_a(ins) <= slot))
      return 0;
  }
  return 0;
}
