/* Each call frame instruction that compilers here write seldom or never, in assembled
** functions with .cfi_escape. The unwinder, its cache and libunwind step from these
** functions to a caller with known registers.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <string.h>
#include <ucontext.h>

#include "lj_arch.h"
#include "profile/base/lj_osloaded.h"
#include "profile/base/lj_osobjects.h"
#include "profile/host/lj_cfi.h"
#include "profile/host/lj_cficache.h"
#include "check.h"

/* A function with rules from its second instruction on. The data alignment is -8. */
#define FUNCTION(name, rules) \
  extern const char name[]; \
  __asm__("	.text\n" \
	  "	.type " #name ", @function\n" #name ":\n" \
	  "	.cfi_startproc\n" \
	  "	nop\n" rules "	nop\n" \
	  "	.cfi_endproc\n" \
	  "	.size " #name ", .-" #name "\n")
#define ESCAPE(bytes) "	.cfi_escape " bytes "\n"

/* clang-format off */
FUNCTION(plain, "");
FUNCTION(offset_sf, ESCAPE("0x13, 0x7b"));                        /* def_cfa_offset_sf */
FUNCTION(cfa_sf, ESCAPE("0x12, 6, 0x7c"));                        /* def_cfa_sf: RBP */
FUNCTION(extended, ESCAPE("0x05, 12, 3"));                        /* offset_extended */
FUNCTION(extended_sf, ESCAPE("0x11, 13, 4"));                     /* ..._sf */
FUNCTION(above, ESCAPE("0x11, 13, 0x7d"));                        /* above the CFA */
FUNCTION(val, ESCAPE("0x14, 3, 2"));                              /* val_offset */
FUNCTION(val_sf, ESCAPE("0x15, 14, 0x7d"));                       /* val_offset_sf */
FUNCTION(restored, ESCAPE("0x05, 12, 3") ESCAPE("0x06, 12"));     /* restore_extended */
FUNCTION(restored_short, ESCAPE("0x83, 3") ESCAPE("0xc3"));       /* offset, restore */
FUNCTION(other_register, ESCAPE("0x09, 15, 3"));                  /* register */
FUNCTION(same, ESCAPE("0x05, 12, 3") ESCAPE("0x08, 12"));         /* same_value */
FUNCTION(undefined, ESCAPE("0x07, 12"));
FUNCTION(remembered, ESCAPE("0x05, 12, 3") ESCAPE("0x0a") ESCAPE("0x05, 12, 5")
	 ESCAPE("0x0e, 64") ESCAPE("0x0b"));                      /* restore_state */
FUNCTION(expression, ESCAPE("0x10, 12, 3, 0x08, 40, 0x1c"));      /* at CFA - 40 */
FUNCTION(val_expression, ESCAPE("0x16, 12, 3, 0x08, 40, 0x1c"));  /* CFA - 40 */
FUNCTION(cfa_expression, ESCAPE("0x0f, 2, 0x77, 16"));            /* RSP + 16 */
FUNCTION(args_size, ESCAPE("0x2e, 16"));
FUNCTION(far1, ESCAPE("0x02, 0xff") ESCAPE("0x0e, 64"));          /* advance_loc1 */
FUNCTION(far2, ESCAPE("0x03, 0xff, 0") ESCAPE("0x0e, 64"));
FUNCTION(far4, ESCAPE("0x04, 0xff, 0, 0, 0") ESCAPE("0x0e, 64"));
FUNCTION(near1, ESCAPE("0x02, 0") ESCAPE("0x0e, 64"));
FUNCTION(cfa_r12, ESCAPE("0x0c, 12, 16"));                        /* def_cfa */
FUNCTION(cfa_register, ESCAPE("0x0d, 13"));                       /* def_cfa_register */
/* clang-format on */

#define WORDS 64
#define SP    16 /* Word that the stack pointer points to. */
#define BP    24
#define R12   20
#define R13   22

static uintptr_t stack[WORDS];
static SafeLoad pk;
static EhCopy copy;
static CfiCache cache;

/* What the caller's registers are: a number as it is, or a word of the stack. */
#define ADDR(i) ((uintptr_t)&stack[i])
#define WORD(i) (0x1000 + (uintptr_t)(i))
#define BX0     0xb0b0
#define R14_0   0xe0e0
#define R15_0   0xf0f0
#define LOST    (~(uintptr_t)0) /* Not known. */

typedef struct Case {
  const char *name, *function;
  int cfa; /* Word that the CFA points to. */
  uintptr_t bx, r12, r13, r14, r15;
} Case;

#define CASE(f, cfa, bx, r12, r13, r14, r15) \
  { \
#f, f, cfa, bx, r12, r13, r14, r15 \
  }
#define SAME(f, cfa) CASE(f, cfa, BX0, ADDR(R12), ADDR(R13), R14_0, R15_0)

static const uint8_t regno[5] = { WALKREG_BX, WALKREG_R12, WALKREG_R13, WALKREG_R14,
				  WALKREG_R15 };

static void fill(WalkRegs *regs, uintptr_t pc)
{
  memset(regs, 0, sizeof(*regs));
  regs->r[WALKREG_BX] = BX0;
  regs->r[WALKREG_BP] = ADDR(BP);
  regs->r[WALKREG_SP] = ADDR(SP);
  regs->r[WALKREG_R12] = ADDR(R12);
  regs->r[WALKREG_R13] = ADDR(R13);
  regs->r[WALKREG_R14] = R14_0;
  regs->r[WALKREG_R15] = R15_0;
  regs->r[WALKREG_PC] = pc;
  regs->valid = (1u << WALKREG__MAX) - 1;
}

static void judge(const Case *c, const char *by, const WalkRegs *regs)
{
  const uintptr_t expected[5] = { c->bx, c->r12, c->r13, c->r14, c->r15 };
  int i, bad = regs->r[WALKREG_SP] != ADDR(c->cfa) ||
	       regs->r[WALKREG_PC] != WORD(c->cfa - 1) || !regs->is_return ||
	       regs->r[WALKREG_BP] != ADDR(BP);
  for (i = 0; i < 5; i++) {
    int known = (regs->valid >> regno[i]) & 1;
    bad |= expected[i] == LOST ? known : !known || regs->r[regno[i]] != expected[i];
  }
  if (bad) printf("%s: wrong by %s\n", c->name, by);
  CHECK(!bad);
}

/* The same by libunwind, if it knows the instruction. */
static int judge_libunwind(const Case *c)
{
  static const int unw[5] = { UNW_X86_64_RBX, UNW_X86_64_R12, UNW_X86_64_R13,
			      UNW_X86_64_R14, UNW_X86_64_R15 };
  const uintptr_t expected[5] = { c->bx, c->r12, c->r13, c->r14, c->r15 };
  unw_cursor_t cursor;
  unw_word_t w;
  ucontext_t uc;
  int i;
  getcontext(&uc);
  uc.uc_mcontext.gregs[REG_RBX] = BX0;
  uc.uc_mcontext.gregs[REG_RBP] = (greg_t)ADDR(BP);
  uc.uc_mcontext.gregs[REG_RSP] = (greg_t)ADDR(SP);
  uc.uc_mcontext.gregs[REG_R12] = (greg_t)ADDR(R12);
  uc.uc_mcontext.gregs[REG_R13] = (greg_t)ADDR(R13);
  uc.uc_mcontext.gregs[REG_R14] = R14_0;
  uc.uc_mcontext.gregs[REG_R15] = R15_0;
  uc.uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)c->function + 1;
  if (unw_init_local2(&cursor, &uc, UNW_INIT_SIGNAL_FRAME) != 0 || unw_step(&cursor) <= 0)
    return 0;
  if (unw_get_reg(&cursor, UNW_REG_SP, &w) != 0 || w != ADDR(c->cfa)) return 0;
  for (i = 0; i < 5; i++)
    if (expected[i] != LOST && (unw_get_reg(&cursor, unw[i], &w) != 0 || w != expected[i]))
      return 0;
  return 1;
}

int main(void)
{
  const Case cases[] = {
    SAME(plain, SP + 1),
    SAME(offset_sf, SP + 5),
    SAME(cfa_sf, BP + 4),
    CASE(extended, SP + 1, BX0, WORD(SP - 2), ADDR(R13), R14_0, R15_0),
    CASE(extended_sf, SP + 1, BX0, ADDR(R12), WORD(SP - 3), R14_0, R15_0),
    CASE(above, SP + 1, BX0, ADDR(R12), WORD(SP + 4), R14_0, R15_0),
    CASE(val, SP + 1, ADDR(SP - 1), ADDR(R12), ADDR(R13), R14_0, R15_0),
    CASE(val_sf, SP + 1, BX0, ADDR(R12), ADDR(R13), ADDR(SP + 4), R15_0),
    SAME(restored, SP + 1),
    SAME(restored_short, SP + 1),
    CASE(other_register, SP + 1, BX0, ADDR(R12), ADDR(R13), R14_0, BX0),
    SAME(same, SP + 1),
    CASE(undefined, SP + 1, BX0, LOST, ADDR(R13), R14_0, R15_0),
    CASE(remembered, SP + 1, BX0, WORD(SP - 2), ADDR(R13), R14_0, R15_0),
    CASE(expression, SP + 1, BX0, WORD(SP - 4), ADDR(R13), R14_0, R15_0),
    CASE(val_expression, SP + 1, BX0, ADDR(SP - 4), ADDR(R13), R14_0, R15_0),
    SAME(cfa_expression, SP + 2),
    SAME(args_size, SP + 1),
    SAME(far1, SP + 1),
    SAME(far2, SP + 1),
    SAME(far4, SP + 1),
    SAME(near1, SP + 8),
    SAME(cfa_r12, R12 + 2),
    SAME(cfa_register, R13 + 1),
  };
  const size_t n = sizeof(cases) / sizeof(cases[0]);
  size_t i, cached = 0, theirs = 0;
  lj_safeload_warmup();
  lj_osobjects_warmup();
  lj_osloaded_renew();
  for (i = 0; i < WORDS; i++) stack[i] = WORD(i);
  for (i = 0; i < n; i++) {
    const Case *c = &cases[i];
    uintptr_t pc = (uintptr_t)c->function + 1;
    const CfiRule *rule;
    WalkRegs regs;
    lj_safeload_reset(&pk);
    fill(&regs, pc);
    CHECK_EQ(lj_cfi_step(&pk, &copy, &regs), CFI_STEP);
    judge(c, "the unwinder", &regs);
    rule = lj_cficache_find(&cache, &pk, pc);
    if (rule) {
      fill(&regs, pc);
      CHECK_EQ(lj_cficache_step(rule, &pk, &regs), CFI_STEP);
      judge(c, "its cache", &regs);
      cached++;
    }
    if (judge_libunwind(c)) theirs++;
    else printf("%s: libunwind differs\n", c->name);
  }
  printf("%d functions, %d steps that are cached, %d as libunwind's\n", (int)n, (int)cached,
	 (int)theirs);
  CHECK(cached >= n / 2);
  CHECK(theirs >= n / 2);
  return check_status();
}
