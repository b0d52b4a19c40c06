/*
** Session of a thread: memory, events, begin and end of the stream.
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
#include "profile/base/lj_osmemory.h"
#include "profile/base/lj_ossignal.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_relaxed.h"
#include "profile/session/lj_marks.h"
#include "profile/session/lj_sample.h"
#include "profile/session/lj_session.h"
#include "profile/session/lj_totals.h"

#define SIGNALS_MAX    128
#define SIGNAL_SHARED  " (shared with a handler of the program)"
#define BUFFER_TOUCHED (16 * 1024) /* Bytes of a buffer that a start touches, at most. */

/* Other threads seldom run the VM. So their sessions have smaller buffers and batches. */
#define OTHER_BUFFER (32 * 1024 * CHUNKQUEUE_BUFFERS)
#define OTHER_BATCH  (BATCH_SIZE / 2)

#define CACHE_LINE 64

/* -- Events ------------------------------------------------------------------ */

/* of_vm: also those of the VM, which a paused session keeps. */
static void events_stop(Session *s, int of_vm)
{
  int i;
  for (i = s->sm.nevent; i-- > 0;) {
    Event *e = &s->sm.event[i].e;
    if (!e->is_open || (e->spec.ops->is_of_vm && !of_vm)) continue;
    e->spec.ops->stop(e);
    e->is_open = e->is_armed = 0;
  }
}

EventStatus lj_session_open(Session *s, char *errmsg)
{
  int i;
  for (i = 0; i < s->sm.nevent; i++) {
    Event *e = &s->sm.event[i].e;
    EventStatus status;
    e->tid = s->sm.reader.tid;
    if (e->is_open || (e->spec.ops->is_of_vm && !s->is_first)) continue;
    e->spec = s->sm.opt->spec[i];
    e->signo = s->sm.opt->signo;
    status = e->spec.ops->open(e, errmsg);
    if (status != EVENT_OK) {
      int err = errno;
      events_stop(s, !s->paused);
      errno = err;
      return status;
    }
    e->is_open = 1;
  }
  return EVENT_OK;
}

/* Returns 0 or an errno. */
static int events_arm(Session *s, char *errmsg)
{
  int i;
  for (i = 0; i < s->sm.nevent; i++) {
    Event *e = &s->sm.event[i].e;
    int err;
    if (!e->is_open || e->is_armed) continue;
    err = e->spec.ops->arm(e);
    e->is_armed = (err == 0);
    if (err == 0) continue;
    snprintf(errmsg, EVENT_ERRMSG_MAX, "the clock %s did not start: %s", e->spec.name,
	     strerror(err));
    events_stop(s, !s->paused);
    return err;
  }
  return 0;
}

void lj_session_revive(Session *s)
{
  int i;
  for (i = 0; i < s->sm.nevent; i++) {
    Event *e = &s->sm.event[i].e;
    if (e->is_open && e->spec.ops->revive) e->spec.ops->revive(e);
  }
}

int lj_session_isreplaced(const Session *s)
{
  int i, is_replaced = 0;
  for (i = 0; i < s->sm.nevent; i++) {
    const Event *e = &s->sm.event[i].e;
    if (e->is_open && e->spec.ops->replaced) is_replaced |= e->spec.ops->replaced(e);
  }
  return is_replaced;
}

/* -- Blocked signals --------------------------------------------------------- */

static int events_areblocked(const Session *s)
{
  int i;
  for (i = 0; i < s->sm.nevent; i++) {
    const Event *e = &s->sm.event[i].e;
    if (e->spec.ops->blocked && e->spec.ops->blocked(e)) return 1;
  }
  return 0;
}

/* Samples of the first event of threads. */
static uint64_t thread_samples(const Session *s)
{
  int i = 0;
  while (i < s->sm.nevent && s->sm.event[i].e.spec.ops->is_of_vm) i++;
  return i < s->sm.nevent ? relaxed_get(&s->sm.event[i].e.counters[SPF_EVENT_SAMPLES]) : 0;
}

int lj_session_isblocked(Session *s)
{
  uint64_t samples = thread_samples(s);
  int has_run = s->sm.cpu_seen != s->asked_cpu_us;
  int has_ticked = samples != s->asked_samples;
  s->asked_cpu_us = s->sm.cpu_seen;
  s->asked_samples = samples;
  return has_run && !has_ticked ? events_areblocked(s) : s->paused;
}

void lj_session_like(Session *s, const Session *other)
{
  int i;
  for (i = 0; i < s->sm.nevent; i++) {
    s->sm.event[i].e.spec = other->sm.event[i].e.spec;
    s->sm.event[i].e.signo = other->sm.event[i].e.signo;
  }
  s->paused = events_areblocked(s);
}

/* -- Memory ------------------------------------------------------------------ */

static size_t round_up(size_t n, size_t to)
{
  return (n + to - 1) & ~(to - 1);
}

/* Allocate a session with the memory of its events, their sources, its batch, and its buffer, which may be
** the caller's. The memory of another thread gets its pages when that thread has samples.
*/
static Session *memory_new(const ProfileOptions *opt, int is_first, size_t len,
			   uint8_t **buf)
{
  size_t batch = opt->mode == LUAM_SYSPROF_DEFAULT ? 0
		 : is_first                        ? BATCH_SIZE
						   : OTHER_BATCH;
  size_t at = round_up(sizeof(Session), CACHE_LINE);
  size_t events = round_up((size_t)opt->nspec * sizeof(SampleEvent), CACHE_LINE);
  size_t size = at + events + batch;
  Session *s;
  int i;
  for (i = 0; i < opt->nspec; i++) size += round_up(opt->spec[i].ops->size, CACHE_LINE);
  size = round_up(size, OSMEMORY_PAGE);
  s = (Session *)lj_osmemory_new(size + (*buf ? 0 : len), is_first ? size : 0);
  if (!s) return NULL;
  s->sm.event = (SampleEvent *)((char *)s + at);
  at += events;
  for (i = 0; i < opt->nspec; i++) {
    s->sm.event[i].e.source = (char *)s + at;
    at += round_up(opt->spec[i].ops->size, CACHE_LINE);
  }
  s->sm.batch.mem = (uint64_t *)((char *)s + at);
  s->sm.batch.size = (uint32_t)batch;
  s->size = size + (*buf ? 0 : len);
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

void lj_session_forget(Session *s)
{
  lj_osmemory_free(s, s->size);
}

void lj_session_free(Session *s)
{
  if (sampler_isqueued(&s->sm)) lj_chunkqueue_end(&s->sm.queue);
  lj_session_forget(s);
}

/* -- New --------------------------------------------------------------------- */

static void sampler_init(Sampler *sm, const SessionPlan *plan, int tid)
{
  const ProfileOptions *opt = plan->opt;
  int i;
  sm->opt = opt;
  sm->gate = plan->gate;
  sm->vm = plan->vm;
  sm->start_ns = plan->start_ns;
  sm->origin_ns = plan->origin_ns;
  sm->reader.tid = tid;
  sm->nevent = opt->nspec;
  for (i = 0; i < opt->nspec; i++) {
    SampleEvent *ev = &sm->event[i];
    ev->sampler = sm;
    ev->e.spec = opt->spec[i];
    ev->e.index = i;
    ev->e.tid = tid;
    ev->e.door = &plan->gate->door;
    ev->e.take = lj_sample_take;
    ev->e.mark = lj_marks_mark;
    ev->e.ended = lj_marks_ended;
  }
  sm->host.pk = &sm->peek;
  sm->host.g = plan->gate->g;
  sm->host.frames = opt->cb.backtracer || opt->mode == LUAM_SYSPROF_DEFAULT
		      ? NULL
		      : &sm->host_frames;
  sm->host.few_vm_frames = opt->mode != LUAM_SYSPROF_CALLGRAPH;
  sm->symtab.loadmap.pk = &sm->peek;
  sm->batch.numbers = &plan->vm->nbatch;
  lj_sampler_hold(sm);
}

static void stream_init(Session *s, const SessionPlan *plan, uint8_t *buf, size_t len)
{
  const ProfileOptions *opt = plan->opt;
  Stream *stream = &s->sm.stream;
  uint32_t tid = (uint32_t)s->sm.reader.tid;
  lj_batch_reset(&s->sm.batch);
  if (opt->flush == LUAM_SYSPROF_FLUSH_HANDLER) {
    lj_stream_init(stream, &s->sm.symtab, s->sm.counters, tid, buf, len, opt->cb.writer,
		   opt->ctx, s->sm.number);
  } else {
    ChunkQueue *q = stream->queue = &s->sm.queue;
    lj_chunkqueue_init(q, buf, len, opt->cb.writer, opt->ctx);
    lj_stream_init(stream, &s->sm.symtab, s->sm.counters, tid, buf, q->size,
		   lj_chunkqueue_put, q, s->sm.number);
    /* A smaller buffer must not repeat definitions more often. */
    if (plan->nsession > 0) stream->stacks_max = opt->len / CHUNKQUEUE_BUFFERS;
  }
}

Session *lj_session_new(const SessionPlan *plan, int tid, uint8_t *buf, int later)
{
  const ProfileOptions *opt = plan->opt;
  int is_first = (plan->nsession == 0);
  size_t len = opt->mode == LUAM_SYSPROF_DEFAULT     ? 0
	       : is_first || opt->len < OTHER_BUFFER ? opt->len
						     : OTHER_BUFFER;
  Session *s = memory_new(opt, is_first, len, &buf);
  if (!s) return NULL;
  if (is_first) memory_more(s, plan->vm);
  s->pid = plan->pid;
  s->is_first = is_first;
  s->sm.number = opt->number + plan->nsession;
  s->later = later;
  sampler_init(&s->sm, plan, tid);
  if (opt->mode != LUAM_SYSPROF_DEFAULT) stream_init(s, plan, buf, len);
  return s;
}

/* -- Begin ------------------------------------------------------------------- */

static void meta_number(Session *s, const char *key, unsigned long long n)
{
  char num[40];
  snprintf(num, sizeof(num), "%llu", n);
  lj_stream_meta(&s->sm.stream, key, num);
}

static void meta_limit(Session *s)
{
  char text[EVENT_TEXT_MAX];
  lj_totals_limit(&s->sm, text);
  if (text[0]) lj_stream_meta(&s->sm.stream, "limit", text);
}

static void meta_signal(Session *s)
{
  char text[SIGNALS_MAX];
  int signo[SPF_EVENTS_MAX], shared = 0, i;
  for (i = 0; i < s->sm.nevent; i++) {
    signo[i] = s->sm.event[i].e.signo;
    shared |= s->sm.event[i].e.shared;
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
  char clocks[SPF_EVENTS_MAX * EVENT_NAME_MAX], name[OSTHREAD_NAME_MAX];
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
  for (i = 0; i < s->sm.nevent; i++)
    lj_stream_event(&s->sm.stream, i, &s->sm.event[i].e.spec, s->sm.event[i].e.counters);
  lj_osthread_name(s->sm.reader.tid, name);
  if (name[0]) lj_stream_thread(&s->sm.stream, name);
  return lj_stream_begin(&s->sm.stream);
}

int lj_session_begin(Session *s, char *errmsg)
{
  int err = 0;
  if (s->sm.opt->mode != LUAM_SYSPROF_DEFAULT) {
    err = describe(s);
    if (s->sm.opt->flush == LUAM_SYSPROF_FLUSH_THREAD)
      s->sm.stream.age_us = STREAM_THREAD_US;
  }
  if (s->sm.reader.tid == lj_osthread_self())
    lj_osthread_stack(&s->sm.host.stack_lo, &s->sm.host.stack_hi);
  s->seen = 1;
  lj_safeload_reset(&s->sm.peek);
  lj_totals_begin(&s->sm, s->later);
  lj_sampler_release(&s->sm); /* Also for the end that follows a failure. */
  return err || s->paused ? err : events_arm(s, errmsg);
}

/* -- End --------------------------------------------------------------------- */

void lj_session_stop(Session *s)
{
  lj_totals_look(&s->sm);
  events_stop(s, 1);
}

void lj_session_settle(Session *s)
{
  lj_sampler_seize(&s->sm);
  lj_totals_settle(&s->sm);
  lj_sample_nested(&s->sm);
}

int lj_session_end(Session *s, FuncTab *named)
{
  if (s->sm.opt->mode == LUAM_SYSPROF_DEFAULT) return 0;
  lj_sampler_encode(&s->sm);
  s->sm.symtab.named = named;
  return lj_stream_end(&s->sm.stream);
}

int lj_session_dump(Session *s, FuncTab *named)
{
  int err;
  if (s->sm.opt->mode == LUAM_SYSPROF_DEFAULT) return 0;
  lj_sampler_encode(&s->sm);
  s->sm.symtab.named = named;
  err = lj_stream_dump(&s->sm.stream);
  s->sm.symtab.named = NULL;
  return err;
}

/* -- Pause and move ---------------------------------------------------------- */

void lj_session_pause(Session *s)
{
  lj_totals_look(&s->sm);
  events_stop(s, 0);
  lj_session_settle(s);
  s->paused = 1;
  s->later = 0;
  lj_totals_keep(&s->sm);
  lj_sampler_release(&s->sm);
}

/* The time of the pause counts: the next sample carries its weight. */
int lj_session_resume(Session *s, char *errmsg)
{
  int err;
  lj_session_pause(s);
  if (lj_session_open(s, errmsg) != EVENT_OK) return errno ? errno : EINVAL;
  lj_totals_begin(&s->sm, 0);
  err = events_arm(s, errmsg);
  s->paused = (err != 0);
  return err;
}

int lj_session_move(Session *s, char *errmsg)
{
  int i;
  if (s->sm.reader.tid == lj_osthread_self()) return 0;
  lj_session_pause(s);
  lj_sampler_seize(&s->sm);
  s->sm.reader.tid = lj_osthread_self();
  for (i = 0; i < s->sm.nevent; i++) s->sm.event[i].e.tid = s->sm.reader.tid;
  lj_totals_begin(&s->sm, 0);
  lj_osthread_stack(&s->sm.host.stack_lo, &s->sm.host.stack_hi);
  if (s->sm.opt->mode != LUAM_SYSPROF_DEFAULT) {
    lj_sampler_encode(&s->sm);
    lj_stream_move(&s->sm.stream, (uint32_t)s->sm.reader.tid);
  }
  lj_sampler_release(&s->sm);
  return lj_session_resume(s, errmsg);
}
