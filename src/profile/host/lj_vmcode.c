/*
** Machine code of the VM: the state of the C stack at an address in it.
** Context: handler, VM thread; see the header. x86-64.
*/

#define lj_vmcode_c
#define LUA_CORE

#include "lj_obj.h"
#include "lj_ctype.h"
#include "lj_ccall.h"
#include "lj_ccallback.h"
#include "lj_jit.h"
#include "lj_target.h"
#include "lj_dispatch.h"
#include "lj_vm.h"
#include "profile/host/lj_cfi.h"
#include "profile/host/lj_vmcode.h"
#include "profile/host/lj_vmstub.h"

LJ_ASMF void lj_vm_ffi_callback(void);
#if !LJ_HASFFI
LJ_ASMF void lj_vm_ffi_call(void); /* Else declared by lj_ccall.h. */
#endif

/* -- Parts of the assembler VM -------------------------------------------- */

/* In the order of their addresses. */
#define VM_BEGIN       ((uintptr_t)(void *)lj_vm_asm_begin)
#define VM_UNWIND_C    ((uintptr_t)(void *)lj_vm_unwind_c)
#define VM_UNWIND_FF   ((uintptr_t)(void *)lj_vm_unwind_ff)
#define VM_EXIT        ((uintptr_t)(void *)lj_vm_exit_handler)
#define VM_EXIT_INTERP ((uintptr_t)(void *)lj_vm_exit_interp)
#define VM_LEAF        ((uintptr_t)(void *)lj_vm_floor)
#define VM_CPUID       ((uintptr_t)(void *)lj_vm_cpuid)
#define VM_CALLBACK    ((uintptr_t)(void *)lj_vm_ffi_callback)
#define VM_FFI_CALL    ((uintptr_t)(void *)lj_vm_ffi_call)

VMCode lj_vmcode_part(uintptr_t pc)
{
  if (pc - VM_BEGIN >= VM_FFI_CALL - VM_BEGIN)
    return LJ_UNLIKELY(vmstub_has(pc)) ? VMCODE_INTERP : VMCODE_NONE;
  if (pc < VM_EXIT) return VMCODE_INTERP;
  if (pc < VM_EXIT_INTERP) return VMCODE_EXIT;
  if (pc < VM_LEAF) return VMCODE_EXIT_INTERP;
  return pc < VM_CALLBACK ? VMCODE_LEAF : VMCODE_CALLBACK;
}

/* -- Places where the frame is not complete ------------------------------- */

#define WINDOWS_MAX  16
#define FFI_CALL_MAX 1024 /* Bytes of lj_vm_ffi_call at most. */

enum { OP_RET = 0xc3, OP_LEAVE = 0xc9, OP_PUSH_RBX = 0x53, OP_POP_RBX = 0x5b };

/* Places that lj_vmcode_warmup has found. */
static struct {
  uintptr_t prologue[WINDOWS_MAX]; /* Addresses of "push rbx". */
  uintptr_t epilogue[WINDOWS_MAX]; /* Addresses of "add rsp". */
  int nprologue, nepilogue;
  uintptr_t cpuid_push, cpuid_pop; /* Behind them, RBX is saved, or not. */
  uintptr_t ffi_call_ret;          /* Last "ret" of lj_vm_ffi_call. */
} vmcode;

/* push rbx; push r15; push r14; sub rsp, 5*8 */
static const uint8_t prologue_code[] = { 0x53, 0x41, 0x57, 0x41, 0x56,
					 0x48, 0x83, 0xec, 0x28 };
/* add rsp, 5*8; pop r14; pop r15; pop rbx; pop rbp */
static const uint8_t epilogue_code[] = { 0x48, 0x83, 0xc4, 0x28, 0x41,
					 0x5e, 0x41, 0x5f, 0x5b, 0x5d };

static int code_matches(const uint8_t *p, const uint8_t *code, size_t sz)
{
  size_t i;
  for (i = 0; i < sz; i++)
    if (p[i] != code[i]) return 0;
  return 1;
}

int lj_vmcode_warmup(void)
{
  const uint8_t *p = (const uint8_t *)VM_BEGIN;
  const uint8_t *end = (const uint8_t *)VM_FFI_CALL;
  if (vmcode.ffi_call_ret) return 1;
  vmcode.nprologue = vmcode.nepilogue = 0;
  for (; p + sizeof(epilogue_code) < end; p++) {
    if (code_matches(p, prologue_code, sizeof(prologue_code))) {
      if (vmcode.nprologue == WINDOWS_MAX) return 0;
      vmcode.prologue[vmcode.nprologue++] = (uintptr_t)p;
    } else if (code_matches(p, epilogue_code, sizeof(epilogue_code))) {
      if (vmcode.nepilogue == WINDOWS_MAX) return 0;
      vmcode.epilogue[vmcode.nepilogue++] = (uintptr_t)p;
    }
  }
  /* lj_vm_call, lj_vm_pcall, lj_vm_cpcall and lj_vm_resume at least. */
  if (vmcode.nprologue < 4 || vmcode.nepilogue < 1) return 0;
  for (p = (const uint8_t *)VM_CPUID; *p != OP_PUSH_RBX; p++)
    if ((uintptr_t)p >= VM_CALLBACK) return 0;
  vmcode.cpuid_push = (uintptr_t)p;
  for (; !(p[0] == OP_POP_RBX && p[1] == OP_RET); p++)
    if ((uintptr_t)p >= VM_CALLBACK) return 0;
  vmcode.cpuid_pop = (uintptr_t)p;
  p = end;
#if LJ_HASFFI /* Else there is only its name. */
  for (; !(p[0] == OP_LEAVE && p[1] == OP_RET); p++)
    if (p - end > FFI_CALL_MAX) return 0;
#endif
  vmcode.ffi_call_ret = (uintptr_t)(p + 1);
  return 1;
}

int lj_vmcode_partial(uintptr_t pc, const uint8_t **regs)
{
  /* From the lowest address on. The last ones are the first that are pushed. */
  static const uint8_t saved[4] = { WALKREG_R14, WALKREG_R15, WALKREG_BX, WALKREG_BP };
  int i, n = -1;
  switch (lj_vmcode_part(pc)) {
  case VMCODE_LEAF:
    n = 0;
    if (pc > vmcode.cpuid_push && pc <= vmcode.cpuid_pop) {
      *regs = saved + 2;
      return 1;
    }
    break;
  case VMCODE_NONE: /* The CFI of lj_vm_ffi_call holds only inside. */
    if (!LJ_HASFFI) break;
    if (pc == VM_FFI_CALL || pc == vmcode.ffi_call_ret) n = 0;
    else if (pc - VM_FFI_CALL <= 4) /* push rbp; mov rbp, rsp; push rbx */ n = 1;
    break;
  case VMCODE_INTERP:
  case VMCODE_CALLBACK:
    if (pc == VM_UNWIND_C || pc == VM_UNWIND_FF) n = 0; /* Called by C. */
    for (i = 0; i < vmcode.nprologue && n < 0; i++) {
      switch (pc - vmcode.prologue[i] + 1) { /* From "push rbp". */
      case 0: n = 0; break;
      case 1: n = 1; break;
      case 2: n = 2; break;
      case 4: n = 3; break;
      case 6: n = 4; break;
      default: break;
      }
    }
    for (i = 0; i < vmcode.nepilogue && n < 0; i++) {
      switch (pc - vmcode.epilogue[i]) {
      case 4: n = 4; break;
      case 6: n = 3; break;
      case 8: n = 2; break;
      case 9: n = 1; break;
      case 10: n = 0; break;
      default: break;
      }
    }
    break;
  default: break;
  }
  if (n >= 0) *regs = saved + 4 - n;
  return n;
}

int lj_vmcode_callback(SafeLoad *pk, const global_State *g, uintptr_t pc,
		       const uint8_t **regs)
{
#if LJ_HASFFI
  /* Each slot sets AL and jumps; then each group pushes RBP and sets AH and RBP
  ** on its way to lj_vm_ffi_callback. These come after the push.
  */
  enum { MOV_AH = 0xb4, MOV_RBP = 0x48, JMP_VM = 0xff };
  static const uint8_t saved[1] = { WALKREG_BP };
  const CTState *cts = mref(g->ctype_state, const CTState);
  uint8_t code;
  if (!cts || !lj_safeload_ok(pk, &cts->cb, sizeof(cts->cb)) ||
      pc - (uintptr_t)cts->cb.mcode >= (1u << SAFELOAD_PAGE_BITS) ||
      !lj_safeload_ok(pk, (const void *)pc, 1))
    return -1;
  code = *(const uint8_t *)pc;
  *regs = saved;
  return code == MOV_AH || code == MOV_RBP || code == JMP_VM;
#else
  UNUSED(pk);
  UNUSED(g);
  UNUSED(pc);
  UNUSED(regs);
  return -1;
#endif
}

int lj_vmcode_islanding(uintptr_t pc)
{
  return pc == (uintptr_t)(void *)lj_vm_unwind_c_eh ||
	 pc == (uintptr_t)(void *)lj_vm_unwind_ff_eh;
}

/* -- Compiled code -------------------------------------------------------- */

#define MCODE_AREAS_MAX   4096 /* Areas of machine code that are read. */
#define MCODE_FOREIGN_MAX 64   /* Areas of another VM that are read. */

/* Bytes of a group of exit stubs. Each stub is "push imm8; jmp short", except the last one,
** which falls into "push imm8; jmp near".
*/
#define EXITSTUBS_SIZE (4 * EXITSTUBS_PER_GROUP - 2 + 2 + 5)

static uint32_t code_frees; /* Of all VMs. */

void lj_vmcode_freed(void)
{
  __atomic_add_fetch(&code_frees, 1, __ATOMIC_SEQ_CST);
}

#if LJ_HASJIT

/* Each area begins with the next older one and its own size. Both are missing in an area
** that the VM is about to add.
*/
static int area_load(SafeLoad *pk, int by_copy, uintptr_t area, uintptr_t *next,
		     uintptr_t *size)
{
  const uintptr_t *p = (const uintptr_t *)area;
  if (by_copy)
    return lj_safeload_word(pk, area, next) &&
	   lj_safeload_word(pk, area + sizeof(uintptr_t), size) && *size != 0;
  if ((area & 7) != 0 || !lj_safeload_ok(pk, p, 2 * sizeof(*p))) return 0;
  *next = p[0];
  *size = p[1];
  return *size != 0;
}

/* The VM allocates them one below the other, where possible. */
static void areas_add(VMCodeAreas *va, uintptr_t begin, uintptr_t end)
{
  uint32_t i;
  for (i = 0; i < va->n; i++) {
    if (va->range[i].begin == end) {
      va->range[i].begin = begin;
      return;
    }
    if (va->range[i].end == begin) {
      va->range[i].end = end;
      return;
    }
  }
  if (va->n < VMCODE_RANGES) {
    va->range[va->n].begin = begin;
    va->range[va->n].end = end;
  }
  va->n++;
}

/* Update the ranges of all areas; head is the newest one. Between two frees, the VM only
** adds areas, before the others. Returns 0 if the sizes do not add up: the VM may be about
** to add an area, which it has not linked yet.
*/
static int areas_update(VMCodeAreas *va, SafeLoad *pk, const jit_State *J, uintptr_t head)
{
  uint32_t frees = __atomic_load_n(&code_frees, __ATOMIC_SEQ_CST);
  uintptr_t area, known = va->frees == frees ? va->head : 0;
  int i;
  if (known == head) return va->n <= VMCODE_RANGES;
  if (known == 0) va->n = va->size = 0;
  va->head = 0; /* Unknown, until all is read. */
  for (area = head, i = 0; area != known && va->n <= VMCODE_RANGES; i++) {
    uintptr_t next, size;
    if (area == 0 || i == MCODE_AREAS_MAX ||
	!area_load(pk, va->by_copy, area, &next, &size))
      return 0;
    areas_add(va, area, area + size);
    va->size += size;
    area = next;
  }
  if (va->n <= VMCODE_RANGES && va->size != J->szallmcarea) return 0;
  va->head = head;
  va->frees = frees;
  return va->n <= VMCODE_RANGES;
}

/* Search the areas themselves. */
static int areas_search(SafeLoad *pk, int by_copy, uintptr_t area, uintptr_t pc)
{
  int i;
  for (i = 0; area != 0 && i < MCODE_AREAS_MAX; i++) {
    uintptr_t size, begin = area;
    if (!area_load(pk, by_copy, begin, &area, &size)) return 0;
    if (pc - begin < size) return 1;
  }
  return 0;
}

#endif

int lj_vmcode_isjit(VMCodeAreas *va, SafeLoad *pk, const global_State *g, uintptr_t pc)
{
#if LJ_HASJIT
  const jit_State *J = G2J(g);
  uintptr_t head = (uintptr_t)J->mcarea;
  uint32_t i;
  if (head == 0) return 0;
  if (pc - head < J->szmcarea) return 1;
  if (!va || !areas_update(va, pk, J, head))
    return areas_search(pk, va && va->by_copy, head, pc);
  for (i = 0; i < va->n; i++)
    if (pc - va->range[i].begin < va->range[i].end - va->range[i].begin) return 1;
#else
  UNUSED(va);
  UNUSED(pk);
  UNUSED(g);
  UNUSED(pc);
#endif
  return 0;
}

int lj_vmcode_isforeign(SafeLoad *pk, const global_State *g, uintptr_t pc)
{
#if LJ_HASJIT
  const jit_State *J = G2J(g);
  uintptr_t area, size;
  int i;
  if (!lj_safeload_word(pk, (uintptr_t)&J->mcarea, &area)) return 0;
  for (i = 0; area != 0 && i < MCODE_FOREIGN_MAX; i++) {
    uintptr_t begin = area;
    if (!lj_safeload_word(pk, begin, &area) ||
	!lj_safeload_word(pk, begin + sizeof(uintptr_t), &size) || size == 0)
      return 0;
    if (pc - begin < size) return 1;
  }
#else
  UNUSED(pk);
  UNUSED(g);
  UNUSED(pc);
#endif
  return 0;
}

int lj_vmcode_isexitstub(const global_State *g, uintptr_t pc)
{
#if LJ_HASJIT
  const jit_State *J = G2J(g);
  int i;
  for (i = 0; i < LJ_MAX_EXITSTUBGR && J->exitstubgroup[i]; i++)
    if (pc - (uintptr_t)J->exitstubgroup[i] < EXITSTUBS_SIZE) return 1;
#else
  UNUSED(g);
  UNUSED(pc);
#endif
  return 0;
}
