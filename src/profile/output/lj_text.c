/*
** Texts that are made in memory and written as a whole.
** Context: any thread, outside of the handler.
*/

#define lj_text_c
#define LUA_CORE

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "profile/output/lj_text.h"

int lj_text_make(void (*put)(FILE *f, void *what), void *what, char **text, size_t *len)
{
  FILE *f;
  int ok;
  *text = NULL;
  if ((f = open_memstream(text, len)) == NULL) return 0;
  put(f, what);
  ok = !ferror(f);
  if (fclose(f) == 0 && ok) return 1;
  free(*text);
  *text = NULL;
  return 0;
}

int lj_text_write(int fd, const char *s, size_t len)
{
  while (len > 0) {
    ssize_t n = write(fd, s, len);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EIO;
    if (n <= 0) return 0;
    s += n;
    len -= (size_t)n;
  }
  return 1;
}
