/*
** Throttling by the CPU quota of the process's control group: reads cpu.stat.
** Context: under the lock, on any thread, outside of the handler. The texts are static, as a
** thread's stack may be small.
*/

#define lj_cpuquota_c
#define LUA_CORE

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/lj_cpuquota.h"
#include "profile/base/lj_procfile.h"

#define MOUNT      "/sys/fs/cgroup"
#define GROUPS_MAX 4096 /* Bytes of /proc/self/cgroup. */
#define NAME_BYTES 1024 /* Of a file's name. */
#define LEVELS_MAX 32   /* Groups that are looked at, one above the other. */
#define STAT_MAX   1024 /* Bytes of cpu.stat. */

/* The number of a line "KEY NUMBER", 0 without such a line. */
static uint64_t stat_number(const char *text, const char *key)
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

/* Read the counts of a group. The kernel counts periods only while there is a quota. Returns 0
** without one.
*/
static int group_read(const char *dir, const char *path, size_t len, CpuQuota *cq)
{
  static char name[NAME_BYTES], text[STAT_MAX];
  int n = snprintf(name, sizeof(name), MOUNT "%s%.*s/cpu.stat", dir, (int)len, path);
  if (n < 0 || (size_t)n >= sizeof(name)) return 0;
  if (lj_procfile_read(name, text, sizeof(text)) <= 0) return 0;
  if (stat_number(text, "nr_periods") == 0) return 0;
  cq->throttled = stat_number(text, "nr_throttled");
  cq->throttled_ns = stat_number(text, "throttled_time") + /* Version 1. */
		     stat_number(text, "throttled_usec") * 1000;
  return 1;
}

/* Look for a quota at a group and at those above it. In a container, the mounted tree may begin at
** the group.
*/
static int find_above(const char *dir, const char *path, CpuQuota *cq)
{
  size_t len = strcspn(path, "\n");
  int i;
  for (i = 0; i < LEVELS_MAX; i++) {
    while (len > 0 && path[len - 1] == '/') len--;
    if (group_read(dir, path, len, cq)) return 1;
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
static int line_read(const char *line, CpuQuota *cq)
{
  const char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
  char dir[64];
  int n;
  if (!path || memchr(line, '\n', (size_t)(path - line))) return 0;
  list++;
  if (list == path)
    return find_above("", path + 1, cq) || find_above("/unified", path + 1, cq);
  if (!has_word(list, "cpu")) return 0;
  n = snprintf(dir, sizeof(dir), "/%.*s", (int)(path - list), list);
  if (n > 0 && (size_t)n < sizeof(dir) && find_above(dir, path + 1, cq)) return 1;
  return find_above("/cpu", path + 1, cq);
}

void lj_cpuquota_read(CpuQuota *cq)
{
  static char groups[GROUPS_MAX];
  const char *line = groups;
  memset(cq, 0, sizeof(*cq));
  if (lj_procfile_read("/proc/self/cgroup", groups, sizeof(groups)) <= 0) return;
  while (line && *line && !line_read(line, cq)) {
    line = strchr(line, '\n');
    if (line) line++;
  }
}
