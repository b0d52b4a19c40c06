/*
** Name records: builtin functions, Lua functions, C code.
** Context: VM thread, while it stops or dumps a profile.
*/

#define lj_symrecords_c
#define LUA_CORE

#include <stdio.h>
#include <string.h>

#include "lj_obj.h"
#include "profile/symbols/lj_symrecords.h"

/* -- Names of builtin functions ---------------------------------------------- */

/* clang-format off */
static const char *const ffnames[] = {
  "Lua", "C",
#define FFDEF(name)	#name,
#include "lj_ffdef.h"
#undef FFDEF
};

/* How the internal names begin, and how users write that; the longer ones
** first.
*/
static const char *const libprefixes[][2] = {
  { "ffi_callback_", "callback:" }, { "ffi_meta_", "cdata." },
  { "ffi_clib_", "ffi.C." }, { "ffi_", "ffi." },
  { "io_method_", "file:" }, { "io_", "io." },
  { "jit_opt_", "jit.opt." }, { "jit_util_", "jit.util." },
  { "jit_profile_", "jit.profile." }, { "jit_", "jit." },
  { "buffer_method_", "buffer:" }, { "buffer_", "buffer." },
  { "math_", "math." }, { "bit_", "bit." }, { "string_", "string." },
  { "table_", "table." }, { "os_", "os." }, { "debug_", "debug." },
  { "coroutine_", "coroutine." }, { "package_", "package." },
  { "thread_", "thread." }
};
/* clang-format on */

#define NLIBPREFIXES (sizeof(libprefixes) / sizeof(libprefixes[0]))

/* Functions that a library function returns end in this. */
#define ITERATOR_SUFFIX "_aux"

size_t lj_symrecords_builtin(uint32_t ffid, char *buf, size_t sz)
{
  const char *name = ffnames[ffid];
  size_t i, len = strlen(name), suffix = strlen(ITERATOR_SUFFIX);
  const char *pre = "";
  int iterator = len > suffix && strcmp(name + len - suffix, ITERATOR_SUFFIX) == 0;
  if (iterator) len -= suffix;
  for (i = 0; i < NLIBPREFIXES; i++) {
    size_t n = strlen(libprefixes[i][0]);
    if (strncmp(name, libprefixes[i][0], n) == 0) {
      pre = libprefixes[i][1];
      name += n;
      len -= n;
      break;
    }
  }
  return (size_t)snprintf(buf, sz, "%s%.*s%s", pre, (int)len, name,
			  iterator ? ".iterator" : "");
}

/* Append the payload of a builtin function's definition, by its id. */
static void ffunc_put(WBuf *wb, const void *ffid)
{
  char name[80];
  size_t len = lj_symrecords_builtin(*(const unsigned *)ffid, name, sizeof(name));
  lj_wbuf_uleb(wb, *(const unsigned *)ffid);
  lj_wbuf_str(wb, name, len);
}

/* -- Names of Lua functions ------------------------------------------------- */

#define EPOCH_STOP (~(uint32_t)0) /* Of definitions that no stack refers to. */

/* Define the functions again whose name is better than in their last definition. */
static void lfuncs_put(Symtab *st, const DefSink *to)
{
  FuncTab *ft = st->named;
  NamedFunc named = { ft, NULL };
  uint32_t i;
  if (!ft || !st->has_funcs) return;
  for (i = 0; i < FUNCTAB_FUNCS; i++) {
    FuncEntry *fe = &ft->func[i];
    FuncDef *d = symtab_def(st, fe->fid);
    if (fe->rank == NAME_NONE || !fe->pt || (d->fid == fe->fid && d->rank >= fe->rank))
      continue;
    named.fe = fe;
    lj_wbuf_define(to, SPF_LFUNC, lj_symtab_putfunc, &named);
    if (d->fid != fe->fid) d->body = 0;
    d->fid = fe->fid;
    d->rank = fe->rank;
    d->epoch = EPOCH_STOP;
    d->batch = 0;
  }
}

/* -- Bodies of Lua functions ------------------------------------------------- */

#define BODIES 64 /* In a record. */

typedef struct Bodies {
  uint32_t n;
  const FuncEntry *entry[BODIES];
} Bodies;

static void bodies_put(WBuf *wb, const void *def)
{
  const Bodies *all = (const Bodies *)def;
  uint32_t i;
  for (i = 0; i < all->n; i++) {
    lj_wbuf_uleb(wb, all->entry[i]->fid);
    lj_wbuf_bytes(wb, (const uint8_t *)&all->entry[i]->body, sizeof(uint64_t));
  }
}

/* Tell the bodies of functions that the stream has defined. */
static void lbodies_put(Symtab *st, const DefSink *to)
{
  FuncTab *ft = st->named;
  Bodies all = { 0, { NULL } };
  uint32_t i;
  if (!ft || !st->has_funcs) return;
  for (i = 0; i < FUNCTAB_FUNCS; i++) {
    const FuncEntry *fe = &ft->func[i];
    FuncDef *d = symtab_def(st, fe->fid);
    if (!fe->pt || !fe->body || d->fid != fe->fid || d->body) continue;
    d->body = 1;
    all.entry[all.n++] = fe;
    if (all.n < BODIES) continue;
    lj_wbuf_define(to, SPF_BODY, bodies_put, &all);
    all.n = 0;
  }
  if (all.n) lj_wbuf_define(to, SPF_BODY, bodies_put, &all);
}

/* -- Lua's names of C functions ----------------------------------------------- */

typedef struct CFuncDef {
  const CFuncEntry *entry;
  const char *name;
  uint32_t len;
} CFuncDef;

static void cfunc_put(WBuf *wb, const void *def)
{
  const CFuncDef *d = (const CFuncDef *)def;
  lj_wbuf_uleb(wb, d->entry->f);
  lj_wbuf_uleb(wb, cfunctab_number(d->entry));
  lj_wbuf_str(wb, d->name, d->len);
}

static void cfuncs_put(const Symtab *st, const DefSink *to)
{
  CFuncTab *ct = &st->named->cfuncs;
  uint32_t i;
  for (i = 0; i < CFUNCTAB_FUNCS; i++) {
    const CFuncEntry *e = &ct->entry[i];
    char name[CFUNCTAB_TEXT_MAX];
    CFuncDef d = { e, name, 0 };
    if (e->f == 0 || cfunctab_names(ct, e)->has_upvals || !lj_symtab_has(st, e->f))
      continue;
    d.len = lj_cfunctab_text(ct, e, name);
    if (d.len) lj_wbuf_define(to, SPF_CFUNC, cfunc_put, &d);
  }
}

int lj_symrecords_put(Symtab *st, const CodeStarts *starts, const DefSink *to)
{
  unsigned i;
  for (i = 0; i < sizeof(ffnames) / sizeof(ffnames[0]); i++)
    if (st->ffid[i]) lj_wbuf_define(to, SPF_FFUNC, ffunc_put, &i);
  lfuncs_put(st, to);
  lbodies_put(st, to);
  if (st->named) cfuncs_put(st, to);
  return st->has_moved ? lj_elfsym_put(st->more->addr, SYMTAB_MORE, st->naddr, starts, to)
		       : lj_elfsym_put(st->addr, SYMTAB_ADDRS, st->naddr, starts, to);
}
