/* A return address at the start of a function comes from makecontext(3) and ends the
** stack, unless the instruction before it is a call that does not return.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For struct dl_find_object. */
#endif
#include <string.h>

#include "lj_arch.h"
#include "profile/base/lj_osloaded.h"
#include "profile/base/lj_osobjects.h"
#include "profile/host/lj_cfi.h"
#include "profile/host/lj_ehframe.h"
#include "check.h"

/* A function of two times 16 bytes, behind bytes that end at a multiple of 16 plus off. */
#define FUNCTION(name, off, n, before) \
  extern const char name[]; \
  __asm__("	.text\n" \
	  "	.p2align 4\n" \
	  "	.fill 32 + " #off " - " #n ", 1, 0x90\n" \
	  "	.byte " before "\n" \
	  "	.type " #name ", @function\n" #name ":\n" \
	  "	.cfi_startproc\n" \
	  "	.fill 32, 1, 0x90\n" \
	  "	.cfi_endproc\n" \
	  "	.size " #name ", .-" #name "\n")

/* clang-format off */
FUNCTION(after_nop, 0, 1, "0x90");
FUNCTION(after_ret, 0, 1, "0xc3");
FUNCTION(after_jump, 0, 2, "0xff, 0xe0");                           /* jmp *%rax */
FUNCTION(after_push, 0, 3, "0xff, 0x70, 8");                        /* push 8(%rax) */
FUNCTION(after_jump_of_5, 0, 5, "0xe9, 0, 0, 0, 0");
FUNCTION(after_long_ago, 0, 8, "0xff, 0x10, 1, 2, 3, 4, 5, 6");     /* ends 6 bytes ago */
FUNCTION(after_call, 0, 5, "0xe8, 1, 2, 3, 4");
FUNCTION(after_call_register, 0, 2, "0xff, 0xd0");                  /* call *%rax */
FUNCTION(after_call_memory, 0, 2, "0xff, 0x10");                    /* call *(%rax) */
FUNCTION(after_call_slot, 0, 3, "0xff, 0x50, 8");                   /* call *8(%rax) */
FUNCTION(after_call_indexed, 0, 4, "0xff, 0x54, 0xc8, 8");          /* 8(%rax,%rcx,8) */
FUNCTION(after_call_global, 0, 6, "0xff, 0x15, 1, 2, 3, 4");        /* call *f(%rip) */
FUNCTION(after_call_far_slot, 0, 7, "0xff, 0x94, 0x24, 1, 2, 3, 4"); /* of (%rsp) */
FUNCTION(not_aligned, 8, 1, "0x90");
/* clang-format on */

static SafeLoad pk;
static EhCopy copy;

static int is_start(uintptr_t pc, int is_return)
{
  WalkRegs regs;
  memset(&regs, 0, sizeof(regs));
  regs.r[WALKREG_PC] = pc;
  regs.is_return = is_return;
  regs.valid = (1u << WALKREG__MAX) - 1;
  lj_safeload_reset(&pk);
  return lj_cfi_isstart(&pk, &copy, &regs);
}

int main(void)
{
  static const char *const start[] = { after_nop,  after_ret,       after_jump,
				       after_push, after_jump_of_5, after_long_ago };
  static const char *const called[] = { after_call,         after_call_register,
					after_call_memory,  after_call_slot,
					after_call_indexed, after_call_global,
					after_call_far_slot };
  size_t i;
  lj_safeload_warmup();
  lj_osobjects_warmup();
  lj_osloaded_renew();
  for (i = 0; i < sizeof(start) / sizeof(start[0]); i++) {
    CHECK(is_start((uintptr_t)start[i], 1));
    CHECK(!is_start((uintptr_t)start[i], 0));
    CHECK(!is_start((uintptr_t)start[i] + 1, 1));
    CHECK(!is_start((uintptr_t)start[i] + 16, 1));
  }
  for (i = 0; i < sizeof(called) / sizeof(called[0]); i++)
    CHECK(!is_start((uintptr_t)called[i], 1));
  CHECK(!is_start((uintptr_t)not_aligned, 1));
  CHECK(!is_start(0, 1));
  return check_status();
}
