/*
** Types of allocations: what a block is for, by the function of the VM that allocates it.
** Context: VM thread, ordinary code.
*/

#define lj_alloctype_c
#define LUA_CORE

#include "lj_obj.h"
#include "lj_gc.h"
#include "lj_bcdump.h"
#include "lj_buf.h"
#include "lj_frame.h"
#include "lj_func.h"
#include "lj_ff.h"
#include "lj_parse.h"
#include "lj_state.h"
#include "lj_str.h"
#include "lj_tab.h"
#include "lj_udata.h"
#if LJ_HASFFI
#include "lj_ctype.h"
#include "lj_cdata.h"
#endif
#if LJ_HASJIT
#include "lj_ir.h"
#include "lj_jit.h"
#include "lj_iropt.h"
#include "lj_trace.h"
#include "lj_snap.h"
#endif
#include "profile/alloc/lj_alloctype.h"
#include "profile/base/lj_osthread.h"
#include "profile/host/lj_vmcode.h"

/* OpenResty's lj_tab_dup jumps to it since 2025. NULL: this LuaJIT has none. */
extern __attribute__((weak, visibility("hidden"))) GCtab *lj_tab_dup_helper(
  lua_State *L, const GCtab *kt, int is_tab_clone);

#define STEPS_MAX 1024 /* Frames. The parser calls itself, see LJ_MAX_XLEVEL. */

/* A function of the VM that allocates. */
typedef struct TypeRule {
  uintptr_t function;
  uint8_t object; /* Type of what lj_mem_newgco allocates for it, 0: not known, */
  uint8_t memory; /* and of other blocks. */
} TypeRule;

#define RULE(f, object, memory) \
  { \
    (uintptr_t)(void *)(f), ALLOC_##object, ALLOC_##memory \
  }
#define ALLOC_NONE 0

static const TypeRule rules[] = {
  RULE(lj_mem_newgco, NONE, NONE),
  RULE(lj_mem_realloc, NONE, NONE),
  RULE(lj_mem_grow, NONE, NONE),
  RULE(lj_str_new, NONE, STRING),
  RULE(lj_str_resize, NONE, VM),
  RULE(lj_tab_new, TABLE, TABLE_PART),
  RULE(lj_tab_new_ah, TABLE, TABLE_PART),
  RULE(lj_tab_dup, TABLE, TABLE_PART),
  RULE(lj_tab_dup_helper, TABLE, TABLE_PART),
  RULE(lj_tab_resize, TABLE, TABLE_PART),
  RULE(lj_tab_reasize, TABLE, TABLE_PART),
  RULE(lj_tab_newkey, TABLE, TABLE_PART),
  RULE(lj_func_newC, FUNCTION, UPVALUE),
  RULE(lj_func_newL_empty, FUNCTION, UPVALUE),
  RULE(lj_func_newL_gc, FUNCTION, UPVALUE),
  RULE(lua_pushcclosure, FUNCTION, UPVALUE),
  RULE(lj_state_new, THREAD, THREAD),
  RULE(lua_newthread, THREAD, THREAD),
  RULE(lj_state_growstack, THREAD, THREAD),
  RULE(lj_state_growstack1, THREAD, THREAD),
  RULE(lj_state_shrinkstack, THREAD, THREAD),
  RULE(lj_state_relimitstack, THREAD, THREAD),
  RULE(lj_udata_new, USERDATA, USERDATA),
  RULE(lua_newuserdata, USERDATA, USERDATA),
  RULE(lj_buf_need2, NONE, BUFFER),
  RULE(lj_buf_more2, NONE, BUFFER),
  RULE(lj_buf_shrink, NONE, BUFFER),
  RULE(lj_bcread, PROTOTYPE, VM),
  RULE(lj_parse, PROTOTYPE, VM),
#if LJ_HASFFI
  RULE(lj_cdata_newv, CDATA, CDATA),
  RULE(lj_cdata_newx, CDATA, CDATA),
  RULE(lj_ctype_new, NONE, VM),
  RULE(lj_ctype_intern, NONE, VM),
#endif
#if LJ_HASJIT
  RULE(lj_ir_growtop, NONE, TRACE),
  RULE(lj_snap_grow_buf_, NONE, TRACE),
  RULE(lj_snap_grow_map_, NONE, TRACE),
  RULE(lj_trace_alloc, TRACE, TRACE),
  RULE(lj_tab_new1, TABLE, TABLE_PART), /* Only compiled code calls it. */
  RULE(lj_trace_ins, NONE, TRACE),      /* The last rule. */
#endif
};
#define NRULES (sizeof(rules) / sizeof(rules[0]))

/* Numbers of the first rules, from 1 on, and of the last; 0: none. */
#define RULE_NEWGCO    1
#define RULE_REALLOC   2
#define RULE_GROW      3
#define RULE_TRACE_INS NRULES

/* -- Rules ------------------------------------------------------------------- */

/* Number of the rule of the function that an address is in. */
static uint8_t rule_search(AllocTypes *at, uintptr_t pc)
{
  Fde fde;
  uint8_t i;
  if (lj_ehframe_find(&at->pk, pc, &at->cfi.copy, &fde) != CFI_STEP) return 0;
  for (i = 0; i < NRULES; i++)
    if (rules[i].function == fde.pc_begin) return (uint8_t)(i + 1);
  return 0;
}

static uint8_t rule_of(AllocTypes *at, uintptr_t pc)
{
  uint32_t slot = hash_slot(pc, ALLOCTYPE_BITS);
  if (at->known[slot].pc != pc) {
    at->known[slot].rule = rule_search(at, pc);
    at->known[slot].pc = pc;
  }
  return at->known[slot].rule;
}

static int step(AllocTypes *at, WalkRegs *regs)
{
  const CfiRule *rule = lj_cficache_find(&at->cfi, &at->pk, lj_cfi_lookup_pc(regs));
  CfiResult res = rule ? lj_cficache_step(rule, &at->pk, regs)
		       : lj_cfi_step(&at->pk, &at->cfi.copy, regs);
  return res == CFI_STEP;
}

/* Has Lua code called buffer.new? Link-time optimisation inlines lj_udata_new there. */
static int in_buffer_new(const global_State *g)
{
#if LJ_HASBUFFER
  const lua_State *L = &gcref(g->cur_L)->th;
  return g->vmstate == ~LJ_VMST_C && curr_func(L)->c.ffid == FF_buffer_new;
#else
  UNUSED(g);
  return 0;
#endif
}

/* Type of a block without a known function around its allocation. */
static AllocType last_rule(const global_State *g, uint8_t direct, int is_compiler,
			   size_t osize, size_t size)
{
  if (is_compiler) return ALLOC_TRACE;
  if (direct == RULE_NEWGCO) /* lj_cdata_new is inlined everywhere. */
    return in_buffer_new(g) ? ALLOC_USERDATA : ALLOC_CDATA;
  if (direct == RULE_REALLOC || direct == RULE_GROW) return ALLOC_VM;
  return osize == 0 && size == sizeof(GCtab) ? ALLOC_TABLE : ALLOC_OTHER;
}

/* The step to a caller loads from the stack of this thread. */
static void set_stack(AllocTypes *at, uintptr_t sp)
{
  if (sp - at->stack_lo >= at->stack_hi - at->stack_lo)
    lj_osthread_stack(&at->stack_lo, &at->stack_hi);
  lj_safeload_reset(&at->pk);
  lj_safeload_stack(&at->pk, at->stack_lo, at->stack_hi, sp);
}

/* Type by the rule of a function around the allocation, 0: not known. */
static AllocType type_by(uint8_t rule, uint8_t direct, size_t size)
{
  const TypeRule *r = &rules[rule - 1];
  if (r->function == (uintptr_t)(void *)lj_func_newL_empty && size == sizeof(GCupval))
    return ALLOC_UPVALUE; /* It makes them, too. */
  return (AllocType)(direct == RULE_NEWGCO ? r->object : r->memory);
}

#if LJ_HASJIT
/* Has C code entered a frame of the VM only to catch errors of other C code? */
static int runs_no_lua(AllocTypes *at, const WalkRegs *regs)
{
  uintptr_t nres;
  return lj_safeload_word(&at->pk, regs->r[WALKREG_SP] + CFRAME_OFS_NRES, &nres) &&
	 (int32_t)nres < 0;
}
#endif

/* Does the compiler allocate? Between it and its entry, lj_trace_ins, are only C functions,
** and frames of the VM that catch their errors. regs: of the VM's code, in a call.
*/
static int called_by_compiler(AllocTypes *at, WalkRegs *regs)
{
#if LJ_HASJIT
  int n;
  for (n = 0; n < STEPS_MAX; n++) {
    uintptr_t pc = lj_cfi_lookup_pc(regs);
    VMCode part = lj_vmcode_part(pc);
    if (part == VMCODE_NONE ? rule_of(at, pc) == RULE_TRACE_INS
			    : part != VMCODE_INTERP || !runs_no_lua(at, regs))
      return part == VMCODE_NONE;
    if (!step(at, regs)) return 0;
  }
#else
  UNUSED(at);
  UNUSED(regs);
#endif
  return 0;
}

/* How many of the C frames belong to the allocation of a program? n: they are this many.
** known: up to the outermost known function. is_vm: Lua code follows them.
*/
static uint32_t inner_frames(int32_t vmstate, uint32_t n, uint32_t known, int is_vm)
{
  if (vmstate >= 0) return is_vm ? n : known;
  switch (~(uint32_t)vmstate) {
  case LJ_VMST_INTERP:
  case LJ_VMST_RECORD: return is_vm ? n : known; /* The interpreter runs, too. */
  case LJ_VMST_C: return known;
  default: return 0;
  }
}

AllocSite lj_alloctype_find(AllocTypes *at, const WalkRegs *from, const global_State *g,
			    size_t osize, size_t size)
{
  int32_t vmstate = g->vmstate;
  AllocSite site = { 0, 0, 0 };
  WalkRegs regs = *from;
  uint32_t n, known = 0;
  uint8_t direct = 0, rule;
  int is_vm = 0;
  set_stack(at, regs.r[WALKREG_SP]);
  for (n = 0; n < STEPS_MAX; n++) {
    uintptr_t pc = lj_cfi_lookup_pc(&regs);
    is_vm = lj_vmcode_part(pc) != VMCODE_NONE;
    if (is_vm) break;
    rule = rule_of(at, pc);
    if (n == 0) direct = rule;
    if (rule != 0) known = n + 1;
    if (rule > RULE_GROW && !site.type) site.type = type_by(rule, direct, size);
    if (!step(at, &regs)) {
      is_vm = vmstate >= 0; /* Compiled code has no unwind tables. */
      break;
    }
  }
  site.is_compiler = vmstate < 0 && is_vm && called_by_compiler(at, &regs);
  if (!site.type) site.type = last_rule(g, direct, site.is_compiler, osize, size);
  if (!site.is_compiler) site.inner = inner_frames(vmstate, n, known, is_vm);
  return site;
}

/* -- Names ------------------------------------------------------------------- */

const char *lj_alloctype_name(AllocType type)
{
  static const char *const names[ALLOC__MAX] = {
    "",      "string",   "table",  "table part", "function", "upvalue", "thread",
    "cdata", "userdata", "buffer", "prototype",  "trace",    "VM",      "other",
  };
  return names[type];
}
