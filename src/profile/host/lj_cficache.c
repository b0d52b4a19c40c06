/*
** Unwind cache: identity of objects, lookup of steps.
** Context: handler; see the header.
*/

#define lj_cficache_c
#define LUA_CORE

#include <string.h>

#include "profile/base/lj_elfnote.h"
#include "profile/base/lj_hash.h"
#include "profile/host/lj_cficache.h"

/* -- Is it still the same object? --------------------------------------------- */

#define ID_MAX ELFNOTE_ID_MAX /* Bytes that distinguish objects. */

/* Sum of an object's identity. now: as the memory is now. Returns 0 if it is gone. */
static uint64_t object_sum(SafeLoad *pk, const CfiObject *o, int now)
{
  uint8_t id[ID_MAX];
  uint64_t sum;
  if (!(now ? lj_safeload_copynow(pk, id, o->id, o->idlen)
	    : lj_safeload_copy(pk, id, o->id, o->idlen)))
    return 0;
  sum = hash_next(o->obj.begin ^ (uintptr_t)o->obj.map, (uintptr_t)o->obj.hdr);
  return hash_bytes(sum, id, id + o->idlen) | 1;
}

/* Identify an object. Returns 0 if it is gone, or if it has no usable index. */
static int object_identify(SafeLoad *pk, CfiObject *o)
{
  uint32_t n = 0;
  const void *ph = lj_elfnote_headers(pk, o->obj.begin, &n);
  o->id = ph ? lj_elfnote_segments(pk, ph, n, lj_elfnote_bias(pk, o->obj.begin, ph, n),
				   &o->idlen)
	     : NULL;
  o->has_buildid = (o->id != NULL);
  if (!o->has_buildid) {
    o->id = o->obj.hdr;
    o->idlen = ID_MAX;
  }
  o->sum = object_sum(pk, o, 0);
  o->generation = pk->generation;
  return o->sum != 0 && lj_ehframe_header(pk, &o->obj) == CFI_STEP;
}

/* The object of an address, most often that of the address before. Returns NULL if it is
** gone, or if it cannot be identified.
*/
static CfiObject *object_find(CfiCache *cc, SafeLoad *pk, const EhObject *obj)
{
  CfiObject *o;
  uint32_t i;
  for (i = 0; i < CFICACHE_OBJECTS; i++) {
    o = &cc->object[i];
    if (o->obj.begin != obj->begin || o->obj.end != obj->end || o->obj.map != obj->map ||
	o->obj.hdr != obj->hdr)
      continue;
    cc->at = i;
    if (o->generation == pk->generation) return o;
    o->generation = pk->generation;
    if (object_sum(pk, o, 0) == o->sum) return o;
    break;
  }
  if (i == CFICACHE_OBJECTS) {
    i = cc->turn;
    cc->turn = (cc->turn + 1) % CFICACHE_OBJECTS;
  }
  o = &cc->object[i];
  o->obj = *obj;
  if (object_identify(pk, o)) {
    cc->at = i;
    return o;
  }
  memset(o, 0, sizeof(*o));
  return NULL;
}

/* Sum that tells whether a row holds. Returns 0 if the object is gone. */
static uint64_t row_sum(CfiCache *cc, SafeLoad *pk, const CfiObject *o, int32_t entry)
{
  Fde fde;
  if (o->has_buildid) return o->sum;
  if (lj_ehframe_entry(pk, o->obj.hdr + entry, &cc->copy, &fde) != CFI_STEP) return 0;
  return hash_bytes(hash_bytes(o->sum, fde.fde.p, fde.fde.end), fde.cie.p, fde.cie.end) | 1;
}

/* -- Steps -------------------------------------------------------------------- */

/* Find the rule of an address, with its check. Returns 0 if it cannot be cached. */
static int row_make(CfiCache *cc, SafeLoad *pk, uintptr_t pc, const CfiObject *o,
		    CfiRow *row)
{
  Fde fde;
  intptr_t entry;
  if (!lj_cfi_rule(pk, pc, &cc->copy, &row->rule, &fde)) return 0;
  row->pc = pc;
  row->check = 0;
  row->entry = 0;
  if (!o) return row->rule.stays;
  entry = (intptr_t)(fde.at - o->obj.hdr);
  row->entry = (int32_t)entry;
  row->check = entry == row->entry ? row_sum(cc, pk, o, row->entry) : 0;
  /* Another thread may have replaced the object since the sample has begun. */
  return row->check != 0 && object_sum(pk, o, 1) == o->sum;
}

const CfiRule *lj_cficache_find(CfiCache *cc, SafeLoad *pk, uintptr_t pc)
{
  CfiRow *first = cficache_slot(cc, pc);
  CfiRow *row = first->pc == pc ? first : first + 1;
  CfiObject *o = &cc->object[cc->at];
  CfiRow found;
  if (LJ_LIKELY(row->pc == pc && row->rule.stays)) return &row->rule;
  if (o->generation != pk->generation || pc - o->obj.begin >= o->obj.end - o->obj.begin) {
    EhObject obj;
    if (lj_ehframe_object(pk, pc, &obj) != CFI_STEP) return NULL;
    o = obj.stays ? NULL : object_find(cc, pk, &obj);
    if (!o && !obj.stays) return NULL;
  }
  if (o && row->pc == pc && row->check == row_sum(cc, pk, o, row->entry)) return &row->rule;
  if (!row_make(cc, pk, pc, o, &found)) return NULL;
  if (row != first) first[1] = first[0]; /* Replaces the older one. */
  *first = found;
  return &first->rule;
}

/* Load a register that is saved below the CFA. */
static LJ_AINLINE void load_saved(const CfiRule *rule, int i, int reg, uintptr_t cfa,
				  WalkRegs *regs)
{
  if (rule->saved[i]) {
    regs->r[reg] = ((const uintptr_t *)cfa)[-(int)rule->saved[i]];
    regs->valid |= 1u << reg;
  }
}

/* The words of a step that are not on the thread's stack in use. Returns 0 if one is not
** readable; registers unchanged.
*/
static LJ_NOINLINE int step_elsewhere(const CfiRule *rule, SafeLoad *pk, uintptr_t cfa,
				      WalkRegs *regs, uintptr_t *pc)
{
  uintptr_t w[CFI_NSAVED];
  int i;
  if (!lj_safeload_word(pk, cfa - 8, pc)) return 0;
  for (i = 0; i < CFI_NSAVED; i++)
    if (rule->saved[i] && !lj_safeload_word(pk, cfa - (uintptr_t)rule->saved[i] * 8, &w[i]))
      return 0;
  if (*pc == 0) return 1;
  regs->valid = (regs->valid & WALKREG_PRESERVED) | 1u << WALKREG_SP | 1u << WALKREG_PC;
  for (i = 0; i < CFI_NSAVED; i++) {
    if (!rule->saved[i]) continue;
    regs->r[lj_cfi_saved[i]] = w[i];
    regs->valid |= 1u << lj_cfi_saved[i];
  }
  return 1;
}

CfiResult lj_cficache_step(const CfiRule *rule, SafeLoad *pk, WalkRegs *regs)
{
  uintptr_t cfa = regs->r[rule->cfa_reg] + (uintptr_t)(intptr_t)rule->cfa_ofs;
  uintptr_t lowest = cfa - (uintptr_t)rule->depth * 8, pc;
  if (!(regs->valid & (1u << rule->cfa_reg))) return CFI_NONE;
  if (rule->is_root) return CFI_ROOT;
  if (cfa < regs->r[WALKREG_SP] + (regs->is_return ? 8 : 0)) return CFI_NONE;
  /* All on the thread's stack in use? */
  if (LJ_LIKELY((cfa & 7) == 0 && lowest <= cfa && lowest >= pk->stack &&
		cfa - pk->stack <= pk->stack_size)) {
    pc = *(const uintptr_t *)(cfa - 8);
    if (pc == 0) return CFI_ROOT;
    regs->valid = (regs->valid & WALKREG_PRESERVED) | 1u << WALKREG_SP | 1u << WALKREG_PC;
    load_saved(rule, 0, WALKREG_BX, cfa, regs); /* As in lj_cfi_saved. */
    load_saved(rule, 1, WALKREG_BP, cfa, regs);
    load_saved(rule, 2, WALKREG_R12, cfa, regs);
    load_saved(rule, 3, WALKREG_R13, cfa, regs);
    load_saved(rule, 4, WALKREG_R14, cfa, regs);
    load_saved(rule, 5, WALKREG_R15, cfa, regs);
  } else {
    if (!step_elsewhere(rule, pk, cfa, regs, &pc)) return CFI_FAULT;
    if (pc == 0) return CFI_ROOT;
  }
  regs->r[WALKREG_SP] = cfa;
  regs->r[WALKREG_PC] = pc;
  regs->is_return = 1;
  return CFI_STEP;
}
