/*
** Control of VMs: the slots, and what is done at the safe point.
**
** Each start opens a file of its own. It is made as misc.sysprof.start makes it, but
** without Lua: the VM is between two bytecodes, and its compiler may be at work.
*/

#define lj_control_c
#define LUA_CORE

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lj_obj.h"
#include "profile/clock/lj_clock.h"
#include "profile/clock/lj_clockspec.h"
#include "profile/api/lj_control.h"
#include "profile/output/lj_outfile.h"
#include "profile/output/lj_log.h"
#include "profile/base/lj_relaxed.h"
#include "profile/output/lj_streamfile.h"
#include "profile/api/lj_sysprof.h"
#include "profile/format/lj_sysprof_format.h"
#include "profile/base/lj_osthread.h"

#define PROBLEM_MAX 512
#define FILE_SIGNAL SIGURG /* Tells of control files: by default nothing happens. */

LJ_DATADEF Control lj_controls[CONTROLS_MAX];
static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;
static int slots_used;  /* Under the lock. */
static int slots_files; /* Of them with a control file. */
static __thread char problem_text[PROBLEM_MAX];

static Control *slot_of(const global_State *g)
{
  int i;
  if (!relaxed_get(&slots_used)) return NULL;
  for (i = 0; i < CONTROLS_MAX; i++)
    if (relaxed_get(&lj_controls[i].g) == g) return &lj_controls[i];
  return NULL;
}

/* -- Slots ------------------------------------------------------------------- */

/* The calling thread is the one that runs the VM. */
static void slot_setthread(Control *c)
{
  uintptr_t lo, hi;
  lj_osthread_stack(&lo, &hi);
  relaxed_set(&c->stack_hi, hi);
  relaxed_set(&c->tid, lj_osthread_self());
}

static void slot_free(Control *c)
{
  free((char *)c->pattern);
  free((char *)c->file);
  free((char *)c->fo.path);
  free((char *)c->opt.clocks);
  relaxed_set(&c->file, NULL);
  c->pattern = c->fo.path = c->opt.clocks = NULL;
}

/* The control file of this process, and how it is now. Returns what is wrong, or NULL. */
static const char *slot_findfile(Control *c)
{
  if (lj_outfile_name((char *)c->file, PATH_MAX, c->pattern, c->number, 1) <= 0)
    return strerror(ENAMETOOLONG);
  return lj_ctlfile_begin(c);
}

/* Nothing of a free slot is used but by the add. Under the lock. */
static void slot_end(Control *c)
{
  int own = relaxed_get(&c->tid) == lj_osthread_self();
  if (c->file) relaxed_add(&slots_files, -1);
  relaxed_add(&slots_used, -1);
  __atomic_store_n(&c->g, NULL, __ATOMIC_SEQ_CST);
  while (!own && __atomic_load_n(&c->users, __ATOMIC_SEQ_CST) > 0) sched_yield();
  lj_ctlsig_restore(c->signo);
  slot_free(c);
}

/* What a start would say of the options. Returns NULL if it would take them. */
static const char *options_problem(const struct luam_Sysprof_Options *opt)
{
  static const SysprofCallbacks none;
  struct luam_Sysprof_Options o = *opt;
  ClockSpec spec[SPF_EVENTS_MAX];
  char *why = lj_options_errmsg();
  o.mode = LUAM_SYSPROF_DEFAULT; /* There is no buffer yet. */
  if (lj_options_valid(&o, &none) &&
      lj_clockspec_parse(o.clocks ? o.clocks : "cpu", o.interval_ns, o.period, o.jitter,
			 spec, why))
    return NULL;
  return why;
}

static const char *slot_fill(Control *c, const char *control, int number,
			     const struct luam_Sysprof_Options *opt, const LuaOptsFile *fo)
{
  const char *why = options_problem(opt);
  int is_file = (*control == '/');
  if (why) return why;
  relaxed_set(&c->signo, is_file ? FILE_SIGNAL : lj_luaopts_signal(control));
  c->asked = c->runs = 0; /* users goes on: a handler may be about to leave. */
  relaxed_set(&c->pending, 0);
  c->number = number;
  c->pid = getpid();
  c->opt = *opt;
  c->fo = *fo;
  c->opt.clocks = opt->clocks ? strdup(opt->clocks) : NULL;
  c->fo.path = fo->path ? strdup(fo->path) : NULL;
  c->pattern = is_file ? strdup(control) : NULL;
  relaxed_set(&c->file, is_file ? malloc(PATH_MAX) : NULL);
  if ((opt->clocks && !c->opt.clocks) || (fo->path && !c->fo.path) ||
      (is_file && !(c->pattern && c->file)))
    return strerror(ENOMEM);
  if (is_file && (why = slot_findfile(c)) != NULL) return why;
  slot_setthread(c);
  why = lj_ctlsig_install(c->signo);
  if (why && is_file) return "the program has a handler for SIGURG, which is needed";
  return why;
}

const char *lj_control_add(lua_State *L, const char *control, int number,
			   const struct luam_Sysprof_Options *opt, const LuaOptsFile *fo)
{
  const char *why = "this many VMs cannot be controlled";
  int i, err = lj_sysprof_begin();
  if (err) return strerror(err);
  pthread_mutex_lock(&slots_lock);
  for (i = 0; i < CONTROLS_MAX && lj_controls[i].g; i++)
    ;
  if (i < CONTROLS_MAX) {
    Control *c = &lj_controls[i];
    if ((why = slot_fill(c, control, number, opt, fo)) != NULL) {
      slot_free(c);
    } else {
      relaxed_add(&slots_files, c->file != NULL);
      relaxed_add(&slots_used, 1);
      __atomic_store_n(&c->g, G(L), __ATOMIC_SEQ_CST);
    }
  }
  pthread_mutex_unlock(&slots_lock);
  if (!why && (err = lj_sysprof_sethelper()) != 0) {
    lj_control_close(G(L));
    snprintf(problem_text, PROBLEM_MAX, "the profiler's thread cannot be made: %s",
	     strerror(err));
    why = problem_text;
  }
  return why;
}

void lj_control_moved(global_State *g)
{
  Control *c = slot_of(g);
  if (c) slot_setthread(c);
}

void lj_control_close(global_State *g)
{
  Control *c = slot_of(g);
  int had_file;
  if (!c) return;
  pthread_mutex_lock(&slots_lock);
  had_file = (c->file != NULL);
  slot_end(c);
  pthread_mutex_unlock(&slots_lock);
  if (had_file) lj_sysprof_sethelper();
}

void lj_control_end(void)
{
  int i;
  pthread_mutex_lock(&slots_lock);
  for (i = 0; i < CONTROLS_MAX; i++)
    if (lj_controls[i].g) slot_end(&lj_controls[i]);
  pthread_mutex_unlock(&slots_lock);
}

/* Other threads of the parent may have held the lock. */
void lj_control_fork(int forked)
{
  static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
  int i;
  slots_lock = unlocked;
  for (i = 0; i < CONTROLS_MAX; i++) {
    Control *c = &lj_controls[i];
    if (!c->g) continue;
    c->users = c->asked = 0;
    c->pending = 0;
    if (!c->fo.children || c->tid != forked) {
      slot_end(c);
      continue;
    }
    c->tid = lj_osthread_self();
    if (c->file && strstr(c->pattern, "%p")) slot_findfile(c);
  }
}

/* -- Control files ----------------------------------------------------------- */

int lj_control_isfile(void)
{
  return relaxed_get(&slots_files) > 0;
}

void lj_control_look(void)
{
  int i;
  if (!lj_control_isfile() || pthread_mutex_trylock(&slots_lock) != 0) return;
  for (i = 0; i < CONTROLS_MAX; i++)
    if (lj_controls[i].g && lj_controls[i].file) lj_ctlfile_look(&lj_controls[i]);
  pthread_mutex_unlock(&slots_lock);
}

/* -- Profiles ---------------------------------------------------------------- */

static const char *fail(const char *path, const char *why)
{
  snprintf(problem_text, PROBLEM_MAX, "%.300s: %s", path, why);
  return problem_text;
}

/* The file of this run: what a child writes is not its parent's. */
static const char *run_path(const Control *c, char *path, size_t size)
{
  size_t len;
  if (lj_outfile_name(path, size, c->fo.path, c->number, c->runs) <= 0)
    return fail(c->fo.path, strerror(ENAMETOOLONG));
  len = strlen(path);
  if (c->pid != getpid() && !strstr(c->fo.path, "%p"))
    snprintf(path + len, size - len, ".%ld", (long)getpid());
  return NULL;
}

static const char *why_not(int status, int err)
{
  const char *why = lj_options_errmsg();
  if (why[0]) return why;
  if (status == PROFILE_ERRRUN) return "profiler is running already";
  return strerror(err ? err : status == PROFILE_ERRMEM ? ENOMEM : EINVAL);
}

static const char *run_start(Control *c, lua_State *L)
{
  static const SysprofCallbacks none;
  static const SysprofCallbacks file = { lj_streamfile_write, lj_streamfile_close, NULL,
					 lj_streamfile_unasked };
  struct luam_Sysprof_Options opt = c->opt;
  StreamFile *sf = NULL;
  char path[PATH_MAX];
  const char *why;
  int status, err;
  path[0] = '\0';
  c->runs++;
  if (opt.mode != LUAM_SYSPROF_DEFAULT) {
    if ((why = run_path(c, path, sizeof(path))) != NULL) return why;
    switch (lj_streamfile_open(path, c->fo.how, c->fo.shared, c->fo.children, &sf, &why)) {
    case STREAMFILE_OK: break;
    case STREAMFILE_INUSE:
      return fail(path, "another profile of this process is "
			"being written into this file");
    default: return fail(path, why ? why : strerror(errno));
    }
    opt.buf = sf->buf;
    opt.len = sizeof(sf->buf);
    opt.ctx = sf;
    opt.session = sf->session;
    if (c->fo.children) opt.on_fork = lj_streamfile_fork;
  }
  lj_options_errmsg()[0] = '\0';
  status = lj_sysprof_start(L, &opt, sf ? &file : &none);
  if (status == PROFILE_SUCCESS) return NULL;
  err = sf && sf->err ? sf->err : errno;
  if (sf) lj_streamfile_close(sf, NULL);
  return fail(path, why_not(status, err));
}

const char *lj_control_start(lua_State *L)
{
  Control *c = slot_of(G(L));
  return c ? run_start(c, L) : NULL;
}

/* -- Requests ---------------------------------------------------------------- */

static void say(const Control *c, const char *what, const char *why)
{
  lj_say(": %s of run %d of VM %d: %s", what, c->runs, c->number, why);
}

void lj_control_serve(lua_State *L)
{
  global_State *g = G(L);
  Control *c = slot_of(g);
  uint32_t what;
  const char *why;
  if (!c) return;
  relaxed_set(&c->asked, 0);
  what = __atomic_exchange_n(&c->pending, 0, __ATOMIC_RELAXED);
  if (what & CONTROL_TOGGLE) what |= lj_sysprof_isrunning(g) ? CONTROL_STOP : CONTROL_START;
  if ((what & CONTROL_STOP) && lj_sysprof_isrunning(g) &&
      lj_sysprof_stop(g) != PROFILE_SUCCESS)
    say(c, "stop", strerror(errno));
  if ((what & CONTROL_START) && !lj_sysprof_isrunning(g) && (why = run_start(c, L)) != NULL)
    say(c, "start", why);
  if ((what & CONTROL_DUMP) && lj_sysprof_isrunning(g) &&
      lj_sysprof_dump(g) != PROFILE_SUCCESS)
    say(c, "dump", strerror(errno));
}
