/*
** Coroutine dump of a VM: as text, into a file.
** Context: VM thread, between two bytecodes.
*/

#define lj_codump_c
#define LUA_CORE

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "lj_obj.h"
#include "profile/control/lj_codump.h"
#include "profile/base/lj_cleantext.h"
#include "profile/control/lj_ctlstack.h"
#include "profile/output/lj_nosig.h"
#include "profile/output/lj_outfile.h"
#include "profile/output/lj_text.h"
#include "profile/symbols/lj_symrecords.h"

/* -- All coroutines ---------------------------------------------------------- */

typedef struct Dump {
  CoNames names;
  CoFormat format;
} Dump;

static void put_dump(FILE *f, void *what)
{
  const Dump *d = (const Dump *)what;
  lj_cotext_write(f, &d->names, d->format);
}

int lj_codump_text(lua_State *L, CoFormat format, char **text, size_t *len)
{
  CoList cl;
  Dump d;
  int ok = 0;
  *text = NULL;
  if (!lj_colist_read(&cl, L)) return 0;
  d.format = format;
  if (lj_coname_find(&d.names, &cl)) {
    ok = lj_text_make(put_dump, &d, text, len);
    lj_coname_free(&d.names);
  }
  lj_colist_free(&cl);
  return ok;
}

/* -- What is known of a VM that does not answer ------------------------------ */

static void put_frame(FILE *f, const CtlFrame *fr, const CoSymbols *symbols)
{
  static CoName name; /* Of the background thread. */
  memset(&name, 0, sizeof(name));
  switch (fr->kind) {
  case SPF_FRAME_LFUNC: {
    CoLuaText t = { fr->name,    fr->namelen, fr->chunk, fr->chunklen,
		    fr->is_main, fr->line,    "",        0 };
    lj_coname_luafunc(&t, &name);
    break;
  }
  case SPF_FRAME_FFUNC:
    lj_symrecords_builtin((uint32_t)fr->value, name.name, sizeof(name.name));
    break;
  case SPF_FRAME_CFUNC:
  case SPF_FRAME_HOST: lj_coname_cfunc(symbols, (uintptr_t)fr->value, &name); break;
  case SPF_FRAME_VM: strcpy(name.name, "[Lua]"); break;
  case SPF_FRAME_TRACE: strcpy(name.name, "[compiled code]"); break;
  case SPF_FRAME_RESUME: strcpy(name.name, "[coroutine]"); break;
  case SPF_FRAME_WORK: strcpy(name.name, "[VM]"); break;
  case SPF_FRAME_CUT: strcpy(name.name, "[more frames]"); break;
  case SPF_FRAME_BROKEN: strcpy(name.name, "[unknown]"); break;
  default: return; /* Boundaries to C. */
  }
  fputs("    ", f);
  lj_cotext_name(f, &name);
  fputc('\n', f);
}

static void put_frames(FILE *f, const char *title, const CtlFrame *fr, uint32_t n)
{
  static uintptr_t addr[CTLSTACK_FRAMES]; /* Of the background thread. */
  CoSymbols symbols;
  uint32_t i, naddr = 0;
  for (i = 0; i < n; i++)
    if (fr[i].kind == SPF_FRAME_CFUNC || fr[i].kind == SPF_FRAME_HOST)
      addr[naddr++] = (uintptr_t)fr[i].value;
  lj_coname_symbols(&symbols, addr, naddr);
  fprintf(f, "\n%s\n", title);
  for (i = 0; i < n; i++) put_frame(f, &fr[i], &symbols);
  lj_coname_symbolsfree(&symbols);
}

static void put_late(FILE *f, void *what)
{
  const LateDump *ld = (const LateDump *)what;
  const CtlStack *cs = ld->stack;
  uint32_t i;
  fprintf(f,
	  "VM %d of process %ld has not answered for a second: %s.\n"
	  "The list of its coroutines is missing. It follows in the next file when the VM "
	  "answers.\n",
	  ld->number, (long)getpid(),
	  cs && cs->nlua == 0 ? "the program runs no Lua code now"
			      : "it runs compiled or C code");
  if (cs) {
    if (cs->nlua) put_frames(f, "running", cs->lua, cs->nlua);
    put_frames(f, "C stack", cs->host, cs->nhost);
  } else {
    fputs("Its stack is missing, too: its thread did not take the signal.\n", f);
  }
  if (!ld->has_known) {
    fputs("\nWhere coroutines wait is known only while coroutine-wait is recorded.\n", f);
    return;
  }
  fputs("\nwaiting coroutines that have yielded since coroutine-wait is recorded\n", f);
  for (i = 0; i < ld->nplace; i++) {
    char name[CONAME_MAX];
    lj_cleantext(name, sizeof(name), ld->place[i].name, strlen(ld->place[i].name));
    fprintf(f, "    %u at %s\n", ld->place[i].n, name);
  }
  if (ld->nmore) fprintf(f, "    %u at other places\n", ld->nmore);
}

int lj_codump_late(const LateDump *ld, char **text, size_t *len)
{
  return lj_text_make(put_late, (void *)ld, text, len);
}

/* -- Files ------------------------------------------------------------------- */

int lj_codump_file(const char *path, int how, const char *text, size_t len,
		   const char **problem)
{
  struct stat st;
  NoSig ns;
  int created, ok, err, is_known,
    fd = lj_outfile_open(path, how | OUTFILE_NEW, &created, problem);
  if (fd < 0) return errno == EEXIST && !*problem ? 0 : -1;
  lj_nosig_begin(&ns);
  ok = lj_text_write(fd, text, len);
  err = errno;
  lj_nosig_end(&ns, ok ? 0 : err);
  is_known = fstat(fd, &st) == 0;
  if (close(fd) != 0 && ok) {
    ok = 0;
    err = errno;
  }
  if (!ok && is_known) lj_outfile_remove(path, how, st.st_dev, st.st_ino);
  errno = err;
  return ok ? 1 : -1;
}
