/* The module of libunwind computes the rows of this program, which has .eh_frame and .debug_frame
** for the same code. At each byte of that code they equal our own rules. Then the module reads
** damaged copies of the program: no copy makes it crash, loop, or return rows out of order.
** TIMEOUT: 300
*/

__asm__("	.cfi_sections .eh_frame, .debug_frame\n");

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "lj_arch.h"
#include "profile/base/lj_elfnote.h"
#include "profile/base/lj_osloaded.h"
#include "profile/base/lj_osobjects.h"
#include "profile/host/lj_cfi.h"
#include "profile/host/lj_rowmodule.h"
#include "check.h"

/* -- Functions with instructions that compilers seldom write -------------------- */

#define FUNCTION(name, rules) \
  extern const char name[]; \
  __asm__("	.text\n" \
	  "	.globl " #name "\n" \
	  "	.type " #name ", @function\n" #name ":\n" \
	  "	.cfi_startproc\n" \
	  "	nop\n" rules "	nop\n" \
	  "	.fill 70000, 1, 0x90\n" \
	  "	.cfi_endproc\n" \
	  "	.size " #name ", .-" #name "\n")
#define ESCAPE(bytes) "	.cfi_escape " bytes "\n"

/* clang-format off */
FUNCTION(offset_sf, ESCAPE("0x13, 0x7b"));
FUNCTION(cfa_sf, ESCAPE("0x12, 6, 0x7c"));
FUNCTION(extended, ESCAPE("0x05, 12, 3"));
FUNCTION(extended_sf, ESCAPE("0x11, 13, 4"));
FUNCTION(restored, ESCAPE("0x05, 12, 3") "nop\n" ESCAPE("0x06, 12"));
FUNCTION(restored_short, ESCAPE("0x83, 3") "nop\n" ESCAPE("0xc3"));
FUNCTION(same, ESCAPE("0x05, 12, 3") "nop\n" ESCAPE("0x08, 12"));
FUNCTION(remembered, ESCAPE("0x05, 12, 3") ESCAPE("0x0a") "nop\n" ESCAPE("0x05, 12, 5")
	 ESCAPE("0x0e, 64") "nop\n" ESCAPE("0x0b"));
FUNCTION(args_size, ESCAPE("0x2e, 16"));
FUNCTION(far1, ESCAPE("0x02, 0xff") ESCAPE("0x0e, 64"));
FUNCTION(far2, ESCAPE("0x03, 0xff, 0x70") ESCAPE("0x0e, 64"));
FUNCTION(far4, ESCAPE("0x04, 0xff, 0, 1, 0") ESCAPE("0x0e, 64"));
FUNCTION(cfa_r12, ESCAPE("0x0c, 12, 16"));
FUNCTION(cfa_register, ESCAPE("0x0d, 13"));
FUNCTION(root, ESCAPE("0x07, 16"));
/* The module leaves these out. */
FUNCTION(expression, ESCAPE("0x10, 12, 3, 0x08, 40, 0x1c"));
FUNCTION(val_offset, ESCAPE("0x14, 3, 2"));
FUNCTION(cfa_expression, ESCAPE("0x0f, 2, 0x77, 16"));
FUNCTION(other_register, ESCAPE("0x09, 15, 3"));
/* clang-format on */

/* -- This program -------------------------------------------------------------------- */

static uint8_t *file;
static size_t file_len;
static uint8_t id[ELFNOTE_ID_MAX];
static uint32_t idlen;
static uintptr_t bias;

static int find_self(struct dl_phdr_info *info, size_t sz, void *arg)
{
  const uint8_t *at;
  (void)sz;
  (void)arg;
  bias = info->dlpi_addr;
  at = lj_elfnote_segments(NULL, info->dlpi_phdr, info->dlpi_phnum, bias, &idlen);
  REQUIRE(at != NULL);
  memcpy(id, at, idlen);
  return 1;
}

static void read_self(void)
{
  struct stat st;
  int fd = open("/proc/self/exe", O_RDONLY);
  REQUIRE(fd >= 0 && fstat(fd, &st) == 0);
  file_len = (size_t)st.st_size;
  file = (uint8_t *)malloc(file_len);
  REQUIRE(file != NULL && read(fd, file, file_len) == (ssize_t)file_len);
  close(fd);
}

/* The section of the file. */
static Elf64_Shdr *section(const char *name)
{
  const Elf64_Ehdr *eh = (const Elf64_Ehdr *)file;
  Elf64_Shdr *sh = (Elf64_Shdr *)(file + eh->e_shoff);
  int i;
  for (i = 0; i < eh->e_shnum; i++)
    if (strcmp((char *)file + sh[eh->e_shstrndx].sh_offset + sh[i].sh_name, name) == 0)
      return &sh[i];
  return NULL;
}

/* -- Rows and rules ------------------------------------------------------------------ */

static SafeLoad pk;
static EhCopy copy;

static const ModuleRow *row_at(const ModuleRow *row, size_t n, uint64_t pc)
{
  size_t lo = 0, hi = n;
  while (lo < hi) {
    size_t mid = (lo + hi) / 2;
    if (pc < row[mid].begin) hi = mid;
    else lo = mid + 1;
  }
  return lo ? &row[lo - 1] : NULL;
}

static int is_equal(const ModuleRow *row, const CfiRule *rule)
{
  if (rule->is_root) return row->kind == ROWMODULE_ROOT;
  return row->kind == ROWMODULE_STEP && row->cfa_reg == rule->cfa_reg &&
	 row->cfa_ofs == rule->cfa_ofs && memcmp(row->saved, rule->saved, CFI_NSAVED) == 0;
}

static void compare(const ModuleRow *row, size_t n)
{
  const Elf64_Shdr *text = section(".text");
  size_t same = 0, left_out = 0, differ = 0;
  uint64_t pc;
  REQUIRE(text != NULL);
  for (pc = text->sh_addr; pc < text->sh_addr + text->sh_size; pc++) {
    const ModuleRow *r = row_at(row, n, pc);
    CfiRule rule;
    Fde fde;
    if (!r || r->kind == ROWMODULE_NONE) {
      left_out++;
    } else if (lj_cfi_rule(&pk, bias + pc, &copy, &rule, &fde) && is_equal(r, &rule)) {
      same++;
    } else {
      if (!differ++) printf("%#lx differs\n", (unsigned long)pc);
    }
  }
  printf("%zu bytes the same, %zu without a row, %zu differ; %zu rows\n", same, left_out,
	 differ, n);
  CHECK(same >= 15 * 70000);
  CHECK_EQ(differ, 0);
}

static void compare_names(const ModuleRow *row, size_t n)
{
  const struct {
    const char *at;
    int kind;
  } fn[] = { { offset_sf, ROWMODULE_STEP },     { cfa_sf, ROWMODULE_STEP },
	     { extended, ROWMODULE_STEP },      { extended_sf, ROWMODULE_STEP },
	     { restored, ROWMODULE_STEP },      { restored_short, ROWMODULE_STEP },
	     { same, ROWMODULE_STEP },          { remembered, ROWMODULE_STEP },
	     { args_size, ROWMODULE_STEP },     { far1, ROWMODULE_STEP },
	     { far2, ROWMODULE_STEP },          { far4, ROWMODULE_STEP },
	     { cfa_r12, ROWMODULE_STEP },       { cfa_register, ROWMODULE_STEP },
	     { root, ROWMODULE_ROOT },          { expression, ROWMODULE_NONE },
	     { val_offset, ROWMODULE_NONE },    { cfa_expression, ROWMODULE_NONE },
	     { other_register, ROWMODULE_NONE } };
  size_t i;
  for (i = 0; i < sizeof(fn) / sizeof(fn[0]); i++) {
    const ModuleRow *r = row_at(row, n, (uintptr_t)fn[i].at - bias + 69999);
    CHECK_EQ(r ? r->kind : ROWMODULE_NONE, fn[i].kind);
  }
}

/* -- Damaged files ------------------------------------------------------------------- */

static const RowModule *module;
static size_t with_rows;

static void try_file(size_t len)
{
  ModuleRow *row = NULL;
  size_t n, i;
  int fd = open("damaged", O_RDWR | O_CREAT | O_TRUNC, 0600);
  REQUIRE(fd >= 0 && write(fd, file, len) == (ssize_t)len);
  close(fd);
  n = module->rows("damaged", id, idlen, &row);
  for (i = 0; i < n; i++) {
    CHECK(i == 0 || row[i - 1].begin < row[i].begin);
    CHECK(row[i].kind <= ROWMODULE_ROOT && row[i].cfa_reg < 16);
  }
  CHECK((row != NULL) == (n > 0));
  with_rows += (n > 0);
  free(row);
}

static unsigned long seed = 12345;

static unsigned long draw(unsigned long below)
{
  seed = seed * 6364136223846793005ul + 1442695040888963407ul;
  return (seed >> 33) % below;
}

/* Other bytes in the section: the file is as before afterwards. */
static void mutate(const Elf64_Shdr *sh, int changes)
{
  static const uint8_t odd[] = { 0, 0xff, 0x7f, 0x80, 0x0a, 0x0b, 0x0f, 0x10, 0x01, 0x04 };
  uint8_t *p = file + sh->sh_offset, *kept = (uint8_t *)malloc(sh->sh_size);
  REQUIRE(kept != NULL);
  memcpy(kept, p, sh->sh_size);
  while (changes--)
    p[draw(sh->sh_size)] = draw(2) ? odd[draw(sizeof(odd))] : (uint8_t)draw(256);
  try_file(file_len);
  memcpy(p, kept, sh->sh_size);
  free(kept);
}

static void put(Elf64_Xword *field, Elf64_Xword v)
{
  Elf64_Xword kept = *field;
  *field = v;
  try_file(file_len);
  *field = kept;
}

/* The same length at the begin of the section. */
static void put_length(uint8_t *p, uint32_t len)
{
  uint32_t kept;
  memcpy(&kept, p, sizeof(kept));
  memcpy(p, &len, sizeof(len));
  try_file(file_len);
  memcpy(p, &kept, sizeof(kept));
}

static void damage(void)
{
  Elf64_Shdr *sh = section(".debug_frame");
  Elf64_Ehdr *eh = (Elf64_Ehdr *)file;
  size_t i, without;
  REQUIRE(sh != NULL);
  try_file(file_len);
  CHECK_EQ(with_rows, 1);
  for (i = 0; i < 1500; i++) mutate(sh, 1 + (int)draw(12));
  printf("%zu of 1500 damaged sections have rows\n", with_rows - 1);
  CHECK(with_rows > 100);
  for (i = 0; i < 64; i++) put(&sh->sh_size, i);
  put(&sh->sh_size, ~(Elf64_Xword)0);
  put(&sh->sh_size, sh->sh_size + 1000000);
  put(&sh->sh_offset, ~(Elf64_Xword)0 - 7);
  put(&sh->sh_offset, file_len - 3);
  put(&sh->sh_flags, SHF_COMPRESSED);
  put(&eh->e_shoff, ~(Elf64_Xword)0 - 63);
  put(&eh->e_shoff, file_len - 1);
  put(&eh->e_phoff, ~(Elf64_Xword)0);
  put_length(file + sh->sh_offset, 0);
  put_length(file + sh->sh_offset, 0xffffffffu);
  put_length(file + sh->sh_offset, 0xfffffff0u);
  put_length(file + sh->sh_offset, 0x7fffffffu);
  without = with_rows;
  id[0] ^= 1; /* Another file is in its place. */
  try_file(file_len);
  id[0] ^= 1;
  CHECK_EQ(with_rows, without);
  for (i = 0; i < 300; i++) try_file(draw(file_len)); /* Truncated. */
  for (i = 0; i < 200; i++) try_file(i);
}

int main(void)
{
  char path[4096];
  ModuleRow *row = NULL;
  void *handle;
  size_t n;
  snprintf(path, sizeof(path), "%s/lib/libluajit-sysprof-libunwind.so",
	   getenv("SYSPROF_BUILD"));
  if (access(path, F_OK) != 0) {
    puts("skipped: no libunwind, so no module; install the Debian package 'libunwind-dev'");
    return 77;
  }
  handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) puts(dlerror());
  REQUIRE(handle != NULL);
  module = (const RowModule *)dlsym(handle, ROWMODULE_SYMBOL);
  REQUIRE(module != NULL && module->version == ROWMODULE_VERSION);
  lj_safeload_warmup();
  lj_osobjects_warmup();
  lj_osloaded_renew();
  lj_safeload_reset(&pk);
  dl_iterate_phdr(find_self, NULL);
  read_self();
  n = module->rows("/proc/self/exe", id, idlen, &row);
  CHECK(n > 0);
  compare(row, n);
  compare_names(row, n);
  free(row);
  damage();
  return check_status();
}
