/*
** Profiles that begin after a delay, or end by time or size.
** Context: VM thread, outside of the handler. Takes the lock.
**
** A control slot without a signal and a file looks after one such profile: lj_ctltime.h.
*/

#define lj_timed_c
#define LUA_CORE

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lj_obj.h"
#include "profile/control/lj_control.h"
#include "profile/start/lj_options.h"
#include "profile/process/lj_process.h"
#include "profile/start/lj_sysprof.h"
#include "profile/control/lj_timed.h"
#include "profile/base/lj_relaxed.h"
#include "profile/control/lj_ctlslot.h"

static int fail(StartResult *r, int status, const char *why)
{
  char *errmsg = lj_options_errmsg();
  if (why != errmsg) snprintf(errmsg, EVENT_ERRMSG_MAX, "%s", why);
  r->status = status;
  r->err = EINVAL;
  return 0;
}

/* Write a path as a pattern of lj_outfile_name. The caller frees it. */
static char *path_pattern(const char *path)
{
  char *pattern = (char *)malloc(2 * strlen(path) + 1), *to = pattern;
  if (!pattern) return NULL;
  for (; *path; path++) {
    if (*path == '%') *to++ = '%';
    *to++ = *path;
  }
  *to = '\0';
  return pattern;
}

/* Put a VM under the control of time. Returns NULL, or the reason of a failure. */
static const char *add(lua_State *L, const struct luam_Sysprof_Options *opt,
		       const StreamFileOptions *fo)
{
  StreamFileOptions pattern = *fo;
  ControlOptions co = { .number = 1, .opt = opt, .fo = &pattern };
  char *path = path_pattern(fo->path);
  const char *why;
  if (!path) return strerror(ENOMEM);
  pattern.path = path;
  why = lj_control_add(L, &co);
  free(path);
  return why;
}

/* Complete a profile that is over, and forget one that has ended. Returns the slot of the VM. */
static Control *settle(lua_State *L)
{
  global_State *g = G(L);
  Control *c;
  if (lj_sysprof_isover(g)) {
    lj_sysprof_collect(L);
    lj_sysprof_stop(g);
  }
  c = lj_ctlslot_of(g);
  if (!c || !c->way.is_once || lj_sysprof_isrunning(g)) return c;
  lj_control_close(g);
  return NULL;
}

static int start_later(Control *c, const struct luam_Sysprof_Options *opt,
		       const StreamFileOptions *fo, StartResult *r)
{
  if (!lj_startfile_check(opt, fo, r)) return 0;
  lj_ctlslot_startin(c, (uint64_t)(fo->delay_s * 1e9));
  return 1;
}

int lj_timed_start(lua_State *L, const struct luam_Sysprof_Options *opt,
		   const StreamFileOptions *fo, StartResult *r)
{
  global_State *g = G(L);
  const char *why;
  Control *c;
  lj_process_settle();
  c = lj_ctlslot_of(g);
  memset(r, 0, sizeof(*r));
  if (c && lj_ctlslot_isdue(c))
    return fail(r, PROFILE_ERRRUN,
		"a profile of this VM waits for its delay; misc.sysprof.stop cancels it");
  c = settle(L);
  if (!streamfile_istimed(fo) || lj_sysprof_isrunning(g))
    return lj_startfile(L, opt, fo, NULL, r);
  if (c && fo->delay_s > 0)
    return fail(r, PROFILE_ERRUSE,
		"profiler misuse: option 'delay' is given beside the control of this VM; "
		"expected one of them");
  if (!c && (why = add(L, opt, fo)) != NULL) return fail(r, PROFILE_ERRUSE, why);
  c = lj_ctlslot_of(g);
  if (fo->delay_s > 0 ? start_later(c, opt, fo, r) : lj_startfile(L, opt, fo, NULL, r)) {
    lj_ctlslot_settime(c, 1);
    return 1;
  }
  if (c->way.is_once) lj_control_close(g);
  return 0;
}

int lj_timed_stop(lua_State *L, int (*stop)(global_State *g))
{
  global_State *g = G(L);
  int was_due, status, err;
  Control *c;
  lj_process_settle();
  c = lj_ctlslot_of(g);
  was_due = c && lj_ctlslot_cancel(c);
  lj_sysprof_collect(L);
  status = stop(g);
  err = errno;
  if (status == PROFILE_ERRRUN && c && !lj_sysprof_isrunning(g)) {
    if (was_due) status = PROFILE_SUCCESS;
    if (!was_due && c->run.has_ended) {
      status = c->run.status;
      err = c->run.err;
    }
  }
  if (c) c->run.has_ended = 0;
  if (c && c->way.is_once && !lj_sysprof_isrunning(g)) lj_control_close(g);
  errno = err;
  return status;
}
