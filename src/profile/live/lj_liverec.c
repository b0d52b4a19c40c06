/*
** Recording that a client of live control makes: starts profiles, ends them, answers.
** Context: background thread, under the lock | serve: VM thread.
*/

#define lj_liverec_c
#define LUA_CORE

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lj_obj.h"
#include "profile/live/lj_liverec.h"
#include "profile/start/lj_optname.h"
#include "profile/start/lj_options.h"
#include "profile/start/lj_opttext.h"
#include "profile/start/lj_report.h"
#include "profile/start/lj_sysprof.h"
#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_seccomp.h"
#include "profile/control/lj_ctlslot.h"
#include "profile/live/lj_livecalls.h"
#include "profile/output/lj_streamfile.h"
#include "profile/session/lj_registry.h"
#include "profile/session/lj_sources.h"

#define ANSWER_MS 900  /* From a request to its answer, though a VM has not started. */
#define LATE_MS   1000 /* From then until a sample that does not end is given up. */
/* Limit of a list of clocks, in bytes: the list of clocks is too long */
#define CLOCKS_MAX  512
#define OF_VM_MAX   (SPF_EVENTS_MAX * (EVENT_NAME_MAX + 5)) /* Each name, and " and ". */
#define REFUSAL_MAX 256 /* Bytes of a sentence that refuses a request, with its NUL. */

typedef enum VmState {
  VM_WAITS, /* For its safe point. */
  VM_RUNS,
  VM_ENDED /* Its part of the file is complete, or it has none. */
} VmState;

/* A VM of the recording. */
typedef struct RecordedVm {
  LiveVm vm;
  int state;   /* VmState. Set by the thread that ends the profile. */
  int is_late; /* The events of the VM wait for its safe point. */
  StreamFile *file;
  int is_early;     /* The profile ended before the recording. */
  int has_left;     /* The same: */
  uint64_t left_ns; /* CPU time of its thread then; 0: unknown. */
} RecordedVm;

/* The recording of a client. A process has one at a time: a VM has one profile. */
static struct {
  enum { REC_NONE, REC_BEGINS, REC_RUNS, REC_ENDS } phase;
  OwnFd client, file;
  struct luam_Sysprof_Options opt;
  char clocks[CLOCKS_MAX];
  char of_vm[OF_VM_MAX]; /* Names of the events of the VM, or "". */
  ProfileLimits limits;
  int64_t answer_ms, end_ms, names_ms; /* end_ms 0: no limit. */
  uint64_t wait_ms;                    /* Time that the client grants for names. */
  uint64_t begin_ns;
  int nvm;
  RecordedVm vm[CONTROLS_MAX];
  RecordedVm *all;              /* VM whose profile has all threads but others. */
  int others[CONTROLS_MAX + 1]; /* Threads of the other VMs, ended by 0. */
  uint64_t free_ns;             /* lj_vmprofile_takeover's from_ns, if that VM has left. */
  LiveAnswer last;              /* The last answer so far. */
} rec;

/* -- Profiles of the recording ------------------------------------------------ */

static RecordedVm *vm_of(const global_State *g)
{
  int i;
  for (i = 0; i < rec.nvm; i++)
    if (rec.vm[i].vm.g == g) return &rec.vm[i];
  return NULL;
}

static void note(const RecordedVm *rv, const char *key, const char *text)
{
  char line[EVENT_ERRMSG_MAX + 32];
  if (rec.nvm > 1) snprintf(line, sizeof(line), "VM %d: %s", rv->vm.number, text);
  else snprintf(line, sizeof(line), "%s", text);
  lj_livemsg_text(&rec.last, key, line);
}

/* The profile of a VM has ended. Unless a limit or the recording has ended it, another profile goes
** on with its thread, and with all threads that it had.
*/
static void vm_left(RecordedVm *rv)
{
  const Profile *p = lj_registry_of(rv->vm.g);
  if (!p || p->is_over) return;
  rv->is_early = 1;
  if (rec.opt.threads != LUAM_SYSPROF_THREADS_ALL) return;
  rv->has_left = 1;
  rv->left_ns = thread_ns(rv->vm.thread.tid);
  if (rec.all != rv) return;
  rec.all = NULL;
  rec.free_ns = p->cpu_to_ns;
}

/* End of a profile, on any thread. */
static int file_close(void *ctx, uint8_t *buf)
{
  int i, err = ((StreamFile *)ctx)->err, result = lj_streamfile_close(ctx, buf);
  if (!err && result != 0) err = errno;
  for (i = 0; i < rec.nvm; i++) {
    RecordedVm *rv = &rec.vm[i];
    if (rv->file != ctx) continue;
    if (err) note(rv, "error", lj_seccomp_strerror(err));
    rv->file = NULL;
    rv->state = VM_ENDED;
    vm_left(rv);
  }
  return result;
}

static int count(VmState state)
{
  int i, n = 0;
  for (i = 0; i < rec.nvm; i++) n += (rec.vm[i].state == (int)state);
  return n;
}

/* Is another VM of the recording there, when lua_close ends the profile of one? */
static int goes_on(void *ctx)
{
  int i, n = 0;
  for (i = 0; i < rec.nvm; i++) n += rec.vm[i].file != ctx && rec.vm[i].state != VM_ENDED;
  return n > 0;
}

/* Begin the events of a VM, whose profile another thread began. It stays late if the samples have
** ended.
*/
static void vm_join(RecordedVm *rv)
{
  int status = lj_sysprof_joinvm(rv->vm.g);
  if (status == PROFILE_ERRIO && errno == ECANCELED) return;
  rv->is_late = 0;
  if (status == PROFILE_ERRIO)
    note(rv, "error",
	 lj_options_errmsg()[0] ? lj_options_errmsg() : lj_seccomp_strerror(errno));
}

/* Start the profile of a VM. L: this thread runs it; NULL: another one does. Only one of the profiles has
** threads that run no VM.
*/
static void vm_start(RecordedVm *rv, lua_State *L)
{
  const SysprofCallbacks cb = { .writer = lj_streamfile_write,
				.on_stop = file_close,
				.goes_on = goes_on };
  struct luam_Sysprof_Options o = rec.opt;
  ProfileLimits limits = rec.limits;
  uint64_t since_ns = mono_ns() - rec.begin_ns;
  StreamFile *sf;
  int status, fd = -1;
  rv->state = VM_ENDED;
  if (!rec.all && !count(VM_RUNS)) {
    rec.all = rv;
    rec.others[0] = 0;
  }
  if (rec.all != rv) o.threads = LUAM_SYSPROF_THREADS_OWN;
  if (limits.duration_ns && L) { /* A VM that starts late ends with the others. */
    if (since_ns >= limits.duration_ns) return;
    limits.duration_ns -= since_ns;
  }
  errno = EBADF; /* The program may have closed it. */
  if (lj_ownfd_isours(&rec.file))
    fd = fcntl(rec.file.fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (fd < 0 || lj_streamfile_take(fd, &sf) != STREAMFILE_OK) {
    note(rv, "error", lj_seccomp_strerror(errno));
    if (rec.all == rv) rec.all = NULL;
    return;
  }
  o.buf = sf->buf;
  o.len = sizeof(sf->buf);
  o.ctx = sf;
  o.session = sf->session;
  status = L ? lj_sysprof_start(L, &o, &cb, &limits)
	     : lj_sysprof_startfor(rv->vm.g, &rv->vm.thread, &o, &cb, &limits, rec.others);
  if (status == PROFILE_SUCCESS) {
    rv->file = sf;
    rv->state = VM_RUNS;
    rv->is_late = !L && rec.of_vm[0];
    return;
  }
  if (lj_options_errmsg()[0]) note(rv, "error", lj_options_errmsg());
  else if (status == PROFILE_ERRRUN) note(rv, "error", "the VM is being profiled already");
  else note(rv, "error", lj_seccomp_strerror(errno ? errno : EINVAL));
  if (rec.all == rv) rec.all = NULL;
  lj_streamfile_close(sf, NULL);
}

/* -- Threads that run no VM -------------------------------------------------- */

/* A thread with a session of its own, or 0. */
static int thread_of(const RecordedVm *rv)
{
  return rv->state == VM_RUNS ? rv->vm.thread.tid : 0;
}

/* Return the place of a thread in the list of others, or its end. */
static int *other_find(int tid)
{
  int *at = rec.others;
  while (*at && *at != tid) at++;
  return at;
}

static void others_set(void)
{
  int i;
  for (i = 0; i < rec.nvm; i++) {
    int tid = thread_of(&rec.vm[i]);
    if (!rec.all || tid != rec.all->vm.thread.tid) *other_find(tid) = tid;
  }
}

/* Returns 0 if the thread is not in the list, or stays because it runs another VM. */
static int other_remove(int tid)
{
  int *at = other_find(tid), i;
  for (i = 0; i < rec.nvm; i++)
    if (&rec.vm[i] != rec.all && thread_of(&rec.vm[i]) == tid) return 0;
  if (!*at) return 0;
  for (; *at; at++) *at = at[1];
  return 1;
}

/* The profile of all threads goes on with the threads of VMs that have left. */
static void others_regain(void)
{
  int i;
  for (i = 0; i < rec.nvm; i++) {
    RecordedVm *rv = &rec.vm[i];
    if (!rv->has_left) continue;
    rv->has_left = 0;
    if (!other_remove(rv->vm.thread.tid)) continue;
    if (!rec.all) rec.free_ns = rec.free_ns && rv->left_ns ? rec.free_ns + rv->left_ns : 0;
    else if (rec.all->state == VM_RUNS)
      lj_vmprofile_regain(lj_registry_of(rec.all->vm.g), rv->left_ns);
  }
}

/* If the VM whose profile has all threads has left, the profile of another one takes them over. */
static void all_takeover(void)
{
  int i;
  if (rec.opt.threads != LUAM_SYSPROF_THREADS_ALL) return;
  others_regain();
  for (i = 0; i < rec.nvm && !rec.all; i++) {
    RecordedVm *rv = &rec.vm[i];
    Profile *p = rv->state == VM_RUNS ? lj_registry_of(rv->vm.g) : NULL;
    if (!p || p->is_over) continue;
    rec.all = rv;
    if (!other_remove(rv->vm.thread.tid)) rec.free_ns = 0;
    lj_vmprofile_takeover(p, rec.others, rec.free_ns);
  }
}

/* -- VMs that wait ----------------------------------------------------------- */

/* Does a VM wait for its safe point? */
static int is_waiting(const RecordedVm *rv)
{
  return rv->state == VM_WAITS || (rv->state == VM_RUNS && rv->is_late);
}

static int count_waiting(void)
{
  int i, n = 0;
  for (i = 0; i < rec.nvm; i++) n += is_waiting(&rec.vm[i]);
  return n;
}

/* VMs that have not come to their safe points, those that have ended too. */
static int count_late(void)
{
  int i, n = 0;
  for (i = 0; i < rec.nvm; i++) n += rec.vm[i].state == VM_WAITS || rec.vm[i].is_late;
  return n;
}

/* Note that the recording ends because the program has ended all of its profiles. */
static void note_early(void)
{
  int i, n = 0;
  for (i = 0; i < rec.nvm; i++) n += rec.vm[i].is_early;
  if (n > 0 && n == rec.nvm)
    lj_livemsg_text(
      &rec.last, "note",
      "the recording ended early: the program closed the VM, or stopped its profile");
}

/* Note what happens, or did, because n VMs have not come to their safe points. */
static void note_late(LiveAnswer *a, const char *what, int n)
{
  char line[OF_VM_MAX + 160], several[48] = "";
  if (!n) return;
  if (rec.nvm > 1) snprintf(several, sizeof(several), " (%d of %d VMs)", n, rec.nvm);
  snprintf(line, sizeof(line), "%s%s%s%s", rec.of_vm, rec.of_vm[0] ? ": " : "", what,
	   several);
  lj_livemsg_text(a, "note", line);
}

/* -- Recording: steps -------------------------------------------------------- */

static void rec_end(void)
{
  int i;
  if (rec.phase == REC_NONE || rec.phase == REC_ENDS) return;
  others_regain();
  note_early();
  rec.phase = REC_ENDS;
  rec.names_ms = mono_ms() + (int64_t)rec.wait_ms;
  note_late(
    &rec.last,
    "nothing was recorded: the program waited, stayed in compiled code, or blocks or handles our signal",
    count_late());
  for (i = 0; i < rec.nvm; i++) {
    RecordedVm *rv = &rec.vm[i];
    rv->is_late = 0;
    if (rv->state == VM_RUNS) lj_sysprof_over(rv->vm.g);
    if (rv->state == VM_WAITS) rv->state = VM_ENDED;
  }
}

void lj_liverec_finish(void)
{
  int i;
  if (rec.phase == REC_NONE) return;
  rec_end();
  for (i = 0; i < rec.nvm; i++) lj_ctlslot_watch(rec.vm[i].vm.g, -1);
  lj_livemsg_send(&rec.client, &rec.last);
  lj_ownfd_close(&rec.client);
  lj_ownfd_close(&rec.file);
  rec.phase = REC_NONE;
  rec.nvm = 0;
}

/* Note that the VM has not completed its profile, unless nothing is to be named. */
static void note_forced(const RecordedVm *rv)
{
  struct luam_Sysprof_Counters c;
  lj_report_counters(rv->vm.g, &c);
  if (c.samples > 0)
    note(rv, "note",
	 "the program waits, or stays in compiled code: names that only its VM knows are "
	 "missing");
}

/* Complete profiles whose VM has not done so: it sleeps, or stays in compiled code. late: for the
** last time.
*/
static void rec_force(int late)
{
  int i;
  for (i = 0; i < rec.nvm; i++) {
    RecordedVm *rv = &rec.vm[i];
    if (rv->state != VM_RUNS) continue;
    if (lj_sysprof_force(rv->vm.g)) note_forced(rv);
    else if (late)
      note(rv, "error",
	   "a thread has left a sample by a jump; the end of the file is missing");
    else continue;
    rv->state = VM_ENDED;
  }
}

/* Do all VMs that run have no samples any more? */
static int all_over(void)
{
  int i;
  for (i = 0; i < rec.nvm; i++)
    if (rec.vm[i].state == VM_WAITS ||
	(rec.vm[i].state == VM_RUNS && !lj_sysprof_isover(rec.vm[i].vm.g)))
      return 0;
  return 1;
}

static void rec_answer(void)
{
  static LiveAnswer a;
  lj_livemsg_begin(&a, "ok");
  lj_livemsg_number(&a, "vms", (unsigned)rec.nvm);
  lj_livemsg_number(&a, "started", (unsigned)count(VM_RUNS));
  lj_livemsg_number(&a, "waiting", (unsigned)count_waiting());
  note_late(&a, "recording begins when the program runs interpreted Lua code",
	    count_waiting());
  lj_livemsg_send(&rec.client, &a);
  rec.phase = REC_RUNS;
}

void lj_liverec_step(void)
{
  int64_t now = mono_ms();
  if (rec.phase == REC_BEGINS && (!count_waiting() || now >= rec.answer_ms)) rec_answer();
  if (rec.phase == REC_BEGINS || rec.phase == REC_RUNS) all_takeover();
  if (rec.phase == REC_RUNS && (all_over() || (rec.end_ms && now >= rec.end_ms))) rec_end();
  if (rec.phase != REC_NONE && lj_livemsg_isclosed(&rec.client)) rec_end();
  if (rec.phase == REC_ENDS && now >= rec.names_ms)
    rec_force(now >= rec.names_ms + LATE_MS);
  if (rec.phase == REC_ENDS && !count(VM_RUNS)) lj_liverec_finish();
}

/* -- Request: record --------------------------------------------------------- */

/* Refuse a request. Returns 0. */
static int refuse(const OwnFd *client, const char *format, ...)
{
  char text[REFUSAL_MAX];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  lj_livemsg_refuse(client, text);
  return 0;
}

/* Read the options of a recording. Returns 0 and refuses them if they are wrong. */
static int values_read(const OwnFd *client, const LiveRequest *rq, OptionValues *v)
{
  const char *line;
  lj_opttext_begin(v, OPTION_LIVE);
  for (line = lj_livemsg_option(rq, NULL); line; line = lj_livemsg_option(rq, line)) {
    size_t len = strcspn(line, "=");
    const OptionSpec *o = line[len] ? lj_optname_find(line, len, OPTION_LIVE) : NULL;
    char expected[OPTTEXT_EXPECTED_MAX];
    if (!o)
      return refuse(client, "'%.40s' is unknown to this version of the profiler", line);
    if (!lj_opttext_take(o, line + len + 1, v))
      return refuse(client, "%s is '%.40s'; expected %s", o->name, line + len + 1,
		    lj_opttext_expected(o, expected));
  }
  if (v->hz > 0 && v->interval_ms > 0)
    return refuse(client, "hz is given beside interval; expected one of them");
  if (strlen(v->opt.clocks) >= CLOCKS_MAX)
    return refuse(client, "the list of clocks is too long; expected less than %d bytes",
		  CLOCKS_MAX);
  return 1;
}

/* The same, into the recording. */
static int record_options(const OwnFd *client, const LiveRequest *rq)
{
  OptionValues v;
  if (!values_read(client, rq, &v)) return 0;
  rec.opt = v.opt;
  snprintf(rec.clocks, sizeof(rec.clocks), "%s", v.opt.clocks);
  rec.opt.clocks = rec.clocks;
  rec.opt.interval_ns = lj_opttext_interval(&v);
  rec.opt.flush = LUAM_SYSPROF_FLUSH_THREAD;
  rec.limits.duration_ns = (uint64_t)(v.fo.duration_s * 1e9);
  rec.limits.max_size = v.fo.max_size;
  rec.wait_ms = (uint64_t)v.finish_ms;
  return 1;
}

/* Read the list of events. Returns 0 and refuses it if it is wrong. */
static int record_events(const OwnFd *client)
{
  EventDefaults by = { rec.opt.interval_ns, rec.opt.period, rec.opt.jitter, 0 };
  static EventSpec spec[SPF_EVENTS_MAX];
  char errmsg[EVENT_ERRMSG_MAX];
  size_t len = 0;
  int i, n = lj_sources_parse(rec.clocks, &by, spec, errmsg);
  if (n == 0) {
    lj_livemsg_refuse(client, errmsg);
    return 0;
  }
  rec.of_vm[0] = '\0';
  for (i = 0; i < n; i++)
    if (spec[i].ops->is_of_vm)
      len += (size_t)snprintf(rec.of_vm + len, sizeof(rec.of_vm) - len, "%s%s",
			      len ? " and " : "", spec[i].name);
  return 1;
}

/* Can this thread start the profile of a VM? A VM whose thread has a seccomp filter of its own must
** start it itself: only that thread can test the filter.
*/
static int can_start(const LiveVm *vm)
{
  return lj_osthread_exists(vm->thread.tid) && !lj_livecalls_hasown(vm->thread.tid);
}

/* Start a VM's profile, or let it wait. */
static void vm_begin(RecordedVm *rv)
{
  lj_ctlslot_watch(rv->vm.g, 1);
  if (lj_sysprof_isrunning(rv->vm.g)) {
    rv->state = VM_ENDED;
    note(rv, "error", "the VM is being profiled already");
  } else if (!can_start(&rv->vm)) {
    rv->state = VM_WAITS;
  } else {
    vm_start(rv, NULL);
  }
  if (is_waiting(rv)) lj_ctlslot_asklive(rv->vm.g);
}

/* Start the profiles of all VMs. The first one that can start has all threads, so it begins last. */
static void vms_begin(const LiveVm *vms)
{
  int i, k, shared = 0;
  for (i = 0; i < rec.nvm; i++) rec.vm[i].vm = vms[i];
  for (i = 0; i < rec.nvm && !rec.all; i++)
    if (!lj_sysprof_isrunning(vms[i].g) && can_start(&vms[i])) rec.all = &rec.vm[i];
  for (i = 0; i < rec.nvm; i++)
    if (&rec.vm[i] != rec.all) vm_begin(&rec.vm[i]);
  others_set();
  if (rec.all) vm_begin(rec.all);
  for (i = 0; i < rec.nvm; i++)
    for (k = 0; k < i; k++)
      shared |= thread_of(&rec.vm[i]) && thread_of(&rec.vm[i]) == thread_of(&rec.vm[k]);
  if (shared)
    lj_livemsg_text(&rec.last, "note",
		    "a thread runs several live VMs; its samples count once for each");
}

int lj_liverec_begin(const OwnFd *client, LiveRequest *rq)
{
  static LiveVm vms[CONTROLS_MAX];
  int n;
  lj_liverec_step(); /* The last recording may have ended just now. */
  if (rec.phase != REC_NONE) {
    lj_livemsg_refuse(client, "another client records this process already; "
			      "try again when that recording has ended");
    return 0;
  }
  n = lj_ctlslot_lives(vms);
  if (n == 0) {
    lj_livemsg_refuse(client, LIVE_NOVM);
    return 0;
  }
  if (!lj_livemsg_file(client, rq) || !record_options(client, rq) || !record_events(client))
    return 0;
  rec.client = *client;
  rec.file = rq->file;
  rq->file.fd = -1;
  rec.begin_ns = mono_ns();
  rec.answer_ms = mono_ms() + ANSWER_MS;
  rec.end_ms = rec.limits.duration_ns
		 ? mono_ms() + (int64_t)(rec.limits.duration_ns / 1000000)
		 : 0;
  lj_livemsg_begin(&rec.last, "done");
  memset(rec.vm, 0, sizeof(rec.vm));
  memset(rec.others, 0, sizeof(rec.others));
  rec.all = NULL;
  rec.free_ns = 0;
  rec.nvm = n;
  vms_begin(vms);
  if (count(VM_ENDED) == n) { /* The last answer has the reasons. */
    rec.phase = REC_ENDS;
    lj_liverec_finish();
  } else {
    rec.phase = REC_BEGINS;
  }
  return 1;
}

void lj_liverec_serve(lua_State *L)
{
  RecordedVm *rv = vm_of(G(L));
  const char *why;
  if (!rv || !is_waiting(rv)) return;
  if ((why = lj_livecalls_recordproblem()) != NULL) {
    note(rv, "error", why);
    if (rv->state == VM_WAITS) rv->state = VM_ENDED;
    rv->is_late = 0;
  } else if (rv->state == VM_WAITS) {
    vm_start(rv, L);
  } else {
    vm_join(rv);
  }
}

int lj_liverec_stop(void)
{
  int n = rec.phase == REC_ENDS ? 0 : count(VM_RUNS) + count(VM_WAITS);
  rec_end();
  return n;
}

int lj_liverec_runs(void)
{
  return count(VM_RUNS);
}

int lj_liverec_isending(void)
{
  return rec.phase == REC_ENDS;
}

int lj_liverec_isbusy(void)
{
  return rec.phase != REC_NONE;
}

void lj_liverec_forget(void)
{
  rec.phase = REC_NONE;
  rec.nvm = 0;
  lj_ownfd_close(&rec.client);
  lj_ownfd_close(&rec.file);
}
