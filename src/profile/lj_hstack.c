/*
** Host stack: the C frames of a sample, and the VM's own among them.
** Runs in the signal handler, but for the warmup; see the header. x86-64.
*/

#define lj_hstack_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* For REG_RIP and friends. */
#endif
#include "lj_obj.h"
#include "lj_frame.h"
#include "lj_ctype.h"
#include "lj_ccallback.h"
#include "lj_jit.h"
#include "lj_target.h"
#include "lj_dispatch.h"
#include "lj_vm.h"
#include "profile/lj_hstack.h"

LJ_ASMF void lj_vm_ffi_callback(void);
LJ_ASMF void lj_vm_ffi_call(void);

/* -- Layout of the VM's machine code ----------------------------------------- */

/* The VM's C frame, from its address upwards (lj_frame.h, CFRAME_*): locals,
** the saved registers, the return address.
*/
#define VMFRAME_R14	(CFRAME_SIZE - 5*8)
#define VMFRAME_R15	(CFRAME_SIZE - 4*8)
#define VMFRAME_BX	(CFRAME_SIZE - 3*8)
#define VMFRAME_BP	(CFRAME_SIZE - 2*8)
#define VMFRAME_PC	(CFRAME_SIZE - 1*8)
/* A trace saves these two in and below the frame before it uses them. */
#define VMFRAME_TRACE_R12	0
#define VMFRAME_TRACE_R13	(-8)

/* Stack that the VM's code uses below its frame, but for trace exits. */
#define VMFRAME_SLACK		(CFRAME_SIZE_JIT - CFRAME_SIZE)

#define VM_WINDOWS_MAX	16

/* Machine code that builds or removes the VM's frame, found by its bytes. */
static struct {
  uintptr_t prologue[VM_WINDOWS_MAX];	/* Addresses of "push rbx". */
  uintptr_t epilogue[VM_WINDOWS_MAX];	/* Addresses of "add rsp". */
  int nprologue, nepilogue;
  uintptr_t ffi_call_ret;		/* Last "ret" of lj_vm_ffi_call. */
} vmcode;

#define VM_BEGIN	((uintptr_t)(void *)lj_vm_asm_begin)
#define VM_END		((uintptr_t)(void *)lj_vm_ffi_call)
#define VM_EXIT		((uintptr_t)(void *)lj_vm_exit_handler)
#define VM_EXIT_INTERP	((uintptr_t)(void *)lj_vm_exit_interp)
/* Leaf routines without a frame: from lj_vm_floor to lj_vm_ffi_callback. */
#define VM_LEAF_BEGIN	((uintptr_t)(void *)lj_vm_floor)
#define VM_LEAF_END	((uintptr_t)(void *)lj_vm_ffi_callback)


/* push rbx; push r15; push r14; sub rsp, 5*8 */
static const uint8_t prologue_code[] = {
  0x53, 0x41, 0x57, 0x41, 0x56, 0x48, 0x83, 0xec, 0x28
};
/* add rsp, 5*8; pop r14; pop r15; pop rbx; pop rbp */
static const uint8_t epilogue_code[] = {
  0x48, 0x83, 0xc4, 0x28, 0x41, 0x5e, 0x41, 0x5f, 0x5b, 0x5d
};

static int code_matches(const uint8_t *p, const uint8_t *code, size_t sz)
{
  size_t i;
  for (i = 0; i < sz; i++)
    if (p[i] != code[i]) return 0;
  return 1;
}

int lj_hstack_warmup(void)
{
  const uint8_t *p = (const uint8_t *)VM_BEGIN, *end = (const uint8_t *)VM_END;
  if (vmcode.ffi_call_ret) return 1;
  vmcode.nprologue = vmcode.nepilogue = 0;
  for (; p + sizeof(epilogue_code) < end; p++) {
    if (code_matches(p, prologue_code, sizeof(prologue_code))) {
      if (vmcode.nprologue == VM_WINDOWS_MAX) return 0;
      vmcode.prologue[vmcode.nprologue++] = (uintptr_t)p;
    } else if (code_matches(p, epilogue_code, sizeof(epilogue_code))) {
      if (vmcode.nepilogue == VM_WINDOWS_MAX) return 0;
      vmcode.epilogue[vmcode.nepilogue++] = (uintptr_t)p;
    }
  }
  for (p = end; !(p[0] == 0xc9 && p[1] == 0xc3); p++)  /* leave; ret */
    if (p - end > 1024) return 0;
  lj_cfi_warmup();
  vmcode.ffi_call_ret = (uintptr_t)(p + 1);
  /* lj_vm_call, lj_vm_pcall, lj_vm_cpcall and lj_vm_resume at least. */
  return vmcode.nprologue >= 4 && vmcode.nepilogue >= 1;
}

int lj_hstack_isvm(uintptr_t pc)
{
  return pc - VM_BEGIN < VM_END - VM_BEGIN;
}

/* -- Reading the VM's structures --------------------------------------------- */

#define MCODE_AREAS_MAX	4096	/* Areas of machine code looked at. */

/* Bytes of a group of exit stubs: a "push imm8; jmp short" for each but the
** last, which falls into "push imm8; jmp near".
*/
#define EXITSTUBS_SIZE	(4*EXITSTUBS_PER_GROUP - 2 + 2 + 5)

/* Is an address in the machine code of this VM's traces and exit stubs? */
static int code_isjit(Peek *pk, const global_State *g, uintptr_t pc)
{
#if LJ_HASJIT
  const jit_State *J = G2J(g);
  uintptr_t area = (uintptr_t)J->mcarea;
  int n;
  for (n = 0; area != 0 && n < MCODE_AREAS_MAX; n++) {
    uintptr_t size;  /* Each area begins with the next one and its own size. */
    if (!lj_peek_word(pk, area + sizeof(uintptr_t), &size)) return 0;
    if (pc - area < size) return 1;
    if (!lj_peek_word(pk, area, &area)) return 0;
  }
#else
  UNUSED(pk); UNUSED(g); UNUSED(pc);
#endif
  return 0;
}

/* Is an address in an exit stub? */
static int code_isexitstub(const global_State *g, uintptr_t pc)
{
#if LJ_HASJIT
  const jit_State *J = G2J(g);
  int i;
  for (i = 0; i < LJ_MAX_EXITSTUBGR && J->exitstubgroup[i]; i++)
    if (pc - (uintptr_t)J->exitstubgroup[i] < EXITSTUBS_SIZE) return 1;
#else
  UNUSED(g); UNUSED(pc);
#endif
  return 0;
}

int lj_hstack_isthread(Peek *pk, global_State *g, uintptr_t p)
{
  const lua_State *L = (const lua_State *)p;
  return p != 0 && (p & 7) == 0 && lj_peek_ok(pk, L, sizeof(lua_State)) &&
	 L->gct == (uint8_t)~LJ_TTHREAD && mref(L->glref, global_State) == g;
}

static uintptr_t cframe_next(Peek *pk, uintptr_t cf)
{
  uintptr_t prev;
  if (!lj_peek_word(pk, cf + CFRAME_OFS_PREV, &prev)) return 0;
  prev &= (uintptr_t)CFRAME_RAWMASK;
  return prev;
}

/* Is cf one of the VM frames of a coroutine? */
static int cframe_linked(Peek *pk, lua_State *L, uintptr_t cf)
{
  uintptr_t c = (uintptr_t)cframe_raw(L->cframe);
  int n;
  for (n = 0; c != 0 && c <= cf && n < HSTACK_STEPS; n++) {
    if (c == cf) return 1;
    c = cframe_next(pk, c);
  }
  return 0;
}

/* -- Unwinding --------------------------------------------------------------- */

/* State of a walk. */
typedef struct Walk {
  HostStack *hs;
  CfiRegs regs;		/* Registers of the current frame. */
  lua_State *L;		/* Coroutine of the next VM frame, or NULL. */
  uintptr_t expect;	/* Next VM frame that is linked to it, or 0. */
  int is_leaf;		/* The current frame is the interrupted one. */
} Walk;

static void walk_push(Walk *w, FrameWord word)
{
  if (w->hs->frames) lj_frames_push(w->hs->frames, word);
}

static void walk_broken(Walk *w, int reason)
{
  if (w->hs->broken < 0) w->hs->broken = reason;
  walk_push(w, frame_word(SPF_FRAME_BROKEN, reason));
}

/* Load a saved register, and note whether it is known. */
static void walk_load(Walk *w, int reg, uintptr_t addr)
{
  if (lj_peek_word(w->hs->pk, addr, &w->regs.r[reg]))
    w->regs.valid |= 1u << reg;
  else
    w->regs.valid &= ~(1u << reg);
}

/* Return from the current frame: its return address is at addr. */
static int walk_return(Walk *w, uintptr_t addr)
{
  uintptr_t pc;
  if (!lj_peek_word(w->hs->pk, addr, &pc)) return 0;
  w->regs.r[CFI_REG_PC] = pc;
  w->regs.r[CFI_REG_SP] = addr + 8;
  w->regs.valid &= CFI_PRESERVED;
  w->regs.is_return = 1;
  w->is_leaf = 0;
  return 1;
}

/* Leave a complete VM frame. */
static int walk_leave_vmframe(Walk *w, uintptr_t cf)
{
  walk_load(w, CFI_REG_R14, cf + VMFRAME_R14);
  walk_load(w, CFI_REG_R15, cf + VMFRAME_R15);
  walk_load(w, CFI_REG_BX, cf + VMFRAME_BX);
  walk_load(w, CFI_REG_BP, cf + VMFRAME_BP);
  return walk_return(w, cf + VMFRAME_PC);
}

/* What runs on a VM frame, by the address there. */
static VMPlace walk_place(const Walk *w, uintptr_t code)
{
  const global_State *g = w->hs->g;
  if (code - VM_EXIT < VM_EXIT_INTERP - VM_EXIT) return VMF_EXIT;
  if (code - VM_EXIT_INTERP < VM_LEAF_BEGIN - VM_EXIT_INTERP)
    return w->is_leaf && tvref(g->jit_base) ? VMF_EXIT : VMF_INTERP;
  if (lj_hstack_isvm(code)) return VMF_INTERP;
  if (code_isexitstub(g, code)) return VMF_EXIT;
  return code_isjit(w->hs->pk, g, code) ? VMF_TRACE : VMF_INTERP;
}

/* Cross the linked VM frame at cf. gap: the frames above it are not known. */
static int walk_vmframe(Walk *w, uintptr_t cf, lua_State *L, int gap)
{
  HostStack *hs = w->hs;
  uintptr_t sp = w->regs.r[CFI_REG_SP];
  uintptr_t code = gap ? 0 : lj_cfi_lookup_pc(&w->regs);
  VMPlace place = gap ? VMF_INTERP : walk_place(w, code);
  int from_trace = (cf - sp >= VMFRAME_SLACK);
  walk_push(w, frame_word(SPF_FRAME_VM, 0));
  if (hs->nvm < HSTACK_VMFRAMES) {
    VMFrame *vf = &hs->vm[hs->nvm];
    int known = !from_trace;
    vf->cf = cf;
    vf->place = place;
    vf->code = code;
    vf->sp = gap ? 0 : sp;
    vf->L = L;
    vf->pc = known && (w->regs.valid & (1u << CFI_REG_BX)) ?
	     w->regs.r[CFI_REG_BX] : 0;
    vf->rb = known && (w->regs.valid & (1u << CFI_REG_BP)) ?
	     w->regs.r[CFI_REG_BP] : 0;
  }
  hs->nvm++;
  if (from_trace) {
    walk_load(w, CFI_REG_R12, cf + VMFRAME_TRACE_R12);
    walk_load(w, CFI_REG_R13, cf + (intptr_t)VMFRAME_TRACE_R13);
  }
  w->L = L;
  w->expect = cframe_next(hs->pk, cf);
  return walk_leave_vmframe(w, cf);
}

/* Interrupted while the VM's frame was being built or removed: its parts are
** on the stack already, or still. Returns 0 if not at such a place.
*/
static int walk_window(Walk *w, int *ok)
{
  static const int saved[4] = {
    CFI_REG_R14, CFI_REG_R15, CFI_REG_BX, CFI_REG_BP
  };
  uintptr_t pc = w->regs.r[CFI_REG_PC], sp = w->regs.r[CFI_REG_SP];
  int i, n;
  for (i = 0; i < vmcode.nprologue; i++) {
    uintptr_t ofs = pc - vmcode.prologue[i] + 1;  /* From "push rbp". */
    switch (ofs) {
    case 0: n = 0; break;
    case 1: n = 1; break;
    case 2: n = 2; break;
    case 4: n = 3; break;
    case 6: n = 4; break;
    default: continue;
    }
    if (n > 0) walk_load(w, CFI_REG_BP, sp + (uintptr_t)(n-1)*8);
    *ok = walk_return(w, sp + (uintptr_t)n*8);
    return 1;
  }
  for (i = 0; i < vmcode.nepilogue; i++) {
    int j;
    switch (pc - vmcode.epilogue[i]) {
    case 4: n = 4; break;
    case 6: n = 3; break;
    case 8: n = 2; break;
    case 9: n = 1; break;
    case 10: n = 0; break;
    default: continue;
    }
    for (j = 0; j < n; j++)
      walk_load(w, saved[4-n+j], sp + (uintptr_t)j*8);
    *ok = walk_return(w, sp + (uintptr_t)n*8);
    return 1;
  }
  return 0;
}

/* The current frame is in the assembler VM. Returns 0 if it cannot be left. */
static int walk_vm(Walk *w)
{
  HostStack *hs = w->hs;
  uintptr_t pc = w->regs.r[CFI_REG_PC], sp = w->regs.r[CFI_REG_SP];
  uintptr_t saved_L, saved_pc;
  int ok;
  if (w->is_leaf) {
    if (walk_window(w, &ok)) return ok;
    if (pc - VM_LEAF_BEGIN < VM_LEAF_END - VM_LEAF_BEGIN)
      return walk_return(w, sp);
  }
  /* A subroutine of the VM or the way into a trace is a bit deeper than the
  ** frame, a trace exit much deeper.
  */
  if (w->expect - sp <= VMFRAME_SLACK ||
      (w->expect > sp &&
       lj_cfi_lookup_pc(&w->regs) - VM_EXIT < VM_LEAF_BEGIN - VM_EXIT))
    return walk_vmframe(w, w->expect, w->L, 0);
  /* First frame of another coroutine, or L was not known. */
  if (lj_peek_word(hs->pk, sp + CFRAME_OFS_L, &saved_L) &&
      lj_hstack_isthread(hs->pk, hs->g, saved_L)) {
    const lua_State *L = (const lua_State *)saved_L;
    if (cframe_linked(hs->pk, (lua_State *)saved_L, sp))
      return walk_vmframe(w, sp, (lua_State *)saved_L, 0);
    /* A coroutine that an error has ended: only its C frames are left. */
    if (!L->cframe && L->status > LUA_YIELD) return walk_leave_vmframe(w, sp);
  }
  /* Not linked yet or no more: a frame, but nothing runs on it. An FFI callback
  ** is linked by the C function that it calls first.
  */
  if (w->is_leaf || pc - VM_LEAF_END < VM_END - VM_LEAF_END)
    return walk_leave_vmframe(w, sp);
  if (w->expect <= sp) {
    walk_broken(w, SPF_BROKEN_NO_CFI);
    return 0;
  }
  /* Shortly before it lands in the VM, the C library's unwinder overwrites its
  ** own return address with that of the C function which the VM had called. The
  ** frames up to there are gone then; anything else is a gap.
  */
  if (!lj_peek_word(hs->pk, w->expect - 8, &saved_pc) || saved_pc != pc)
    walk_broken(w, SPF_BROKEN_NO_CFI);
  return walk_vmframe(w, w->expect, w->L, 1);
}

/* Interrupted at the edge of lj_vm_ffi_call, whose CFI holds only inside. */
static int walk_ffi_call_edge(Walk *w, int *ok)
{
  uintptr_t pc = w->regs.r[CFI_REG_PC], sp = w->regs.r[CFI_REG_SP];
  if (pc == VM_END || pc == vmcode.ffi_call_ret) {
    *ok = walk_return(w, sp);
    return 1;
  } else if (pc == VM_END + 1) {  /* After "push rbp". */
    walk_load(w, CFI_REG_BP, sp);
    *ok = walk_return(w, sp + 8);
    return 1;
  }
  return 0;
}

/* Interrupted in the trampoline of an FFI callback, which pushes RBP on its way
** to lj_vm_ffi_callback. Returns 0 if not there.
*/
static int walk_callback(Walk *w, int *ok)
{
#if LJ_HASFFI
  enum { MOV_AH = 0xb4, MOV_RBP = 0x48, JMP_VM = 0xff };  /* After the push. */
  uintptr_t pc = w->regs.r[CFI_REG_PC], sp = w->regs.r[CFI_REG_SP];
  const CTState *cts = mref(w->hs->g->ctype_state, const CTState);
  uint8_t code;
  if (!cts || !lj_peek_ok(w->hs->pk, &cts->cb, sizeof(cts->cb)) ||
      pc - (uintptr_t)cts->cb.mcode >= (1u << PEEK_PAGE_BITS) ||
      !lj_peek_ok(w->hs->pk, (const void *)pc, 1))
    return 0;
  code = *(const uint8_t *)pc;
  if (code == MOV_AH || code == MOV_RBP || code == JMP_VM) {
    walk_load(w, CFI_REG_BP, sp);
    sp += 8;
  }
  *ok = walk_return(w, sp);
  return 1;
#else
  UNUSED(w); UNUSED(ok);
  return 0;
#endif
}

/* The current frame is in host code, or in a trace. Returns 0 at the end. */
static int walk_host(Walk *w)
{
  HostStack *hs = w->hs;
  FrameWord here = frame_word(SPF_FRAME_HOST, lj_cfi_lookup_pc(&w->regs));
  CfiResult res;
  int ok;
  if (w->is_leaf && walk_ffi_call_edge(w, &ok)) {
    walk_push(w, here);
    return ok;
  }
  res = lj_cfi_step(hs->pk, &w->regs);
  if (res == CFI_STEP) {
    walk_push(w, here);
    w->is_leaf = 0;
    return 1;
  } else if (res == CFI_ROOT) {
    walk_push(w, here);
    return 0;
  }
  if (res == CFI_NO_OBJECT && w->is_leaf && walk_callback(w, &ok)) {
    walk_push(w, here);
    return ok;
  }
  if (w->expect <= w->regs.r[CFI_REG_SP]) {  /* Nowhere to go on. */
    walk_push(w, here);
    walk_broken(w, res == CFI_FAULT ? SPF_BROKEN_FAULT : SPF_BROKEN_NO_CFI);
    return 0;
  }
  /* A trace runs on the VM frame that it was entered from, so nothing is
  ** missing in between. Elsewhere there is a gap up to the next VM frame.
  */
  if (res == CFI_NO_OBJECT &&
      code_isjit(hs->pk, hs->g, lj_cfi_lookup_pc(&w->regs)))
    return walk_vmframe(w, w->expect, w->L, 0);
  walk_push(w, here);
  walk_broken(w, res == CFI_FAULT ? SPF_BROKEN_FAULT : SPF_BROKEN_NO_CFI);
  return walk_vmframe(w, w->expect, w->L, 1);
}

void lj_hstack_walk(HostStack *hs, const ucontext_t *uc)
{
  static const struct { uint8_t reg, greg; } regmap[] = {
    { 0, REG_RAX }, { 1, REG_RDX }, { 2, REG_RCX }, { 3, REG_RBX },
    { 4, REG_RSI }, { 5, REG_RDI }, { 6, REG_RBP }, { 7, REG_RSP },
    { 8, REG_R8 }, { 9, REG_R9 }, { 10, REG_R10 }, { 11, REG_R11 },
    { 12, REG_R12 }, { 13, REG_R13 }, { 14, REG_R14 }, { 15, REG_R15 },
    { CFI_REG_PC, REG_RIP }
  };
  Walk w;
  uintptr_t cur_L = (uintptr_t)gcref(hs->g->cur_L);
  int i, more = 1, steps;
  for (i = 0; i < CFI_REG__MAX; i++)
    w.regs.r[regmap[i].reg] = (uintptr_t)uc->uc_mcontext.gregs[regmap[i].greg];
  w.regs.valid = (1u << CFI_REG__MAX) - 1;
  w.regs.is_return = 0;
  w.hs = hs;
  w.is_leaf = 1;
  w.L = NULL;
  w.expect = 0;
  hs->nvm = 0;
  hs->broken = -1;
  hs->leaf = lj_hstack_isvm(w.regs.r[CFI_REG_PC]) ? LEAF_VM : LEAF_HOST;
  if (lj_hstack_isthread(hs->pk, hs->g, cur_L)) {
    w.L = (lua_State *)cur_L;
    w.expect = (uintptr_t)cframe_raw(w.L->cframe);
    /* Frames below the stack pointer belong to another C stack. */
    for (i = 0; w.expect != 0 && w.expect < w.regs.r[CFI_REG_SP] &&
		i < HSTACK_STEPS; i++)
      w.expect = cframe_next(hs->pk, w.expect);
  }
  for (steps = 0; more && steps < HSTACK_STEPS; steps++) {
    if (lj_hstack_isvm(w.regs.r[CFI_REG_PC])) {
      more = walk_vm(&w);
      if (!more && hs->broken < 0) walk_broken(&w, SPF_BROKEN_FAULT);
    } else {
      more = walk_host(&w);
    }
    if (hs->first_vm_only && hs->nvm > 0) return;
  }
  if (more && steps == HSTACK_STEPS) walk_broken(&w, SPF_BROKEN_NO_CFI);
}
