/*
** Control groups of the process: their folders, and numbers in their files.
** Context: under the lock, on any thread, outside of the handler. The texts are static, as a
** thread's stack may be small.
*/

#define lj_cgroup_c
#define LUA_CORE

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/lj_cgroup.h"
#include "profile/base/lj_procfile.h"

#define MOUNT      "/sys/fs/cgroup"
#define GROUPS_MAX 4096 /* Bytes of /proc/self/cgroup. */
#define NAME_BYTES 1024 /* Of a file's name. */
#define LEVELS_MAX 32   /* Groups that are looked at, one above the other. */
#define TEXT_MAX   4096 /* Bytes of a file. */

/* Whom a search calls. */
typedef struct Looker {
  int (*look)(void *ctx, const char *folder);
  void *ctx;
} Looker;

/* -- Files ------------------------------------------------------------------- */

const char *lj_cgroup_read(const char *folder, const char *file)
{
  static char name[NAME_BYTES], text[TEXT_MAX];
  int n = snprintf(name, sizeof(name), "%s/%s", folder, file);
  if (n < 0 || (size_t)n >= sizeof(name)) return NULL;
  return lj_procfile_read(name, text, sizeof(text)) > 0 ? text : NULL;
}

uint64_t lj_cgroup_number(const char *text, const char *key)
{
  size_t len = strlen(key);
  const char *line = text;
  while (line) {
    if (strncmp(line, key, len) == 0 && line[len] == ' ')
      return strtoull(line + len + 1, NULL, 10);
    line = strchr(line, '\n');
    if (line) line++;
  }
  return 0;
}

/* -- Groups ------------------------------------------------------------------ */

/* Look at a group and at those above it. In a container, the mounted tree may begin at the group. */
static int find_above(const char *dir, const char *path, const Looker *to)
{
  static char folder[NAME_BYTES];
  size_t len = strcspn(path, "\n");
  int i;
  for (i = 0; i < LEVELS_MAX; i++) {
    int n;
    while (len > 0 && path[len - 1] == '/') len--;
    n = snprintf(folder, sizeof(folder), MOUNT "%s%.*s", dir, (int)len, path);
    if (n > 0 && (size_t)n < sizeof(folder) && to->look(to->ctx, folder)) return 1;
    if (len == 0) break;
    while (len > 0 && path[len - 1] != '/') len--;
  }
  return 0;
}

/* Is a word in a list with commas, which ends with a colon? */
static int has_word(const char *list, const char *word)
{
  size_t len = strlen(word);
  for (;;) {
    size_t n = strcspn(list, ",:\n");
    if (n == len && memcmp(list, word, n) == 0) return 1;
    if (list[n] != ',') return 0;
    list += n + 1;
  }
}

/* A line is ID:CONTROLLERS:PATH. Version 2 has no controllers. */
static int line_read(const char *line, const char *name, const Looker *to)
{
  const char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
  char dir[64];
  int n;
  if (!path || memchr(line, '\n', (size_t)(path - line))) return 0;
  list++;
  if (list == path)
    return find_above("", path + 1, to) || find_above("/unified", path + 1, to);
  if (!has_word(list, name)) return 0;
  n = snprintf(dir, sizeof(dir), "/%.*s", (int)(path - list), list);
  if (n > 0 && (size_t)n < sizeof(dir) && find_above(dir, path + 1, to)) return 1;
  n = snprintf(dir, sizeof(dir), "/%s", name);
  return n > 0 && (size_t)n < sizeof(dir) && find_above(dir, path + 1, to);
}

void lj_cgroup_each(const char *name, int (*look)(void *ctx, const char *folder), void *ctx)
{
  static char groups[GROUPS_MAX];
  const char *line = groups;
  Looker to;
  to.look = look;
  to.ctx = ctx;
  if (lj_procfile_read("/proc/self/cgroup", groups, sizeof(groups)) <= 0) return;
  while (line && *line && !line_read(line, name, &to)) {
    line = strchr(line, '\n');
    if (line) line++;
  }
}
