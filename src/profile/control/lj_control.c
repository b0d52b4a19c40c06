/*
** Remote control of profiles: adds VMs and serves requests at their safe points.
** Context: VM thread, outside of the handler.
**
** Each start opens a new file, as misc.sysprof.start does. It must not run Lua code: the
** VM is between two bytecodes, and its compiler may be recording.
*/

#define lj_control_c
#define LUA_CORE

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lj_obj.h"
#include "profile/control/lj_codump.h"
#include "profile/control/lj_control.h"
#include "profile/start/lj_options.h"
#include "profile/process/lj_process.h"
#include "profile/start/lj_report.h"
#include "profile/start/lj_startfile.h"
#include "profile/start/lj_sysprof.h"
#include "profile/base/lj_osprocess.h"
#include "profile/base/lj_relaxed.h"
#include "profile/base/lj_seccomp.h"
#include "profile/base/lj_bgthread.h"
#include "profile/session/lj_sources.h"
#include "profile/control/lj_ctlslot.h"
#include "profile/host/lj_hostwalk.h"
#include "profile/output/lj_log.h"
#include "profile/output/lj_outfile.h"

/* -- Messages ---------------------------------------------------------------- */

static void say(const Control *c, const char *what, const char *errmsg)
{
  /* The next stop returns it, or the client of live control gets it. */
  if ((c->way.is_once || c->way.is_live) && !c->way.fo.told) return;
  lj_say(": %s of run %d of VM %d: %s", what, c->run.runs, c->way.number, errmsg);
}

/* -- Profiles ---------------------------------------------------------------- */

/* Write the reason of a failure into text[EVENT_ERRMSG_MAX], and return it. The mode DEFAULT has no
** path.
*/
static const char *fail(char *text, const char *path, const char *errmsg)
{
  if (path[0]) snprintf(text, EVENT_ERRMSG_MAX, "%.300s: %s", path, errmsg);
  else snprintf(text, EVENT_ERRMSG_MAX, "%s", errmsg);
  return text;
}

/* Names of the files of a VM. */
typedef struct FileNames {
  const char *pattern;
  int number;   /* Of the VM. */
  int is_child; /* The process is a child of the one that named the pattern. */
  int is_plain; /* The pattern names one file. */
} FileNames;

/* Name a file: the pattern and an ending. A child of fork() gets a name that differs from its
** parent's. Returns 0 if the name does not fit.
*/
static int run_path(const FileNames *fn, int run, const char *ending, char *path,
		    size_t size)
{
  size_t len;
  int n;
  if (lj_outfile_name(path, size, fn->pattern, fn->number, run) <= 0) return 0;
  len = strlen(path);
  if (fn->is_child && (fn->is_plain || !strstr(fn->pattern, "%p")))
    n = snprintf(path + len, size - len, ".%ld%s", (long)getpid(), ending);
  else n = snprintf(path + len, size - len, "%s", ending);
  return n >= 0 && (size_t)n < size - len;
}

static const char *start_errmsg(int status, int err)
{
  const char *errmsg = lj_options_errmsg();
  if (errmsg[0]) return errmsg;
  if (status == PROFILE_ERRRUN) return "profiler is running already";
  return lj_seccomp_strerror(err ? err : status == PROFILE_ERRMEM ? ENOMEM : EINVAL);
}

/* Say what the user should know of the clocks. */
static void say_hints(const Control *c, global_State *g)
{
  ReportHint hint[REPORT_HINTS_MAX];
  char text[EVENT_ERRMSG_MAX];
  int n = lj_report_hints(g, hint), i;
  for (i = 0; i < n; i++) {
    snprintf(text, sizeof(text), "%s; %s", hint[i].fact, hint[i].so);
    say(c, "start", text);
  }
}

/* text: gets the reason of a failure, which is returned. */
static const char *run_start(Control *c, lua_State *L, char *text)
{
  StreamFileOptions fo = c->way.fo;
  FileNames fn = { c->way.fo.path, c->way.number, lj_ctlslot_ischild(c), c->way.is_once };
  StartResult r;
  const char *errmsg;
  char *path = (char *)calloc(1, PATH_MAX);
  if (!path) return fail(text, c->way.fo.path, strerror(ENOMEM));
  c->run.runs++;
  fo.path = path;
  if (c->way.opt.mode != LUAM_SYSPROF_DEFAULT &&
      !run_path(&fn, c->run.runs, "", path, PATH_MAX)) {
    free(path);
    return fail(text, c->way.fo.path, strerror(ENAMETOOLONG));
  }
  if (lj_startfile(L, &c->way.opt, &fo, NULL, &r)) {
    free(path);
    say_hints(c, G(L));
    return NULL;
  }
  if (r.inuse)
    r.problem = "another profile of this process writes to this file; put %n into the "
		"path, or set shared";
  errmsg = fail(text, path, r.problem ? r.problem : start_errmsg(r.status, r.err));
  free(path);
  errno = r.err;
  return errmsg;
}

const char *lj_control_start(lua_State *L)
{
  Control *c = lj_ctlslot_of(G(L));
  char text[EVENT_ERRMSG_MAX];
  if (!c) return NULL;
  if (c->way.fo.delay_s <= 0)
    return run_start(c, L, text) ? strcpy(lj_options_errmsg(), text) : NULL;
  lj_ctlslot_startin(c, (uint64_t)(c->way.fo.delay_s * 1e9));
  return NULL;
}

/* -- Coroutines -------------------------------------------------------------- */

#define DUMP_END ".coroutines"
/* Limit of dumps of coroutines of a VM: (no file) */
#define DUMPS_MAX 100000

/* Write a text into a file beside the profiles. Its number is the first one that is free. dumps:
** files so far. text NULL: there was no memory for it.
*/
static void write_dump(const FileNames *fn, int how, int *dumps, const char *text,
		       size_t len)
{
  const char *problem = NULL;
  char *path = (char *)malloc(PATH_MAX), why[EVENT_ERRMSG_MAX];
  int done = path ? 0 : -1, fits = path != NULL, n = 0;
  errno = ENOMEM;
  while (done == 0 && n < DUMPS_MAX) {
    n = __atomic_add_fetch(dumps, 1, __ATOMIC_RELAXED);
    fits = run_path(fn, n, DUMP_END, path, PATH_MAX);
    errno = fits ? ENOMEM : ENAMETOOLONG;
    done = fits && text ? lj_codump_file(path, how, text, len, &problem) : -1;
  }
  if (!problem) problem = strerror(errno);
  if (done <= 0)
    lj_say(": dump of the coroutines of VM %d: %s", fn->number,
	   fail(why, fits ? path : fn->pattern, problem));
  free(path);
}

static void dump_coroutines(Control *c, lua_State *L)
{
  FileNames fn = { c->way.fo.path, c->way.number, lj_ctlslot_ischild(c), 0 };
  char *text;
  size_t len;
  lj_codump_text(L, CO_TEXT, &text, &len);
  write_dump(&fn, c->way.fo.how, &c->run.dumps, text, len);
  free(text);
}

/* -- Background thread ------------------------------------------------------- */

/* Poll the control files, and write what is known of VMs that do not serve a dump. */
static void control_look(void)
{
  LateDump *ld = lj_ctlslot_poll();
  char *text;
  size_t len;
  if (!ld) return;
  lj_codump_late(ld, &text, &len);
  {
    FileNames fn = { ld->pattern, ld->number, ld->is_child, 0 };
    write_dump(&fn, ld->how, ld->dumps, text, len);
  }
  free(text);
  lj_ctlslot_latefree(ld);
}

void lj_control_begin(void)
{
  static const ProcessTenant control = { .needed = lj_ctlslot_haspoll,
					 .look = control_look,
					 .over = lj_ctlslot_over,
					 .moved = lj_ctlslot_moved,
					 .forked = lj_ctlslot_fork,
					 .exit = lj_ctlslot_end };
  lj_process_lock();
  lj_process_addtenant(&control);
  lj_process_unlock();
}

/* -- Adding a VM ------------------------------------------------------------- */

/* Check the options as a start will. Returns NULL, or the reason for a refusal. */
static const char *options_problem(const struct luam_Sysprof_Options *opt)
{
  static const SysprofCallbacks none;
  struct luam_Sysprof_Options o = *opt;
  EventDefaults by = { opt->interval_ns, opt->period, opt->jitter, opt->prefer_tick };
  static EventSpec spec[SPF_EVENTS_MAX]; /* Under the lock. */
  char *errmsg = lj_options_errmsg();
  int is_valid;
  o.mode = LUAM_SYSPROF_DEFAULT; /* The buffer does not exist yet. */
  lj_process_lock();
  is_valid = lj_options_valid(&o, &none) &&
	     lj_sources_parse(o.clocks ? o.clocks : "cpu", &by, spec, errmsg);
  lj_process_unlock();
  return is_valid ? NULL : errmsg;
}

const char *lj_control_add(lua_State *L, const ControlOptions *co)
{
  const char *errmsg = options_problem(co->opt);
  int is_known, err;
  if (errmsg) return errmsg;
  if (co->fo->max_size && co->fo->shared)
    return "max_size needs a file of its own; remove shared";
  lj_osprocess_pin();
  lj_process_lock();
  is_known = lj_hostwalk_warmup();
  lj_process_unlock();
  if (!is_known) return HOSTWALK_UNKNOWN;
  if ((errmsg = lj_process_begin(G(L))) != NULL) return errmsg;
  lj_control_begin();
  if ((errmsg = lj_ctlslot_add(G(L), co)) != NULL) return errmsg;
  if ((err = lj_process_setthread()) == 0) return NULL;
  lj_control_close(G(L));
  return lj_bgthread_why(err, lj_options_errmsg(), EVENT_ERRMSG_MAX);
}

int lj_control_has(const global_State *g)
{
  return lj_ctlslot_of(g) != NULL;
}

int lj_control_close(global_State *g)
{
  int had = lj_ctlslot_close(g);
  if (had) lj_process_setthread();
  return had;
}

/* -- Requests ---------------------------------------------------------------- */

/* Keep how a profile has ended, for the next stop. */
static void serve_ended(Control *c, int status)
{
  c->run.status = status;
  c->run.err = errno;
  c->run.has_ended = c->way.is_once || c->way.is_live;
}

static void serve_failed(Control *c, const char *what, int status, const char *errmsg)
{
  serve_ended(c, status);
  say(c, what, errmsg);
}

static void serve_stop(Control *c, global_State *g)
{
  int status = lj_sysprof_stop(g);
  if (status == PROFILE_ERRRUN) return; /* Another thread was faster. */
  if (status != PROFILE_SUCCESS) serve_failed(c, "stop", status, strerror(errno));
  else serve_ended(c, status);
}

int lj_control_serve(lua_State *L)
{
  global_State *g = G(L);
  Control *c = lj_ctlslot_of(g);
  char why[EVENT_ERRMSG_MAX];
  uint32_t what;
  if (!c) return 0;
  relaxed_set(&c->sig.asked, 0);
  what = lj_ctlslot_take(c);
  if ((what & CONTROL_OVER) && lj_sysprof_isover(g)) what |= CONTROL_STOP;
  if (what & CONTROL_TOGGLE) what |= lj_sysprof_isrunning(g) ? CONTROL_STOP : CONTROL_START;
  if (what & CONTROL_COROUTINES) dump_coroutines(c, L);
  if (what & (CONTROL_STOP | CONTROL_DUMP)) lj_sysprof_collect(L);
  if ((what & CONTROL_STOP) && lj_sysprof_isrunning(g)) serve_stop(c, g);
  if ((what & CONTROL_START) && !lj_sysprof_isrunning(g) && run_start(c, L, why))
    serve_failed(c, "start", PROFILE_ERRIO, why);
  if (c->way.is_once && !lj_ctlslot_isdue(c) && !lj_sysprof_isrunning(g)) {
    lj_ctlslot_settime(c, 0);
    lj_process_setthread();
  }
  if ((what & CONTROL_DUMP) && lj_sysprof_isrunning(g) &&
      lj_sysprof_dump(g) != PROFILE_SUCCESS)
    say(c, "dump", strerror(errno));
  return (what & CONTROL_LIVE) != 0;
}
