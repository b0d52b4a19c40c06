/*
** Why an event of perf cannot be had. Runs outside of the handler.
*/

#define lj_clock_perf_why_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "profile/clock/lj_clockops.h"
#include "profile/base/lj_procfile.h"

#define PARANOID "/proc/sys/kernel/perf_event_paranoid"

static int paranoid_level(void)
{
  char text[16];
  return lj_procfile_read(PARANOID, text, sizeof(text)) > 0 ? atoi(text) : -1;
}

/* Level 2 forbids the kernel's part, a higher one all of it. Without that part
** some events do not happen.
*/
static void why_access(const ClockSpec *spec, char *why)
{
  int level = paranoid_level();
  size_t n;
  if (level < 2 || (level == 2 && spec->exclude_kernel)) {
    snprintf(why, CLOCK_WHY_MAX,
	     "clock '%s': a security module of this system "
	     "forbids perf events; allow them there, or give CAP_PERFMON",
	     spec->name);
    return;
  }
  snprintf(why, CLOCK_WHY_MAX,
	   "clock '%s': kernel.perf_event_paranoid is %d, which "
	   "forbids it; run `sysctl kernel.perf_event_paranoid=1` or give CAP_PERFMON",
	   spec->name, level);
  n = strlen(why);
  if (level == 2 && !strchr(spec->name, ':') && !lj_clockspec_iskernel(spec))
    snprintf(why + n, CLOCK_WHY_MAX - n,
	     ", or ask for '%s:u', without the kernel's "
	     "part",
	     spec->name);
}

void lj_clock_perf_why(int err, const ClockSpec *spec, char *why)
{
  struct rlimit limit = { 0, 0 };
  const char *text = NULL;
  switch (err) {
  case EACCES: why_access(spec, why); return;
  case EPERM:
    text = "perf_event_open is forbidden, as by a container's seccomp profile; "
	   "allow it there, or give CAP_PERFMON";
    break;
  case ENOSYS:
    text = "perf_event_open is missing: the kernel is built without it, or a "
	   "container's seccomp profile hides it; allow it there";
    break;
  case EMFILE:
    getrlimit(RLIMIT_NOFILE, &limit);
    snprintf(why, CLOCK_WHY_MAX,
	     "clock '%s': all %llu file descriptors that the "
	     "process may have are open; raise `ulimit -n`",
	     spec->name, (unsigned long long)limit.rlim_cur);
    return;
  case ENOENT:
  case ENODEV:
  case ENXIO:
    text = "this machine does not offer the event, as most virtual machines "
	   "without a PMU; use one of 'task-clock', 'page-faults'";
    break;
  case EOPNOTSUPP:
  case EINVAL:
    text = spec->precise
	     ? "this processor has no such precise level for it; use fewer modifiers 'p'"
	   : err == EINVAL
	     ? "the kernel does not know the event; is its code right?"
	     : "this machine cannot sample the event, having no PMU with interrupts; use "
	       "one of 'task-clock', 'page-faults'";
    break;
  case EBUSY: text = "another program has the PMU for itself; end it"; break;
  case ESRCH: text = "the thread is gone"; break;
  default: text = strerror(err); break;
  }
  snprintf(why, CLOCK_WHY_MAX, "clock '%s': %s", spec->name, text);
}
