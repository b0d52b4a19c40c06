/*
** VM stubs: their code, and the dispatch table.
** Context: as in the header. x86-64.
*/

#define lj_vmstub_c
#define LUA_CORE

#include <stddef.h>

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_dispatch.h"
#include "lj_ff.h"
#include "lj_frame.h"
#include "lj_vm.h"
#include "profile/base/lj_relaxed.h"
#include "profile/host/lj_vmstub.h"

/* Functions of the assembler VM. No header of LuaJIT declares them. */
extern void lj_ff_coroutine_yield(void);
extern void lj_ff_coroutine_resume(void);
extern void lj_ff_coroutine_wrap_aux(void);

/* -- Code -------------------------------------------------------------------- */

/* Link-time optimisation does not see uses by assembler. */
#define USED_BY_ASSEMBLER __attribute__((used))

LJ_DATADEF USED_BY_ASSEMBLER VMStubHook lj_vmstub_hook[VMSTUB__MAX];

LJ_DATA ASMFunction lj_vmstub_target[VMSTUB__MAX];
LJ_DATADEF USED_BY_ASSEMBLER ASMFunction lj_vmstub_target[VMSTUB__MAX] = {
  lj_ff_coroutine_yield, lj_ff_coroutine_resume, lj_ff_coroutine_wrap_aux
};

/* The VM's registers at a builtin function: RDX is the frame's base, RAX the number of arguments
** plus 1, RBX points behind the function's header, and RCX has the second byte of that. The
** coroutine is at 16(%rsp). The code is that of the VM's hook of calls, in the main.
*/
#define STUB(name, index) \
  ".globl " name "\n\t" \
  ".hidden " name "\n" name ":\n\t" \
  "movq 16(%rsp), %rdi\n\t" \
  "movq %rdx, 32(%rdi)\n\t" \
  "leaq -8(%rdx,%rax,8), %rax\n\t" \
  "movq %rax, 40(%rdi)\n\t" \
  "call *lj_vmstub_hook+" index "(%rip)\n\t" \
  "movq 16(%rsp), %rdi\n\t" \
  "movq 32(%rdi), %rdx\n\t" \
  "movq 40(%rdi), %rax\n\t" \
  "subq %rdx, %rax\n\t" \
  "shrl $3, %eax\n\t" \
  "addl $1, %eax\n\t" \
  "movzbl -3(%rbx), %ecx\n\t" \
  "jmp *lj_vmstub_target+" index "(%rip)\n\t"

LJ_STATIC_ASSERT(CFRAME_OFS_L == 16);
LJ_STATIC_ASSERT(offsetof(lua_State, base) == 32 && offsetof(lua_State, top) == 40);

/* The labels must stand in the object once. */
#if defined(__has_attribute) && __has_attribute(noclone)
#define STANDS_ONCE __attribute__((naked, noinline, noclone))
#else
#define STANDS_ONCE __attribute__((naked, noinline))
#endif

USED_BY_ASSEMBLER STANDS_ONCE void lj_vmstub_code(void)
{
  __asm__(STUB("lj_vmstub_yield", "0") STUB("lj_vmstub_resume", "8")
	    STUB("lj_vmstub_wrap", "16") ".globl lj_vmstub_end\n\t"
					 ".hidden lj_vmstub_end\n"
					 "lj_vmstub_end:\n\t"
					 "ud2");
}

extern void lj_vmstub_yield(void);
extern void lj_vmstub_resume(void);
extern void lj_vmstub_wrap(void);

/* -- Dispatch table ---------------------------------------------------------- */

static const ASMFunction stubs[VMSTUB__MAX] = { lj_vmstub_yield, lj_vmstub_resume,
						lj_vmstub_wrap };

/* Replace entries of builtin functions. */
static void exchange(global_State *g, const ASMFunction *from, const ASMFunction *to)
{
  ASMFunction *disp = G2GG(g)->dispatch;
  int i, k;
  for (i = GG_LEN_SDISP; i < GG_LEN_DDISP; i++)
    for (k = 0; k < VMSTUB__MAX; k++)
      if (relaxed_get(&disp[i]) == from[k]) {
	relaxed_set(&disp[i], to[k]);
	break;
      }
}

void lj_vmstub_put(global_State *g)
{
  exchange(g, lj_vmstub_target, stubs);
}

void lj_vmstub_take(global_State *g)
{
  exchange(g, stubs, lj_vmstub_target);
}

void lj_vmstub_call(lua_State *L)
{
  switch (curr_func(L)->c.ffid) {
  case FF_coroutine_yield: lj_vmstub_hook[VMSTUB_YIELD](L); break;
  case FF_coroutine_resume: lj_vmstub_hook[VMSTUB_RESUME](L); break;
  case FF_coroutine_wrap_aux: lj_vmstub_hook[VMSTUB_WRAP](L); break;
  default: break;
  }
}
