/*
** Names of what the handler saw: builtin functions, Lua functions, C code.
** Never runs in the handler: see lj_elfsym.c and lj_heapname.c.
*/

#define lj_symrecords_c
#define LUA_CORE

#include <stdio.h>
#include <string.h>

#include "lj_obj.h"
#include "profile/symbols/lj_elfsym.h"
#include "profile/symbols/lj_symtab.h"

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

/* The name that users know a builtin function by. Returns its length. */
static size_t ffunc_name(const char *name, char *buf, size_t sz)
{
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

static void ffunc_put(WBuf *wb, DefCommit commit, void *ctx, unsigned ffid)
{
  char name[80];
  size_t len = ffunc_name(ffnames[ffid], name, sizeof(name));
  int tries;
  for (tries = 0; tries < 2; tries++) {
    size_t mark = lj_wbuf_def_begin(wb, SPF_FFUNC);
    lj_wbuf_uleb(wb, ffid);
    lj_wbuf_str(wb, name, len);
    lj_wbuf_def_end(wb, mark);
    if (commit(ctx)) return;
  }
}

/* -- Names of Lua functions ------------------------------------------------- */

/* Define the functions again that got a name after they were last defined. */
static void lfuncs_put(Symtab *st, WBuf *wb, DefCommit commit, void *ctx)
{
  uint32_t i, tries;
  if (!st->vm_readable) return;
  for (i = 0; i < SYMTAB_LFUNCS; i++) {
    SymLFunc *lf = &st->lfunc[i];
    if (lf->rank == SYMNAME_NONE || lf->epoch != 0 || !lf->pt ||
	lj_symtab_find(st, lf->pt) != lf)
      continue;
    for (tries = 0; tries < 2; tries++) {
      lj_symtab_define(st, wb, lf->fid, ~tries);
      if (commit(ctx)) break;
    }
  }
}

int lj_symtab_names(Symtab *st, WBuf *wb, DefCommit commit, void *ctx)
{
  unsigned i;
  for (i = 0; i < sizeof(ffnames) / sizeof(ffnames[0]); i++)
    if (st->ffid[i]) ffunc_put(wb, commit, ctx, i);
  lfuncs_put(st, wb, commit, ctx);
  return lj_elfsym_put(st, wb, commit, ctx);
}
