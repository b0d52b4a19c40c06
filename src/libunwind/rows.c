/*
** Rows of unwind tables by libunwind, for LuaJIT's profiler: a shared library of its own.
** Context: under the profiler's lock, on any thread, outside of the handler.
**
** libunwind's steps take locks and get memory from pools, so no signal handler may call them.
** Here libunwind steps at load time: once from each place where a function's row changes. Its
** remote interface reads registers and memory through the functions below. Each register
** has a value of its own. So the caller's registers show the row: where the CFA is, and
** where registers are saved.
**
** libunwind knows .eh_frame, but Debian's does not know .debug_frame. Each step gets its
** function's entry in the form of .eh_frame, at an address of its own.
*/

#define UNW_REMOTE_ONLY 1
#include <libunwind.h>
#include <stdlib.h>
#include <string.h>

#include "libunwind/debug_frame.h"
#include "profile/host/lj_rowmodule.h"

/* Exported by libunwind, for unwinders outside of it: its headers do not declare it. */
extern int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t, unw_word_t,
					      unw_dyn_info_t *, unw_proc_info_t *, int,
					      void *);

#define ROWS_FIRST 1024 /* Room for rows at first. */
/* Limit of rows of an object: (not read) */
#define ROWS_MAX (1u << 20)

/* -- A frame to step from --------------------------------------------------------- */

#define REGS      17           /* Registers with DWARF numbers, up to the PC. */
#define CODE_AT   0x10000000u  /* Where the function seems to be, */
#define ENTRY_AT  0x20000000u  /* and its entry. */
#define CODE_MAX  0x8000000u   /* Largest function. */
#define APART     (1ull << 40) /* Distance between the values of registers. */
#define REACH     (1ll << 31)  /* Offsets are smaller. */
#define RETURN_TO 0x5555000011ull

#define ENTRY_MAX 9216 /* Bytes of an entry with its common one. */

typedef struct Frame {
  uint8_t entry[ENTRY_MAX];
  size_t len;
  uint32_t fde; /* Offset of the function's entry. */
  uint64_t size;
  uint64_t pc;
  uint64_t loaded; /* Last address of the stack that libunwind has read. */
  int nloaded;
  int found; /* libunwind has read the entry. */
} Frame;

static uint64_t reg_value(int reg)
{
  return (uint64_t)(reg + 1) * APART;
}

static void put(Frame *f, const void *p, size_t len)
{
  memcpy(f->entry + f->len, p, len);
  f->len += len;
}

static void put_leb(Frame *f, int64_t v)
{
  uint8_t c;
  int more;
  do {
    c = (uint8_t)(v & 0x7f);
    v >>= 7;
    more = !((v == 0 && !(c & 0x40)) || (v == -1 && (c & 0x40)));
    c = (uint8_t)(c | (more ? 0x80 : 0));
    put(f, &c, 1);
  } while (more);
}

static void put_code(Frame *f, uint32_t at, const FrameCode *code)
{
  static const uint8_t nops[8];
  uint32_t len;
  put(f, code->p, code->len);
  put(f, nops, -(size_t)f->len & 7);
  len = (uint32_t)f->len - at - 4;
  memcpy(f->entry + at, &len, sizeof(len));
}

/* Write a table of one function, its common entry, and its entry. */
static void frame_write(Frame *f, const FrameEntry *e)
{
  static const uint8_t version_and_no_augmentation[] = { 1, 0 };
  static const uint8_t return_address = 16;
  int32_t table[2] = { 0, 0 };
  uint32_t zero = 0, back;
  uint64_t begin = CODE_AT, size = e->size;
  f->len = 0;
  put(f, table, sizeof(table));
  put(f, &zero, sizeof(zero)); /* The length. */
  put(f, &zero, sizeof(zero));
  put(f, version_and_no_augmentation, sizeof(version_and_no_augmentation));
  put_leb(f, (int64_t)e->code_align); /* At most 16: one byte in both forms. */
  put_leb(f, e->data_align);
  put(f, &return_address, 1);
  put_code(f, sizeof(table), &e->cie);
  f->fde = (uint32_t)f->len;
  back = f->fde + 4 - (uint32_t)sizeof(table);
  put(f, &zero, sizeof(zero));
  put(f, &back, sizeof(back));
  put(f, &begin, sizeof(begin));
  put(f, &size, sizeof(size));
  put_code(f, f->fde, &e->fde);
  table[1] = (int32_t)(ENTRY_AT + f->fde - CODE_AT);
  memcpy(f->entry, table, sizeof(table));
  f->size = e->size;
}

/* -- What libunwind asks for -------------------------------------------------------- */

/* An old libunwind, such as 1.3, has no load_offset, and the next members in its place. */
static int is_old;

static int find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *pi, int need,
			  void *arg)
{
  Frame *f = (Frame *)arg;
  unw_dyn_info_t di;
  int err;
  memset(&di, 0, sizeof(di));
  di.format = UNW_INFO_FORMAT_REMOTE_TABLE;
  di.start_ip = CODE_AT;
  di.end_ip = CODE_AT + f->size;
  di.u.rti.segbase = CODE_AT;
  di.u.rti.table_data = ENTRY_AT;
  di.u.rti.table_len = 1;
  if (is_old) memmove(&di.load_offset, &di.u.rti, sizeof(di.u.rti));
  err = UNW_OBJ(dwarf_search_unwind_table)(as, ip, &di, pi, need, arg);
  f->found = (err == 0);
  return err;
}

static void put_unwind_info(unw_addr_space_t as, unw_proc_info_t *pi, void *arg)
{
  (void)as;
  (void)pi;
  (void)arg;
}

static int get_dyn_info_list(unw_addr_space_t as, unw_word_t *list, void *arg)
{
  (void)as;
  (void)list;
  (void)arg;
  return -UNW_ENOINFO;
}

/* Entries are in memory, and the rest is the stack. */
static int access_mem(unw_addr_space_t as, unw_word_t addr, unw_word_t *val, int write,
		      void *arg)
{
  Frame *f = (Frame *)arg;
  (void)as;
  if (write) return -UNW_EINVAL;
  if (addr - ENTRY_AT < ENTRY_MAX) {
    if (addr - ENTRY_AT > ENTRY_MAX - sizeof(*val)) return -UNW_EINVAL;
    memcpy(val, f->entry + (addr - ENTRY_AT), sizeof(*val));
    return 0;
  }
  f->loaded = addr;
  f->nloaded++;
  *val = RETURN_TO;
  return 0;
}

static int access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *val, int write,
		      void *arg)
{
  const Frame *f = (const Frame *)arg;
  (void)as;
  if (write || reg < 0 || reg >= REGS) return -UNW_EBADREG;
  *val = reg == UNW_X86_64_RIP ? f->pc : reg_value(reg);
  return 0;
}

static int access_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *val, int write,
			void *arg)
{
  (void)as;
  (void)reg;
  (void)val;
  (void)write;
  (void)arg;
  return -UNW_EBADREG;
}

static int resume(unw_addr_space_t as, unw_cursor_t *cursor, void *arg)
{
  (void)as;
  (void)cursor;
  (void)arg;
  return -UNW_EINVAL;
}

static int get_proc_name(unw_addr_space_t as, unw_word_t ip, char *to, size_t len,
			 unw_word_t *ofs, void *arg)
{
  (void)as;
  (void)ip;
  (void)to;
  (void)len;
  (void)ofs;
  (void)arg;
  return -UNW_ENOINFO;
}

static unw_addr_space_t space_new(void)
{
  static unw_accessors_t acc = { .find_proc_info = find_proc_info,
				 .put_unwind_info = put_unwind_info,
				 .get_dyn_info_list_addr = get_dyn_info_list,
				 .access_mem = access_mem,
				 .access_reg = access_reg,
				 .access_fpreg = access_fpreg,
				 .resume = resume,
				 .get_proc_name = get_proc_name };
  unw_addr_space_t as = unw_create_addr_space(&acc, 0);
  if (as) unw_set_caching_policy(as, UNW_CACHE_NONE);
  return as;
}

/* -- Rows ------------------------------------------------------------------------------ */

/* Where is a register of the caller? Returns the words below the CFA, 0 if it is unchanged, -1
** if neither.
*/
static int saved_words(unw_cursor_t *c, int reg, uint64_t cfa)
{
  unw_save_loc_t loc;
  uint64_t below;
  if (unw_get_save_loc(c, reg, &loc) != 0) return -1;
  if (loc.type == UNW_SLT_REG) return loc.u.regnum == reg ? 0 : -1;
  if (loc.type != UNW_SLT_MEMORY) return -1;
  below = cfa - loc.u.addr;
  return (below & 7) == 0 && below >= 8 && below <= 8 * UINT8_MAX ? (int)(below / 8) : -1;
}

static int row_registers(unw_cursor_t *c, ModuleRow *row)
{
  static const uint8_t regs[ROWMODULE_SAVED] = { UNW_X86_64_RBX, UNW_X86_64_RBP,
						 UNW_X86_64_R12, UNW_X86_64_R13,
						 UNW_X86_64_R14, UNW_X86_64_R15 };
  unw_word_t cfa;
  int64_t ofs;
  int i, reg;
  if (unw_get_reg(c, UNW_X86_64_RSP, &cfa) != 0) return 0;
  reg = (int)((cfa + APART / 2) / APART) - 1;
  if (reg < 0 || reg >= REGS - 1) return 0;
  ofs = (int64_t)(cfa - reg_value(reg));
  if (ofs >= REACH || ofs < -REACH) return 0;
  row->cfa_reg = (uint8_t)reg;
  row->cfa_ofs = (int32_t)ofs;
  for (i = 0; i < ROWMODULE_SAVED; i++) {
    int words = saved_words(c, regs[i], cfa);
    if (words < 0) return 0;
    row->saved[i] = (uint8_t)words;
  }
  return 1;
}

/* Step from a place of the function. */
static void row_find(unw_addr_space_t as, Frame *f, uint64_t place, ModuleRow *row)
{
  unw_cursor_t c;
  unw_word_t pc = 0, cfa = 0;
  int ret;
  row->kind = ROWMODULE_NONE;
  f->pc = CODE_AT + place;
  f->nloaded = f->found = 0;
  if (unw_init_remote(&c, as, f) != 0) return;
  ret = unw_step(&c);
  if (ret < 0 || !f->found || !row_registers(&c, row)) return;
  if (ret == 0) {
    if (f->nloaded == 0) row->kind = ROWMODULE_ROOT;
  } else if (f->nloaded == 1 && unw_get_reg(&c, UNW_X86_64_RIP, &pc) == 0 &&
	     unw_get_reg(&c, UNW_X86_64_RSP, &cfa) == 0 && pc == RETURN_TO &&
	     f->loaded == cfa - 8) {
    row->kind = ROWMODULE_STEP;
  }
}

/* The rows of an object. */
typedef struct Rows {
  unw_addr_space_t as;
  Frame *frame;
  const FrameEntry *entry;
  ModuleRow *row; /* NULL without memory, or if there are too many. */
  size_t n, max;
} Rows;

static void rows_drop(Rows *rows)
{
  free(rows->row);
  rows->row = NULL;
  rows->n = rows->max = 0;
}

/* Make room for one more row. */
static void rows_grow(Rows *rows)
{
  size_t max = rows->max ? rows->max * 2 : ROWS_FIRST;
  ModuleRow *row = max <= ROWS_MAX ? (ModuleRow *)realloc(rows->row, max * sizeof(*row))
				   : NULL;
  if (!row) {
    rows_drop(rows);
    return;
  }
  rows->row = row;
  rows->max = max;
}

/* Append a row, in place of the last one if that has the same begin. */
static ModuleRow *rows_add(Rows *rows, uint64_t begin)
{
  ModuleRow *row;
  if (rows->n && rows->row[rows->n - 1].begin == begin) rows->n--;
  if (rows->n == rows->max) rows_grow(rows);
  if (!rows->row) return NULL;
  row = &rows->row[rows->n++];
  memset(row, 0, sizeof(*row));
  row->begin = begin;
  return row;
}

static void add_place(void *arg, uint64_t place)
{
  Rows *rows = (Rows *)arg;
  ModuleRow *row = rows->row ? rows_add(rows, rows->entry->begin + place) : NULL;
  if (row) row_find(rows->as, rows->frame, place, row);
}

static void rows_of(Rows *rows, const DebugFrame *df)
{
  size_t i;
  for (i = 0; i < df->n && rows->row; i++) {
    const FrameEntry *e = rows->entry = &df->entry[i];
    if (e->size > CODE_MAX) continue;
    frame_write(rows->frame, e);
    debug_frame_places(e, add_place, rows);
    if (rows->row) rows_add(rows, e->begin + e->size); /* Behind it: none. */
  }
}

static size_t module_rows(const char *path, const uint8_t *id, size_t idlen,
			  ModuleRow **row)
{
  DebugFrame df;
  Rows rows;
  memset(&rows, 0, sizeof(rows));
  *row = NULL;
  if (!debug_frame_read(&df, path, id, idlen)) return 0;
  rows.as = space_new();
  rows.frame = (Frame *)calloc(1, sizeof(*rows.frame));
  if (rows.as && rows.frame) rows_grow(&rows);
  rows_of(&rows, &df);
  if (rows.as) unw_destroy_addr_space(rows.as);
  free(rows.frame);
  debug_frame_free(&df);
  *row = rows.row;
  return rows.n;
}

extern RowModule luajit_sysprof_rows;
__attribute__((visibility("default")))
RowModule luajit_sysprof_rows = { ROWMODULE_VERSION, module_rows };

/* -- The libunwind that is loaded ------------------------------------------------------- */

/* Does a step lead from a function without instructions of its own to its caller? */
static int steps(void)
{
  static const uint8_t cie[] = { 0x0c, 7, 8, 0x90, 1 }; /* CFA: rsp + 8; rip: at CFA - 8. */
  static const FrameEntry entry = { 0, 1, 1, -8, { cie, sizeof(cie) }, { cie, 0 } };
  static Frame frame;
  unw_addr_space_t as = space_new();
  ModuleRow row;
  if (!as) return 0;
  frame_write(&frame, &entry);
  row_find(as, &frame, 0, &row);
  unw_destroy_addr_space(as);
  return row.kind == ROWMODULE_STEP && row.cfa_reg == UNW_X86_64_RSP && row.cfa_ofs == 8;
}

/* Its file name tells no version, so try it. Refuse one that takes neither form. */
__attribute__((constructor)) static void try_libunwind(void)
{
  for (is_old = 0; is_old < 2; is_old++)
    if (steps()) return;
  luajit_sysprof_rows.version = 0;
}
