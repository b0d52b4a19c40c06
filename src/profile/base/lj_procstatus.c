/*
** Numbers in /proc/self/task/TID/status, see proc(5).
** Context: any thread, not the handler.
**
** Reads the file in parts. It has 1.5 KB, and up to 400 KB if the user is in many groups, but the stack
** of a thread may be small.
*/

#define lj_procstatus_c
#define LUA_CORE

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/base/lj_ownfd.h"
#include "profile/base/lj_procfile.h"
#include "profile/base/lj_procstatus.h"

/* Take the field if its whole line is in the text. */
static void field_find(StatusField *f, const char *text)
{
  const char *at = strstr(text, f->key);
  if (!at || !strchr(at + 1, '\n')) return;
  f->number = strtoull(at + strlen(f->key), NULL, f->base);
  f->is_there = 1;
}

/* Keep the last line, since the text may end inside it. A line that is too long is dropped.
** Returns its length.
*/
static size_t keep_line(char *text, size_t len)
{
  const char *line = strrchr(text, '\n');
  size_t have = line ? (size_t)(text + len - line) : 0;
  if (have == 0 || have >= PROCSTATUS_LINE) return 0;
  memmove(text, line, have);
  return have;
}

int lj_procstatus_read(int tid, StatusField *field, int n)
{
  char text[PROCSTATUS_LINE + 128];
  OwnFd own;
  size_t have = 0;
  ssize_t got;
  int i;
  for (i = 0; i < n; i++) field[i].is_there = 0;
  if (!lj_ownfd_borrow(&own, lj_procfile_taskopen(tid, "status"))) return 0;
  while ((got = read(own.fd, text + have, sizeof(text) - 1 - have)) > 0) {
    have += (size_t)got;
    text[have] = '\0';
    for (i = 0; i < n; i++) field_find(&field[i], text);
    have = keep_line(text, have);
  }
  lj_ownfd_close(&own);
  return got == 0;
}
