/*
** Coroutine dump of a VM: as text, into a file.
** Context: VM thread, between two bytecodes.
*/

#define lj_codump_c
#define LUA_CORE

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/stat.h>

#include "lj_obj.h"
#include "profile/api/lj_codump.h"
#include "profile/output/lj_nosig.h"
#include "profile/output/lj_outfile.h"

int lj_codump_text(lua_State *L, CoFormat format, char **text, size_t *len)
{
  CoList cl;
  CoNames cn;
  FILE *f;
  int ok = 0;
  *text = NULL;
  if (!lj_colist_read(&cl, L)) return 0;
  if (lj_coname_find(&cn, &cl)) {
    if ((f = open_memstream(text, len)) != NULL) {
      lj_cotext_write(f, &cn, format);
      ok = !ferror(f);
      if (fclose(f) != 0) ok = 0;
    }
    lj_coname_free(&cn);
  }
  lj_colist_free(&cl);
  if (ok) return 1;
  free(*text);
  *text = NULL;
  return 0;
}

/* Write all of a text. Returns 0 and sets errno on failure. */
static int write_all(int fd, const char *s, size_t len)
{
  while (len > 0) {
    ssize_t n = write(fd, s, len);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return 0;
    s += n;
    len -= (size_t)n;
  }
  return 1;
}

int lj_codump_file(lua_State *L, const char *path, int how, const char **problem)
{
  struct stat st;
  char *text = NULL;
  size_t len;
  NoSig ns;
  int created, ok, err, is_known,
    fd = lj_outfile_open(path, how | OUTFILE_NEW, &created, problem);
  if (fd < 0) return errno == EEXIST && !*problem ? 0 : -1;
  if (lj_codump_text(L, CO_TEXT, &text, &len)) {
    lj_nosig_begin(&ns);
    ok = write_all(fd, text, len);
    err = errno;
    lj_nosig_end(&ns, ok ? 0 : err);
  } else {
    ok = 0;
    err = ENOMEM;
  }
  free(text);
  is_known = fstat(fd, &st) == 0;
  if (close(fd) != 0 && ok) {
    ok = 0;
    err = errno;
  }
  if (!ok && is_known) lj_outfile_remove(path, how, st.st_dev, st.st_ino);
  errno = err;
  return ok ? 1 : -1;
}
