/*
** Unwind cache.
** Context: handler; see the header.
*/

#define lj_cficache_c
#define LUA_CORE

#include <string.h>

#include "profile/base/lj_hash.h"
#include "profile/host/lj_cficache.h"

/* -- Is it still the same entry? ---------------------------------------------- */

#define ENTRY_MAX 1024 /* Bytes of an entry that the cache can check. */

/* Sum of an entry's bytes. The processor adds the words side by side. Returns 0 if the
** length is not possible, or too large.
*/
static uint64_t entry_sum(const uint8_t *p)
{
  uint64_t sum = 0, key = HASH_KEY, w;
  uint32_t len, i;
  memcpy(&len, p, 4);
  if (len < 4 || len > ENTRY_MAX) return 0;
  len += 4;
  for (i = 0; i + 8 <= len; i += 8, key += HASH_FACTOR) {
    memcpy(&w, p + i, 8);
    sum += hash_pair(w ^ key, HASH_FACTOR);
  }
  memcpy(&w, p + len - 8, 8);
  return (sum + hash_pair(w ^ ~key, HASH_FACTOR)) | 1;
}

/* Sum of the two entries of an address: that of its function (FDE), which tells where the
** common one (CIE) is, and the common one. Returns 0 if an entry has none.
*/
static uint64_t entries_sum(CfiCache *cc, const uint8_t *fde)
{
  uint32_t delta;
  const uint8_t *cie;
  uint64_t sum = entry_sum(fde);
  memcpy(&delta, fde + 4, 4);
  cie = fde + 4 - delta;
  if (sum == 0 || (uintptr_t)cie - cc->obj.begin >= cc->obj.end - cc->obj.begin) return 0;
  if (cie != cc->cie) {
    cc->cie = cie;
    cc->cie_check = entry_sum(cie);
  }
  return cc->cie_check ? sum + hash_pair((uintptr_t)fde ^ cc->cie_check, HASH_FACTOR) : 0;
}

/* The object of an address, most often that of the address before. */
static int find_object(CfiCache *cc, const SafeLoad *pk, uintptr_t pc)
{
  if (cc->generation == pk->generation && pc - cc->obj.begin < cc->obj.end - cc->obj.begin)
    return 1;
  cc->cie = NULL;
  cc->generation = 0;
  if (lj_ehframe_object(pc, &cc->obj) != CFI_STEP) return 0;
  cc->generation = pk->generation;
  return 1;
}

/* Does the object that is loaded now have the entry of a cached step? */
static int row_holds(CfiCache *cc, const CfiRow *row)
{
  int32_t ofs;
  if (row->index >= cc->obj.count) return 0;
  memcpy(&ofs, cc->obj.table + (size_t)row->index * 8 + 4, 4);
  return entries_sum(cc, cc->obj.hdr + ofs) == row->check;
}

/* -- Steps -------------------------------------------------------------------- */

const CfiRule *lj_cficache_find(CfiCache *cc, const SafeLoad *pk, uintptr_t pc)
{
  /* Its two slots are side by side. */
  CfiRow *first = &cc->row[hash_slot(pc, CFICACHE_BITS) & ~1u];
  CfiRow *row = first->pc == pc ? first : first + 1;
  CfiRow found;
  Fde fde;
  if (LJ_LIKELY(row->pc == pc && row->rule.stays)) return &row->rule;
  if (!find_object(cc, pk, pc)) return NULL;
  if (row->pc == pc && row_holds(cc, row)) return &row->rule;
  if (!lj_cfi_rule(pc, &found.rule, &fde)) return NULL;
  found.check = entries_sum(cc, fde.fde);
  if (found.check == 0) return NULL;
  found.index = fde.index;
  found.pc = pc;
  if (row != first) first[1] = first[0]; /* Replaces the older one. */
  *first = found;
  return &first->rule;
}

/* Load a register that is saved below the CFA. */
static LJ_AINLINE void load_saved(const CfiRule *rule, int i, int reg, uintptr_t cfa,
				  CfiRegs *regs)
{
  if (rule->saved[i]) {
    regs->r[reg] = ((const uintptr_t *)cfa)[-(int)rule->saved[i]];
    regs->valid |= 1u << reg;
  }
}

/* Can all words that are loaded be read? */
static int words_readable(const CfiRule *rule, SafeLoad *pk, uintptr_t cfa)
{
  uintptr_t w;
  int i;
  for (i = 0; i < CFI_NSAVED; i++)
    if (rule->saved[i] && !lj_safeload_word(pk, cfa - (uintptr_t)rule->saved[i] * 8, &w))
      return 0;
  return lj_safeload_word(pk, cfa - 8, &w);
}

CfiResult lj_cficache_step(const CfiRule *rule, SafeLoad *pk, CfiRegs *regs)
{
  uintptr_t cfa = regs->r[rule->cfa_reg] + (uintptr_t)(intptr_t)rule->cfa_ofs;
  uintptr_t lowest = cfa - (uintptr_t)rule->depth * 8, pc;
  if (!(regs->valid & (1u << rule->cfa_reg))) return CFI_NONE;
  if (rule->is_root) return CFI_ROOT;
  if (cfa < regs->r[CFI_REG_SP] + (regs->is_return ? 8 : 0)) return CFI_NONE;
  /* All on the thread's stack in use? */
  if (LJ_UNLIKELY((cfa & 7) != 0 || lowest > cfa || lowest < pk->stack ||
		  cfa - pk->stack > pk->stack_size) &&
      !words_readable(rule, pk, cfa))
    return CFI_FAULT;
  pc = *(const uintptr_t *)(cfa - 8);
  if (pc == 0) return CFI_ROOT;
  regs->valid = (regs->valid & CFI_PRESERVED) | 1u << CFI_REG_SP | 1u << CFI_REG_PC;
  load_saved(rule, 0, CFI_REG_BX, cfa, regs); /* As in lj_cfi_saved. */
  load_saved(rule, 1, CFI_REG_BP, cfa, regs);
  load_saved(rule, 2, CFI_REG_R12, cfa, regs);
  load_saved(rule, 3, CFI_REG_R13, cfa, regs);
  load_saved(rule, 4, CFI_REG_R14, cfa, regs);
  load_saved(rule, 5, CFI_REG_R15, cfa, regs);
  regs->r[CFI_REG_SP] = cfa;
  regs->r[CFI_REG_PC] = pc;
  regs->is_return = 1;
  return CFI_STEP;
}
