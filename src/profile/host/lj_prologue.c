/*
** Frame pointer of a C function by its prologue, where the registers of a thread are unknown.
** Context: any thread. Async-signal-safe. x86-64.
*/

#define lj_prologue_c
#define LUA_CORE

#include <string.h>

#include "profile/host/lj_prologue.h"

#define PROLOGUE_MAX 128        /* Bytes of code in which it ends. */
#define FRAME_MAX    (1u << 20) /* Bytes that it subtracts, at most. */
#define SEARCH_MAX   512        /* Bytes that a function may subtract otherwise. */
#define CALL_MAX     8          /* Bytes before a return address. */
#define OP_CALL      0xe8       /* call rel32 */

/* The frame of a frame pointer: saved at CFA - 16, below the return address. */
static int rule_fits(const CfiRule *rule)
{
  return rule->cfa_reg == WALKREG_BP && rule->cfa_ofs == 16 && !rule->is_root &&
	 rule->saved[1] == 2;
}

/* Does a frame end at this CFA? begin: its caller must have called this address; 0: any. */
static int cfa_fits(SafeLoad *pk, uintptr_t cfa, uintptr_t begin)
{
  uint8_t code[CALL_MAX];
  uintptr_t ret;
  int32_t rel;
  if (!lj_safeload_word(pk, cfa - 8, &ret) ||
      !lj_safeload_copy(pk, code, (const void *)(ret - sizeof(code)), sizeof(code)))
    return 0;
  if (!begin) return lj_cfi_iscalled(code + sizeof(code));
  memcpy(&rel, code + sizeof(code) - 4, 4);
  return code[sizeof(code) - 5] == OP_CALL && ret + (uintptr_t)(intptr_t)rel == begin;
}

/* The prologue subtracts a constant. Returns 0 if it does not, or if several fit. */
static uintptr_t cfa_byconstant(SafeLoad *pk, uintptr_t lowest, const uint8_t *code,
				size_t n)
{
  uintptr_t found = 0;
  size_t i;
  for (i = 0; i + 4 <= n; i++) { /* sub rsp, imm8 or imm32 */
    uint32_t size = 0;
    uintptr_t cfa;
    if (code[i] != 0x48 || code[i + 2] != 0xec) continue;
    if (code[i + 1] == 0x83) size = code[i + 3];
    else if (code[i + 1] == 0x81 && i + 7 <= n) memcpy(&size, code + i + 3, 4);
    if (size == 0 || (size & 7) != 0 || size > FRAME_MAX) continue;
    cfa = lowest + size;
    if (cfa == found || !cfa_fits(pk, cfa, 0)) continue;
    if (found) return 0;
    found = cfa;
  }
  return found;
}

/* The caller has called this function by its address, not by a pointer. */
static uintptr_t cfa_bycall(SafeLoad *pk, uintptr_t lowest, uintptr_t begin)
{
  uintptr_t cfa;
  for (cfa = lowest; cfa <= lowest + SEARCH_MAX; cfa += 8)
    if (cfa_fits(pk, cfa, begin)) return cfa;
  return 0;
}

int lj_prologue_find(SafeLoad *pk, const CfiRule *rule, uintptr_t begin, uintptr_t pc,
		     WalkRegs *regs)
{
  uint8_t code[PROLOGUE_MAX];
  uintptr_t lowest = regs->r[WALKREG_SP] + (uintptr_t)rule->depth * 8, cfa;
  size_t n = pc - begin < PROLOGUE_MAX ? pc - begin : PROLOGUE_MAX;
  if (!rule_fits(rule) || !lj_safeload_copy(pk, code, (const void *)begin, n)) return 0;
  cfa = cfa_byconstant(pk, lowest, code, n);
  if (!cfa) cfa = cfa_bycall(pk, lowest, begin);
  if (!cfa && cfa_fits(pk, lowest, 0)) cfa = lowest; /* It has no room of its own. */
  if (!cfa) return 0;
  regs->r[WALKREG_BP] = cfa - 16;
  regs->valid |= 1u << WALKREG_BP;
  return 1;
}
