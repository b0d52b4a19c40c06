/*
** DWARF unwinder: one step by call frame information (CFI).
** Context: handler; see the header. Every load of the stack goes through lj_safeload.
*/

#define lj_cfi_c
#define LUA_CORE

#include "profile/base/lj_osobjects.h"
#include "profile/host/lj_cfi.h"

/* Call frame instructions, DWARF 5 table 7.29, and one of GNU. */
/* clang-format off */
enum {
  CFA_ADVANCE_LOC = 0x40, CFA_OFFSET = 0x80, CFA_RESTORE = 0xc0,
  CFA_NOP = 0x00, CFA_SET_LOC, CFA_ADVANCE_LOC1, CFA_ADVANCE_LOC2,
  CFA_ADVANCE_LOC4, CFA_OFFSET_EXTENDED, CFA_RESTORE_EXTENDED, CFA_UNDEFINED,
  CFA_SAME_VALUE, CFA_REGISTER, CFA_REMEMBER_STATE, CFA_RESTORE_STATE,
  CFA_DEF_CFA, CFA_DEF_CFA_REGISTER, CFA_DEF_CFA_OFFSET,
  CFA_DEF_CFA_EXPRESSION, CFA_EXPRESSION, CFA_OFFSET_EXTENDED_SF,
  CFA_DEF_CFA_SF, CFA_DEF_CFA_OFFSET_SF, CFA_VAL_OFFSET, CFA_VAL_OFFSET_SF,
  CFA_VAL_EXPRESSION,
  CFA_GNU_ARGS_SIZE = 0x2e
};
/* clang-format on */

#define CFI_STATES_MAX 4 /* Depth of remember_state. */

/* -- Running the instructions --------------------------------------------- */

typedef enum RuleKind {
  RULE_SAME,
  RULE_UNDEFINED,
  RULE_OFFSET,
  RULE_VAL_OFFSET,
  RULE_REGISTER,
  RULE_EXPR,
  RULE_VAL_EXPR
} RuleKind;

/* How to find the caller's value of a register. */
typedef struct Rule {
  uint8_t kind; /* RuleKind. */
  int32_t ofs;  /* Offset from CFA, register, or expression. */
} Rule;

typedef struct Row {
  Rule reg[WALKREG__MAX];
  Rule cfa; /* RULE_REGISTER (with cfa_ofs) or RULE_EXPR. */
  int64_t cfa_ofs;
} Row;

typedef struct Machine {
  Row row, initial;          /* Current rules, and the CIE's. */
  Row saved[CFI_STATES_MAX]; /* Remembered rules. */
  int nsaved;
  const uint8_t *base; /* Expressions are offsets from here. */
} Machine;

static void rule_set(Machine *m, uint64_t reg, RuleKind kind, int64_t ofs, Bytes *b)
{
  if (ofs != (int32_t)ofs) b->bad = 1;
  if (reg >= WALKREG__MAX) return; /* Not a register that matters here. */
  m->row.reg[reg].kind = (uint8_t)kind;
  m->row.reg[reg].ofs = (int32_t)ofs;
}

/* Skip an expression and return its offset from the machine's base. */
static int64_t expr_skip(Machine *m, Bytes *b)
{
  int64_t ofs = b->p - m->base;
  uint64_t len = bytes_uleb(b);
  if (len > (uint64_t)(b->end - b->p)) b->bad = 1;
  else b->p += len;
  return ofs;
}

/* Run instructions until the location passes pc. Returns 0 if they are bad. */
static int machine_run(Machine *m, const Fde *fde, Bytes b, uintptr_t pc)
{
  uintptr_t loc = fde->pc_begin;
  while (b.p < b.end && !b.bad) {
    unsigned op = *b.p++, low = op & 0x3f;
    uint64_t reg;
    switch (op & 0xc0) {
    case CFA_ADVANCE_LOC: loc += low * fde->code_align; goto advanced;
    case CFA_OFFSET:
      rule_set(m, low, RULE_OFFSET, (int64_t)bytes_uleb(&b) * fde->data_align, &b);
      continue;
    case CFA_RESTORE:
      if (low < WALKREG__MAX) m->row.reg[low] = m->initial.reg[low];
      continue;
    default: break;
    }
    switch (op) {
    case CFA_NOP: break;
    case CFA_SET_LOC: loc = lj_ehframe_pointer(&b, fde->enc, 1); goto advanced;
    case CFA_ADVANCE_LOC1: loc += bytes_uint(&b, 1) * fde->code_align; goto advanced;
    case CFA_ADVANCE_LOC2: loc += bytes_uint(&b, 2) * fde->code_align; goto advanced;
    case CFA_ADVANCE_LOC4: loc += bytes_uint(&b, 4) * fde->code_align; goto advanced;
    case CFA_OFFSET_EXTENDED:
      reg = bytes_uleb(&b);
      rule_set(m, reg, RULE_OFFSET, (int64_t)bytes_uleb(&b) * fde->data_align, &b);
      break;
    case CFA_OFFSET_EXTENDED_SF:
      reg = bytes_uleb(&b);
      rule_set(m, reg, RULE_OFFSET, bytes_sleb(&b) * fde->data_align, &b);
      break;
    case CFA_VAL_OFFSET:
      reg = bytes_uleb(&b);
      rule_set(m, reg, RULE_VAL_OFFSET, (int64_t)bytes_uleb(&b) * fde->data_align, &b);
      break;
    case CFA_VAL_OFFSET_SF:
      reg = bytes_uleb(&b);
      rule_set(m, reg, RULE_VAL_OFFSET, bytes_sleb(&b) * fde->data_align, &b);
      break;
    case CFA_RESTORE_EXTENDED:
      reg = bytes_uleb(&b);
      if (reg < WALKREG__MAX) m->row.reg[reg] = m->initial.reg[reg];
      break;
    case CFA_UNDEFINED: rule_set(m, bytes_uleb(&b), RULE_UNDEFINED, 0, &b); break;
    case CFA_SAME_VALUE: rule_set(m, bytes_uleb(&b), RULE_SAME, 0, &b); break;
    case CFA_REGISTER:
      reg = bytes_uleb(&b);
      rule_set(m, reg, RULE_REGISTER, (int64_t)bytes_uleb(&b), &b);
      break;
    case CFA_REMEMBER_STATE:
      if (m->nsaved == CFI_STATES_MAX) return 0;
      m->saved[m->nsaved++] = m->row;
      break;
    case CFA_RESTORE_STATE:
      if (m->nsaved == 0) return 0;
      m->row = m->saved[--m->nsaved];
      break;
    case CFA_DEF_CFA:
      m->row.cfa.kind = RULE_REGISTER;
      m->row.cfa.ofs = (int32_t)bytes_uleb(&b);
      m->row.cfa_ofs = (int64_t)bytes_uleb(&b);
      break;
    case CFA_DEF_CFA_SF:
      m->row.cfa.kind = RULE_REGISTER;
      m->row.cfa.ofs = (int32_t)bytes_uleb(&b);
      m->row.cfa_ofs = bytes_sleb(&b) * fde->data_align;
      break;
    case CFA_DEF_CFA_REGISTER:
      m->row.cfa.kind = RULE_REGISTER;
      m->row.cfa.ofs = (int32_t)bytes_uleb(&b);
      break;
    case CFA_DEF_CFA_OFFSET: m->row.cfa_ofs = (int64_t)bytes_uleb(&b); break;
    case CFA_DEF_CFA_OFFSET_SF: m->row.cfa_ofs = bytes_sleb(&b) * fde->data_align; break;
    case CFA_DEF_CFA_EXPRESSION:
      m->row.cfa.kind = RULE_EXPR;
      m->row.cfa.ofs = (int32_t)expr_skip(m, &b);
      break;
    case CFA_EXPRESSION:
      reg = bytes_uleb(&b);
      rule_set(m, reg, RULE_EXPR, expr_skip(m, &b), &b);
      break;
    case CFA_VAL_EXPRESSION:
      reg = bytes_uleb(&b);
      rule_set(m, reg, RULE_VAL_EXPR, expr_skip(m, &b), &b);
      break;
    case CFA_GNU_ARGS_SIZE: bytes_uleb(&b); break;
    default: return 0;
    }
    continue;
  advanced:
    if (loc > pc) break;
  }
  return !b.bad;
}

/* -- Expressions ---------------------------------------------------------- */

/* Expression operations that occur in practice, DWARF 5 table 7.9. */
/* clang-format off */
enum {
  OP_DEREF = 0x06, OP_CONST1U = 0x08, OP_CONST1S, OP_CONST2U, OP_CONST2S,
  OP_CONST4U, OP_CONST4S, OP_CONSTU = 0x10, OP_CONSTS, OP_DUP, OP_DROP,
  OP_AND = 0x1a, OP_MINUS = 0x1c, OP_MUL = 0x1e, OP_NEG, OP_NOT, OP_OR,
  OP_PLUS, OP_PLUS_UCONST, OP_SHL, OP_SHR, OP_SHRA, OP_XOR,
  OP_EQ = 0x29, OP_GE, OP_GT, OP_LE, OP_LT, OP_NE,
  OP_LIT0 = 0x30, OP_BREG0 = 0x70
};
/* clang-format on */

#define STACK_MAX 8 /* Values at a time. */

/* Evaluate an expression: its length, which the caller has checked, and its operations
** (DWARF 5, section 2.5). cfa: the value that it begins with, or NULL. CFI_STEP, and the
** result; CFI_NONE for operations that do not occur in practice; CFI_FAULT if it reads
** memory that is not readable. The PLT and signal frames have expressions.
*/
static CfiResult expr_eval(SafeLoad *pk, const uint8_t *expr, const WalkRegs *regs,
			   const uintptr_t *cfa, uintptr_t *result)
{
  uintptr_t st[STACK_MAX + 1];
  int n = 0;
  Bytes b;
  uint64_t len;
  b.p = expr;
  b.end = b.p + 10;
  b.bad = 0;
  len = bytes_uleb(&b); /* Checked by the caller. */
  b.end = b.p + len;
  if (cfa) st[n++] = *cfa;
  while (b.p < b.end) {
    unsigned op = *b.p++;
    if (n >= STACK_MAX) return CFI_NONE;
    if (op >= OP_LIT0 && op < OP_LIT0 + 32) {
      st[n++] = op - OP_LIT0;
    } else if (op >= OP_BREG0 && op < OP_BREG0 + WALKREG__MAX) {
      if (!(regs->valid & (1u << (op - OP_BREG0)))) return CFI_NONE;
      st[n++] = regs->r[op - OP_BREG0] + (uintptr_t)bytes_sleb(&b);
    } else if (op >= OP_CONST1U && op <= OP_CONSTS) {
      switch (op) {
      case OP_CONST1U: st[n++] = bytes_uint(&b, 1); break;
      case OP_CONST1S: st[n++] = (uintptr_t)(int8_t)bytes_uint(&b, 1); break;
      case OP_CONST2U: st[n++] = bytes_uint(&b, 2); break;
      case OP_CONST2S: st[n++] = (uintptr_t)(int16_t)bytes_uint(&b, 2); break;
      case OP_CONST4U: st[n++] = bytes_uint(&b, 4); break;
      case OP_CONST4S: st[n++] = (uintptr_t)(int32_t)bytes_uint(&b, 4); break;
      case OP_CONSTU: st[n++] = bytes_uleb(&b); break;
      case OP_CONSTS: st[n++] = (uintptr_t)bytes_sleb(&b); break;
      default: return CFI_NONE;
      }
    } else {
      uintptr_t x, y;
      if (n < 1) return CFI_NONE;
      x = st[n - 1];
      switch (op) { /* Operations on one operand. */
      case OP_DEREF:
	if (!lj_safeload_word(pk, x, &st[n - 1])) return CFI_FAULT;
	continue;
      case OP_DUP: st[n++] = x; continue;
      case OP_DROP: n--; continue;
      case OP_NEG: st[n - 1] = (uintptr_t)0 - x; continue;
      case OP_NOT: st[n - 1] = ~x; continue;
      case OP_PLUS_UCONST: st[n - 1] = x + bytes_uleb(&b); continue;
      default: break;
      }
      if (n < 2) return CFI_NONE;
      y = x;
      x = st[n - 2];
      n--;
      switch (op) { /* Operations on two operands. */
      case OP_AND: x &= y; break;
      case OP_OR: x |= y; break;
      case OP_XOR: x ^= y; break;
      case OP_PLUS: x += y; break;
      case OP_MINUS: x -= y; break;
      case OP_MUL: x *= y; break;
      case OP_SHL: x = y < 64 ? x << y : 0; break;
      case OP_SHR: x = y < 64 ? x >> y : 0; break;
      case OP_SHRA: x = (uintptr_t)((intptr_t)x >> (y < 64 ? y : 63)); break;
      case OP_EQ: x = x == y; break;
      case OP_NE: x = x != y; break;
      case OP_GE: x = (intptr_t)x >= (intptr_t)y; break;
      case OP_GT: x = (intptr_t)x > (intptr_t)y; break;
      case OP_LE: x = (intptr_t)x <= (intptr_t)y; break;
      case OP_LT: x = (intptr_t)x < (intptr_t)y; break;
      default: return CFI_NONE;
      }
      st[n - 1] = x;
    }
  }
  if (n < 1 || b.bad) return CFI_NONE;
  *result = st[n - 1];
  return CFI_STEP;
}

/* -- Stepping ------------------------------------------------------------- */

/* Apply the rules of the current row. */
static CfiResult row_apply(SafeLoad *pk, const Machine *m, WalkRegs *regs, int is_signal)
{
  const Row *row = &m->row;
  WalkRegs out;
  uintptr_t cfa;
  CfiResult res;
  unsigned i;
  if (row->cfa.kind == RULE_EXPR) {
    res = expr_eval(pk, m->base + row->cfa.ofs, regs, NULL, &cfa);
    if (res != CFI_STEP) return res;
  } else {
    uint32_t reg = (uint32_t)row->cfa.ofs;
    if (row->cfa.kind != RULE_REGISTER || reg >= WALKREG__MAX ||
	!(regs->valid & (1u << reg)))
      return CFI_NONE;
    cfa = regs->r[reg] + (uintptr_t)row->cfa_ofs;
  }
  if (row->reg[WALKREG_PC].kind == RULE_UNDEFINED) return CFI_ROOT;
  /* The stack grows down, so a frame's end lies above its start. The unwinder's
  ** last instruction is a jump with an empty frame.
  */
  if (!is_signal && cfa < regs->r[WALKREG_SP] + (regs->is_return ? 8 : 0)) return CFI_NONE;
  out.valid = regs->valid & WALKREG_PRESERVED;
  for (i = 0; i < WALKREG__MAX; i++) {
    const Rule *rule = &row->reg[i];
    uintptr_t v = regs->r[i];
    switch (rule->kind) {
    case RULE_SAME: out.r[i] = v; continue;
    case RULE_OFFSET:
      if (!lj_safeload_word(pk, cfa + (intptr_t)rule->ofs, &v)) return CFI_FAULT;
      break;
    case RULE_VAL_OFFSET: v = cfa + (intptr_t)rule->ofs; break;
    case RULE_REGISTER:
      if ((uint32_t)rule->ofs >= WALKREG__MAX || !(regs->valid & (1u << rule->ofs)))
	return CFI_NONE;
      v = regs->r[rule->ofs];
      break;
    case RULE_EXPR:
    case RULE_VAL_EXPR:
      res = expr_eval(pk, m->base + rule->ofs, regs, &cfa, &v);
      if (res != CFI_STEP) return res;
      if (rule->kind == RULE_EXPR && !lj_safeload_word(pk, v, &v)) return CFI_FAULT;
      break;
    default: /* RULE_UNDEFINED */
      out.valid &= ~(1u << i);
      out.r[i] = 0;
      continue;
    }
    out.r[i] = v;
    out.valid |= 1u << i;
  }
  if (row->reg[WALKREG_SP].kind == RULE_SAME) {
    out.r[WALKREG_SP] = cfa;
    out.valid |= 1u << WALKREG_SP;
  }
  if (row->reg[WALKREG_PC].kind == RULE_SAME) return CFI_NONE;
  out.is_return = !is_signal;
  if (out.r[WALKREG_PC] == 0) return CFI_ROOT;
  *regs = out;
  return CFI_STEP;
}

/* Find the entry of an address, and the row of its table. */
static CfiResult machine_find(Machine *m, SafeLoad *pk, uintptr_t pc, EhCopy *copy,
			      Fde *fde)
{
  CfiResult res = lj_ehframe_find(pk, pc, copy, fde);
  int i;
  if (res != CFI_STEP) return res;
  for (i = 0; i < WALKREG__MAX; i++) {
    m->row.reg[i].kind = RULE_SAME;
    m->row.reg[i].ofs = 0;
  }
  m->row.cfa.kind = RULE_UNDEFINED;
  m->row.cfa_ofs = 0;
  m->nsaved = 0;
  m->base = fde->cie_ins.p;
  if (!machine_run(m, fde, fde->cie_ins, ~(uintptr_t)0)) return CFI_NONE;
  m->initial = m->row;
  if (!machine_run(m, fde, fde->fde_ins, pc)) return CFI_NONE;
  return CFI_STEP;
}

CfiResult lj_cfi_step(SafeLoad *pk, EhCopy *copy, WalkRegs *regs)
{
  Fde fde;
  Machine m;
  CfiResult res = machine_find(&m, pk, lj_cfi_lookup_pc(regs), copy, &fde);
  return res == CFI_STEP ? row_apply(pk, &m, regs, fde.is_signal) : res;
}

int lj_cfi_rule(SafeLoad *pk, uintptr_t pc, EhCopy *copy, CfiRule *rule, Fde *fde)
{
  Machine m;
  const Row *row = &m.row;
  const Rule *ret = &row->reg[WALKREG_PC];
  uint32_t preserved = WALKREG_PRESERVED & ~(1u << WALKREG_PC);
  int i;
  if (machine_find(&m, pk, pc, copy, fde) != CFI_STEP || fde->is_signal ||
      row->cfa.kind != RULE_REGISTER || row->cfa_ofs != (int32_t)row->cfa_ofs ||
      (uint32_t)row->cfa.ofs >= WALKREG__MAX)
    return 0;
  rule->cfa_reg = (uint8_t)row->cfa.ofs;
  rule->cfa_ofs = (int32_t)row->cfa_ofs;
  rule->is_root = (ret->kind == RULE_UNDEFINED);
  rule->is_inner = (pc + 1 - fde->pc_begin < fde->pc_size);
  rule->stays = lj_osobjects_stay(pc);
  rule->depth = 1;
  if (rule->is_root) return 1;
  if (ret->kind != RULE_OFFSET || ret->ofs != -8) return 0;
  for (i = 0; i < CFI_NSAVED; i++) {
    const Rule *r = &row->reg[lj_cfi_saved[i]];
    int32_t words = -(r->ofs >> 3);
    preserved &= ~(1u << lj_cfi_saved[i]);
    rule->saved[i] = 0;
    if (r->kind == RULE_SAME) continue;
    if (r->kind != RULE_OFFSET || (r->ofs & 7) != 0 || words < 1 || words > UINT8_MAX)
      return 0;
    rule->saved[i] = (uint8_t)words;
    if (words > rule->depth) rule->depth = (uint8_t)words;
  }
  for (i = 0; i < WALKREG__MAX; i++) /* The stack pointer. */
    if ((preserved & (1u << i)) && row->reg[i].kind != RULE_SAME) return 0;
  return 1;
}

int lj_cfi_iscalled(const uint8_t *p)
{
  int n;
  if (p[-5] == 0xe8) return 1; /* call rel32 */
  for (n = 2; n <= 7; n++)     /* call r/m64: ff /2 */
    if (p[-n] == 0xff && (p[1 - n] & 0x38) == 0x10) return 1;
  return 0;
}

int lj_cfi_isstart(SafeLoad *pk, EhCopy *copy, const WalkRegs *regs)
{
  uintptr_t pc = regs->r[WALKREG_PC];
  uint8_t code[8]; /* Ends at that address. */
  Fde fde;
  return regs->is_return && (pc & 15) == 0 &&
	 lj_safeload_copy(pk, code, (const void *)(pc - sizeof(code)), sizeof(code)) &&
	 !lj_cfi_iscalled(code + sizeof(code)) &&
	 lj_ehframe_find(pk, pc, copy, &fde) == CFI_STEP && fde.pc_begin == pc;
}
