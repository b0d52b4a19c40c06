/*
** Expressions of call frame information. Runs in the signal handler.
*/

#define lj_cfiexpr_c
#define LUA_CORE

#include "profile/host/lj_cfiexpr.h"
#include "profile/host/lj_ehframe.h"

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

CfiResult lj_cfiexpr_eval(SafeLoad *pk, const uint8_t *expr, const CfiRegs *regs,
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
    } else if (op >= OP_BREG0 && op < OP_BREG0 + CFI_REG__MAX) {
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
