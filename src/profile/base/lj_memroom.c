/*
** Memory that the limits of the process's control groups leave.
** Context: under the lock, on any thread, outside of the handler.
*/

#define lj_memroom_c
#define LUA_CORE

#include <stdlib.h>

#include "profile/base/lj_cgroup.h"
#include "profile/base/lj_memroom.h"

/* Names of a group's files in a version, and of the key in memory.stat. */
typedef struct Names {
  const char *most, *now, *inactive;
} Names;

/* A number of a file. Returns 0 if it has none. */
static int read_number(const char *folder, const char *file, uint64_t *n)
{
  const char *text = lj_cgroup_read(folder, file);
  if (!text || *text < '0' || *text > '9') return 0; /* Also "max". */
  *n = strtoull(text, NULL, 10);
  return 1;
}

/* Take the least of all groups. */
static int look(void *ctx, const char *folder)
{
  static const Names names[2] = { { "memory.max", "memory.current", "inactive_file" },
				  { "memory.limit_in_bytes", "memory.usage_in_bytes",
				    "total_inactive_file" } };
  uint64_t *left = (uint64_t *)ctx, most, now, inactive;
  const char *text;
  int i;
  for (i = 0; i < 2; i++) {
    if (!read_number(folder, names[i].most, &most) ||
	!read_number(folder, names[i].now, &now))
      continue;
    text = lj_cgroup_read(folder, "memory.stat");
    inactive = text ? lj_cgroup_number(text, names[i].inactive) : 0;
    now = now > inactive ? now - inactive : 0;
    most = most > now ? most - now : 0;
    if (most < *left) *left = most;
  }
  return 0;
}

uint64_t lj_memroom_left(void)
{
  uint64_t left = ~(uint64_t)0;
  lj_cgroup_each("memory", look, &left);
  return left;
}
