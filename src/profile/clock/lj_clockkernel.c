/*
** Kernels that hang when a clock of perf stops itself: their versions.
** Context: any thread, not the handler.
*/

#define lj_clockkernel_c
#define LUA_CORE

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "profile/base/lj_relaxed.h"
#include "profile/clock/lj_clockkernel.h"

#define UNAME26_MINOR 60 /* Added by the personality UNAME26: 6.17 is 2.6.77. */

/* Read a number and the dot after it, if there is one. Returns 0 without a number. */
static int number_read(const char **s, unsigned long *n)
{
  char *end;
  if (**s < '0' || **s > '9') return 0;
  *n = strtoul(*s, &end, 10);
  *s = end + (*end == '.');
  return 1;
}

/* Does the rest of a release name a candidate, such as 0-rc3 or 0-0.rc3.fc44? */
static int is_candidate(const char *s)
{
  while ((s = strstr(s, "rc")) != NULL) {
    s += 2;
    if (*s >= '0' && *s <= '9') return 1;
  }
  return 0;
}

int lj_clockkernel_isbad(const char *release)
{
  const char *s = release;
  unsigned long major, minor, more;
  if (!number_read(&s, &major) || !number_read(&s, &minor)) return 1;
  if (major == 2 && minor == 6 && number_read(&s, &more) && more >= UNAME26_MINOR) {
    major = 6;
    minor = more - UNAME26_MINOR;
  }
  return major == 6 && (minor == 16 || minor == 17 || (minor == 18 && is_candidate(s)));
}

int lj_clockkernel_hangs(void)
{
  static int answer; /* 0: not asked yet. 1: no. 2: yes. */
  struct utsname name;
  if (relaxed_get(&answer) == 0)
    relaxed_set(&answer, 1 + (uname(&name) != 0 || lj_clockkernel_isbad(name.release)));
  return relaxed_get(&answer) == 2;
}
