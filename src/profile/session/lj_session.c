/*
** Session of a thread: memory, clocks, begin and end of the stream.
** Context: under the lock of lj_process.h, on any thread, outside of the handler.
*/

#define lj_session_c
#define LUA_CORE

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lj_obj.h"
#include "luajit.h"
#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_osmemory.h"
#include "profile/base/lj_ossignal.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_relaxed.h"
#include "profile/clock/lj_clockaction.h"
#include "profile/clock/lj_clockbudget.h"
#include "profile/clock/lj_clocksig.h"
#include "profile/session/lj_session.h"

#define SIGNALS_MAX    128
#define SIGNAL_SHARED  " (shared with a handler of the program)"
#define DUMP_WAIT_NS   100000 /* Time between two tries while another thread ticks. */
#define DUMP_TRIES     10000
#define BUFFER_TOUCHED (16 * 1024) /* Bytes of a buffer that a start touches, at most. */

/* Other threads seldom run the VM. So their sessions have smaller buffers and batches. */
#define OTHER_BUFFER (32 * 1024 * CHUNKQUEUE_BUFFERS)
#define OTHER_LESS   (BATCH_SIZE / 2)

/* -- Totals ------------------------------------------------------------------ */

/* Read the CPU time of a thread. Returns 0 if the thread has ended. */
static int thread_cpu_us(int tid, uint64_t *us)
{
  uint64_t ns = thread_ns(tid);
  if (ns) *us = ns / 1000;
  return ns != 0;
}

/* Record the counts at which the clocks begin. For a thread that began after the profile,
** all of its CPU time counts.
*/
static void totals_begin(Session *s)
{
  uint64_t cpu_us = 0;
  int i;
  thread_cpu_us(s->sm.reader.tid, &cpu_us);
  if (s->later) cpu_us = 0;
  s->sm.cpu_base = cpu_us;
  for (i = 0; i < s->sm.nevent; i++) {
    SampleEvent *ev = &s->sm.event[i];
    ev->base = ev->clock.spec.unit == SPF_UNIT_US ? cpu_us
	       : ev->is_open                      ? lj_clocksig_total(&ev->clock)
						  : 0;
  }
}

void lj_session_look(Session *s)
{
  uint64_t cpu_us;
  int i, alive = thread_cpu_us(s->sm.reader.tid, &cpu_us);
  if (alive) s->seen_cpu_us = s->sm.cpu_before + cpu_us - s->sm.cpu_base;
  for (i = 0; i < s->sm.nevent; i++) {
    SampleEvent *ev = &s->sm.event[i];
    if (!ev->is_open && !s->paused) continue;
    if (ev->clock.spec.unit == SPF_UNIT_US) {
      if (alive) ev->seen = ev->before + cpu_us - ev->base;
    } else if (ev->is_open) {
      ev->seen = ev->before + lj_clocksig_total(&ev->clock) - ev->base;
    }
  }
}

/* Raise the totals to the last poll, after the last tick. */
static void totals_end(Session *s)
{
  int i;
  lj_sample_account(&s->sm);
  if (s->seen_cpu_us > s->sm.cpu_us) s->sm.cpu_us = s->seen_cpu_us;
  for (i = 0; i < s->sm.nevent; i++) {
    SampleEvent *ev = &s->sm.event[i];
    if (ev->seen > ev->total) ev->total = ev->seen;
    s->sm.counters[SPF_COUNTER_TOTAL + i] = ev->total;
  }
  s->sm.counters[SPF_COUNTER_WALL_US] = (mono_ns() - s->sm.start_ns) / 1000;
  lj_sample_nested(&s->sm);
}

static void count_spent(SessionTotals *t, uint64_t ns)
{
  t->counters[SPF_COUNTER_HANDLER_NS] += ns;
  if (ns > t->counters[SPF_COUNTER_HANDLER_MAX_NS])
    t->counters[SPF_COUNTER_HANDLER_MAX_NS] = ns;
  hist_add(&t->handler, hist_class(ns), 1);
}

/* Say why the first clock that does not reach its rate does not. */
static void limit_text(const Session *s, char *text)
{
  int i;
  text[0] = '\0';
  for (i = 0; i < s->sm.nevent && !text[0]; i++)
    lj_clockbudget_limit(&s->sm.event[i].clock, text);
}

/* The session's thread may be counting at the same time. */
void lj_session_count(const Session *s, SessionTotals *t)
{
  uint64_t cpu_us = relaxed_get(&s->sm.cpu_us), spent = relaxed_get(&s->sm.spent_ns);
  uint32_t i, nspent;
  for (i = 0; i < SPF_COUNTER__MAX; i++) {
    uint64_t n = relaxed_get(&s->sm.counters[i]);
    if (i != SPF_COUNTER_HANDLER_MAX_NS && i != SPF_COUNTER_WALL_US) t->counters[i] += n;
    else if (n > t->counters[i]) t->counters[i] = n;
  }
  for (i = 0; i < HIST_CLASSES; i++) {
    uint32_t n = relaxed_get(&s->sm.handler.n[i]);
    if (n) hist_add(&t->handler, i, n);
  }
  /* Times that the handler has only listed. */
  nspent = relaxed_get(&s->sm.nspent);
  for (i = 0; i < nspent; i++) count_spent(t, relaxed_get(&s->sm.spent[i]));
  if (spent) count_spent(t, spent);
  t->counters[SPF_COUNTER_HANDLER_P99_NS] = hist_p99(&t->handler);
  t->counters[SPF_COUNTER_LOST_WRITER] += relaxed_get(&s->sm.queue.lost);
  for (i = 0; i < (uint32_t)s->sm.nevent; i++) {
    t->used[i] = s->sm.event[i].clock.spec;
    t->signo[i] = s->sm.event[i].clock.signo;
    t->shared |= s->sm.event[i].clock.shared;
  }
  limit_text(s, t->limit);
  t->ticks += relaxed_get(&s->sm.event[0].samples);
  t->cpu_us += cpu_us > s->seen_cpu_us ? cpu_us : s->seen_cpu_us;
}

/* -- Clocks ------------------------------------------------------------------ */

static void clocks_close(Session *s)
{
  int i;
  for (i = s->sm.nevent; i-- > 0;)
    if (s->sm.event[i].is_open) {
      lj_clock_close(&s->sm.event[i].clock);
      s->sm.event[i].is_open = 0;
    }
}

static ClockStatus clocks_open(Session *s, char *errmsg)
{
  int i;
  for (i = 0; i < s->sm.nevent; i++) {
    SampleEvent *ev = &s->sm.event[i];
    ClockStatus status;
    ev->clock.sample = lj_sample_tick;
    ev->clock.owner = &s->sm;
    ev->clock.event = i;
    ev->clock.signo = s->sm.opt->signo;
    status = lj_clock_open(&ev->clock, &s->sm.opt->spec[i], s->sm.reader.tid, errmsg);
    if (status != CLOCK_OK) {
      int err = errno;
      clocks_close(s);
      errno = err;
      return status;
    }
    ev->is_open = 1;
  }
  return CLOCK_OK;
}

/* Start all clocks. Returns 0 or an errno. */
static int clocks_arm(Session *s, char *errmsg)
{
  int i;
  memset(&s->sm.throttle, 0, sizeof(s->sm.throttle));
  for (i = 0; i < s->sm.nevent; i++)
    if (lj_clock_arm(&s->sm.event[i].clock) != CLOCK_OK) {
      int err = errno ? errno : EINVAL;
      snprintf(errmsg, CLOCK_ERRMSG_MAX, "the clock %s did not start: %s",
	       s->sm.event[i].clock.spec.name, strerror(err));
      clocks_close(s);
      return err;
    }
  return 0;
}

/* -- Blocked signals --------------------------------------------------------- */

static int signals_areblocked(const Session *s)
{
  int i;
  for (i = 0; i < s->sm.nevent; i++)
    if (lj_clockaction_isblocked(s->sm.reader.tid, s->sm.event[i].clock.signo)) return 1;
  return 0;
}

int lj_session_isblocked(Session *s)
{
  uint64_t samples = relaxed_get(&s->sm.event[0].samples);
  int has_run = s->seen_cpu_us != s->asked_cpu_us;
  int has_ticked = samples != s->asked_samples;
  s->asked_cpu_us = s->seen_cpu_us;
  s->asked_samples = samples;
  return has_run && !has_ticked ? signals_areblocked(s) : s->paused;
}

void lj_session_like(Session *s, const Session *other)
{
  int i;
  for (i = 0; i < s->sm.nevent; i++) {
    s->sm.event[i].clock.spec = other->sm.event[i].clock.spec;
    s->sm.event[i].clock.signo = other->sm.event[i].clock.signo;
  }
  s->paused = signals_areblocked(s);
}

/* -- Memory ------------------------------------------------------------------ */

/* Allocate a session with its buffer, which may be the caller's. The memory of another
** thread gets its pages when that thread has samples.
*/
static Session *memory_new(int is_first, size_t len, uint8_t **buf)
{
  size_t less = is_first ? 0 : OTHER_LESS;
  size_t size = (sizeof(Session) - less + OSMEMORY_PAGE - 1) & ~(OSMEMORY_PAGE - 1);
  Session *s = (Session *)lj_osmemory_new(size + (*buf ? 0 : len), is_first ? size : 0);
  if (!s) return NULL;
  s->size = size + (*buf ? 0 : len);
  s->sm.batch.less = (uint32_t)less;
  if (!*buf) *buf = (uint8_t *)s + size;
  else lj_osmemory_touch(*buf, len < BUFFER_TOUCHED ? len : BUFFER_TOUCHED);
  return s;
}

/* The thread that starts a profile most often runs its VM. */
static void memory_more(Session *s, VmTables *vt)
{
  s->sm.host.cfi.more = &vt->cfi;
  s->sm.host.memo.lists = &vt->memo;
  s->sm.symtab.more = &vt->symbols;
  s->sm.stream.stacks.more = &vt->stacks;
}

/* -- Sessions ---------------------------------------------------------------- */

Session *lj_session_new(const SessionPlan *plan, int tid, uint8_t *buf, int later)
{
  const ProfileOptions *opt = plan->opt;
  int is_first = (plan->nsession == 0);
  size_t len = opt->mode == LUAM_SYSPROF_DEFAULT     ? 0
	       : is_first || opt->len < OTHER_BUFFER ? opt->len
						     : OTHER_BUFFER;
  Session *s = memory_new(is_first, len, &buf);
  if (!s) return NULL;
  if (is_first) memory_more(s, plan->vm);
  s->sm.opt = opt;
  s->sm.gate = plan->gate;
  s->sm.vm = plan->vm;
  s->sm.start_ns = plan->start_ns;
  s->sm.origin_ns = plan->origin_ns;
  s->sm.reader.tid = tid;
  s->sm.nevent = opt->nspec;
  s->pid = plan->pid;
  s->number = opt->number + plan->nsession;
  s->later = later;
  s->sm.host.pk = &s->sm.peek;
  s->sm.host.g = plan->gate->g;
  s->sm.host.frames = opt->cb.backtracer || opt->mode == LUAM_SYSPROF_DEFAULT
			? NULL
			: &s->sm.host_frames;
  s->sm.host.few_vm_frames = opt->mode != LUAM_SYSPROF_CALLGRAPH;
  s->sm.symtab.loadmap.pk = &s->sm.peek;
  s->sm.batch.numbers = &plan->vm->nbatch;
  if (opt->mode == LUAM_SYSPROF_DEFAULT) return s;
  lj_batch_reset(&s->sm.batch);
  if (opt->flush == LUAM_SYSPROF_FLUSH_HANDLER) {
    lj_stream_init(&s->sm.stream, &s->sm.symtab, s->sm.counters, (uint32_t)tid, buf, len,
		   opt->cb.writer, opt->ctx, s->number);
  } else {
    ChunkQueue *q = s->sm.stream.queue = &s->sm.queue;
    lj_chunkqueue_init(q, buf, len, opt->cb.writer, opt->ctx);
    lj_stream_init(&s->sm.stream, &s->sm.symtab, s->sm.counters, (uint32_t)tid, buf,
		   q->size, lj_chunkqueue_put, q, s->number);
    /* A smaller buffer must not repeat definitions more often. */
    if (!is_first) s->sm.stream.stacks_max = opt->len / CHUNKQUEUE_BUFFERS;
  }
  return s;
}

void lj_session_forget(Session *s)
{
  lj_osmemory_free(s, s->size);
}

void lj_session_free(Session *s)
{
  if (sampler_isqueued(&s->sm)) lj_chunkqueue_end(&s->sm.queue);
  lj_session_forget(s);
}

ClockStatus lj_session_open(Session *s, char *errmsg)
{
  return clocks_open(s, errmsg);
}

static void meta_number(Session *s, const char *key, unsigned long long n)
{
  char num[40];
  snprintf(num, sizeof(num), "%llu", n);
  lj_stream_meta(&s->sm.stream, key, num);
}

static void meta_limit(Session *s)
{
  char text[CLOCKBUDGET_TEXT_MAX];
  limit_text(s, text);
  if (text[0]) lj_stream_meta(&s->sm.stream, "limit", text);
}

static void meta_signal(Session *s)
{
  char text[SIGNALS_MAX];
  int signo[SPF_EVENTS_MAX], shared = 0, i;
  for (i = 0; i < s->sm.nevent; i++) {
    signo[i] = s->sm.event[i].clock.signo;
    shared |= s->sm.event[i].clock.shared;
  }
  lj_ossignal_names(signo, i, text, SIGNALS_MAX - sizeof(SIGNAL_SHARED));
  if (shared) strcat(text, SIGNAL_SHARED);
  lj_stream_meta(&s->sm.stream, "signal", text);
}

/* Write the metadata of the profile. Returns 0 or an errno. */
static int describe(Session *s)
{
  static const char *const modes[] = { "default", "leaf", "callgraph" };
  const ProfileOptions *opt = s->sm.opt;
  char clocks[SPF_EVENTS_MAX * CLOCK_NAME_MAX], name[OSTHREAD_NAME_MAX];
  size_t n = 0;
  int i;
  clocks[0] = '\0';
  for (i = 0; i < opt->nspec && n < sizeof(clocks); i++)
    n += (size_t)snprintf(clocks + n, sizeof(clocks) - n, "%s%s", i ? "," : "",
			  opt->spec[i].name);
  lj_stream_meta(&s->sm.stream, "clock", clocks);
  meta_number(s, "interval_ns", opt->interval_ns);
  meta_signal(s);
  meta_limit(s);
  lj_stream_meta(&s->sm.stream, "mode", modes[opt->mode]);
  meta_number(s, "pid", (unsigned long long)s->pid);
  meta_number(s, "start_time", (unsigned long long)time(NULL));
  lj_stream_meta(&s->sm.stream, "base", LUAJIT_VERSION);
  for (i = 0; i < s->sm.nevent; i++) {
    const ClockSpec *spec = &s->sm.event[i].clock.spec;
    lj_stream_event(&s->sm.stream, i, spec->name, spec->unit, spec->period);
  }
  lj_osthread_name(s->sm.reader.tid, name);
  if (name[0]) lj_stream_thread(&s->sm.stream, name);
  return lj_stream_begin(&s->sm.stream);
}

int lj_session_begin(Session *s, char *errmsg)
{
  if (s->sm.opt->mode != LUAM_SYSPROF_DEFAULT) {
    int err = describe(s);
    if (err) return err;
    if (s->sm.opt->flush == LUAM_SYSPROF_FLUSH_THREAD)
      s->sm.stream.age_us = STREAM_THREAD_US;
  }
  if (s->sm.reader.tid == lj_osthread_self())
    lj_osthread_stack(&s->sm.host.stack_lo, &s->sm.host.stack_hi);
  s->seen = 1;
  lj_safeload_reset(&s->sm.peek);
  totals_begin(s);
  return s->paused ? 0 : clocks_arm(s, errmsg);
}

void lj_session_halt(Session *s)
{
  lj_session_look(s);
  clocks_close(s);
  totals_end(s);
}

int lj_session_end(Session *s, FuncTab *named)
{
  if (s->sm.opt->mode == LUAM_SYSPROF_DEFAULT) return 0;
  lj_sample_encode(&s->sm);
  s->sm.symtab.named = named;
  return lj_stream_end(&s->sm.stream);
}

/* Waits for a tick of another thread. A tick never ends if the program jumped out of it, so
** the wait is limited.
*/
int lj_session_dump(Session *s, FuncTab *named)
{
  static const struct timespec wait = { 0, DUMP_WAIT_NS };
  int tries = 0, err;
  if (s->sm.opt->mode == LUAM_SYSPROF_DEFAULT) return 0;
  while (!lj_sample_hold(&s->sm)) {
    if (++tries == DUMP_TRIES) return EBUSY;
    nanosleep(&wait, NULL);
  }
  lj_sample_account(&s->sm);
  lj_sample_encode(&s->sm);
  s->sm.symtab.named = named;
  err = lj_stream_dump(&s->sm.stream);
  s->sm.symtab.named = NULL;
  lj_sample_release(&s->sm);
  return err;
}

void lj_session_pause(Session *s)
{
  int i;
  lj_session_halt(s);
  s->paused = 1;
  s->later = 0;
  s->sm.cpu_before = s->sm.cpu_us;
  for (i = 0; i < s->sm.nevent; i++) s->sm.event[i].before = s->sm.event[i].total;
  totals_begin(s);
}

/* The time of the pause counts: the next sample carries its weight. */
int lj_session_resume(Session *s, char *errmsg)
{
  int err;
  lj_session_pause(s);
  if (clocks_open(s, errmsg) != CLOCK_OK) return errno ? errno : EINVAL;
  totals_begin(s);
  err = clocks_arm(s, errmsg);
  s->paused = (err != 0);
  return err;
}

#define SILENT_NS 50000000 /* Since the last tick of a clock that is looked at. */

/* The handler sets begin_ns. */
void lj_session_revive(Session *s)
{
  uint64_t now = mono_ns();
  int i;
  for (i = 0; i < s->sm.nevent; i++) {
    SampleEvent *ev = &s->sm.event[i];
    if (ev->is_open && now - relaxed_get(&ev->clock.begin_ns) > SILENT_NS)
      lj_clock_revive(&ev->clock);
  }
}

/* Does nothing while a tick runs on the thread: that tick hands over the chunk. */
void lj_session_handover(Session *s)
{
  uint64_t time_us = (mono_ns() - s->sm.origin_ns) / 1000;
  if (!sampler_isqueued(&s->sm) || (!lj_sample_isoverdue(&s->sm, time_us) &&
				    !lj_stream_isoverdue(&s->sm.stream, time_us)))
    return;
  if (!lj_sample_hold(&s->sm)) return;
  if (lj_sample_isoverdue(&s->sm, time_us)) lj_sample_encode(&s->sm);
  if (lj_stream_isoverdue(&s->sm.stream, time_us)) lj_stream_handover(&s->sm.stream);
  lj_sample_release(&s->sm);
}

int lj_session_move(Session *s, char *errmsg)
{
  if (s->sm.reader.tid == lj_osthread_self()) return 0;
  lj_session_pause(s);
  s->sm.reader.tid = lj_osthread_self();
  totals_begin(s);
  lj_osthread_stack(&s->sm.host.stack_lo, &s->sm.host.stack_hi);
  if (s->sm.opt->mode != LUAM_SYSPROF_DEFAULT) {
    lj_sample_encode(&s->sm);
    lj_stream_move(&s->sm.stream, (uint32_t)s->sm.reader.tid);
  }
  return lj_session_resume(s, errmsg);
}
