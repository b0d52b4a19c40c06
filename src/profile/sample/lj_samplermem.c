/*
** Memory of a sampler: its layout, its buffers, its first state.
** Context: under the lock, on any thread, outside of the handler.
*/

#define lj_samplermem_c
#define LUA_CORE

#include "lj_obj.h"
#include "profile/base/lj_osmemory.h"
#include "profile/base/lj_osthread.h"
#include "profile/sample/lj_samplermem.h"

#define BUFFER_TOUCHED (16 * 1024) /* Bytes of a buffer that a start touches, at most. */

/* Other threads seldom run the VM. So their sessions have smaller buffers and batches. */
#define OTHER_BUFFER (32 * 1024 * CHUNKQUEUE_BUFFERS)
#define OTHER_BATCH  (BATCH_SIZE / 2)

#define CACHE_LINE 64

/* -- Layout ------------------------------------------------------------------ */

/* Parts of the memory, in this order. In bytes. */
typedef struct MemParts {
  size_t session, events, sources, batch, kept, buffer;
} MemParts;

static size_t round_up(size_t n, size_t to)
{
  return (n + to - 1) & ~(to - 1);
}

static MemParts parts_of(const SessionPlan *plan, size_t size)
{
  const ProfileOptions *opt = plan->opt;
  int is_first = (plan->nsession == 0), i;
  MemParts m = { round_up(size, CACHE_LINE), 0, 0, 0, 0, 0 };
  m.events = round_up((size_t)opt->nspec * sizeof(SampleEvent), CACHE_LINE);
  for (i = 0; i < opt->nspec; i++)
    m.sources += round_up(opt->spec[i].ops->size, CACHE_LINE);
  if (opt->mode == LUAM_SYSPROF_DEFAULT) return m;
  if (profileopts_haslook(opt)) m.kept = sizeof(KeptStack);
  m.batch = is_first ? BATCH_SIZE : OTHER_BATCH;
  m.buffer = is_first || opt->len < OTHER_BUFFER ? opt->len : OTHER_BUFFER;
  return m;
}

/* Give the events their places, and the batch. The memory of another thread gets its pages
** when that thread has samples.
*/
static Sampler *memory_new(const ProfileOptions *opt, const MemParts *m, int is_first,
			   uint8_t **buf, size_t *all)
{
  size_t touched = round_up(m->session + m->events + m->sources + m->batch, OSMEMORY_PAGE);
  size_t fixed = touched + round_up(m->kept, OSMEMORY_PAGE);
  char *at;
  Sampler *s;
  int i;
  *all = fixed + (*buf ? 0 : m->buffer);
  s = (Sampler *)lj_osmemory_new(*all, is_first ? touched : 0);
  if (!s) return NULL;
  at = (char *)s + m->session;
  s->event = (SampleEvent *)at;
  at += m->events;
  for (i = 0; i < opt->nspec; i++) {
    s->event[i].e.source = at;
    at += round_up(opt->spec[i].ops->size, CACHE_LINE);
  }
  s->batch.mem = (uint64_t *)at;
  s->batch.size = (uint32_t)m->batch;
  if (m->kept) s->kept = (KeptStack *)((char *)s + touched);
  if (!*buf) *buf = (uint8_t *)s + fixed;
  else lj_osmemory_touch(*buf, m->buffer < BUFFER_TOUCHED ? m->buffer : BUFFER_TOUCHED);
  return s;
}

/* -- First state ------------------------------------------------------------- */

/* The thread that starts a profile most often runs its VM. */
static void tables_more(Sampler *s, VmTables *vt)
{
  s->host.cfi.more = &vt->cfi;
  s->host.memo.lists = &vt->memo;
  s->symtab.more = &vt->symbols;
  s->stream.stacks.more = &vt->stacks;
}

static void state_init(Sampler *s, const SessionPlan *plan)
{
  const ProfileOptions *opt = plan->opt;
  s->opt = opt;
  s->gate = plan->gate;
  s->vm = plan->vm;
  s->size = plan->size;
  s->number = opt->number + plan->nsession;
  s->start_ns = plan->start_ns;
  s->origin_ns = plan->origin_ns;
  s->nevent = opt->nspec;
  s->host.pk = &s->peek;
  s->host.g = plan->gate->g;
  s->host.frames = opt->cb.backtracer || opt->mode == LUAM_SYSPROF_DEFAULT
		     ? NULL
		     : &s->host_frames;
  s->host.has_rows = (opt->walker == LUAM_SYSPROF_BACKTRACER_LIBUNWIND);
  s->host.few_vm_frames = opt->mode != LUAM_SYSPROF_CALLGRAPH;
  s->symtab.loadmap.pk = &s->peek;
  s->batch.numbers = &plan->vm->nbatch;
}

static void stream_init(Sampler *s, uint8_t *buf, size_t len)
{
  const ProfileOptions *opt = s->opt;
  uint32_t tid = (uint32_t)s->reader.tid;
  lj_batch_reset(&s->batch);
  if (opt->flush == LUAM_SYSPROF_FLUSH_HANDLER) {
    lj_stream_init(&s->stream, &s->symtab, s->counters, tid, buf, len, opt->cb.writer,
		   opt->ctx, s->number);
  } else {
    ChunkQueue *q = s->stream.queue = &s->queue;
    lj_chunkqueue_init(q, buf, len, opt->cb.writer, opt->ctx);
    lj_stream_init(&s->stream, &s->symtab, s->counters, tid, buf, q->size,
		   lj_chunkqueue_put, q, s->number);
    if (opt->flush == LUAM_SYSPROF_FLUSH_THREAD) s->stream.age_us = STREAM_THREAD_US;
    /* A smaller buffer must not repeat definitions more often. */
    if (s->number != opt->number) s->stream.stacks_max = opt->len / CHUNKQUEUE_BUFFERS;
  }
}

void lj_samplermem_thread(Sampler *s, int tid)
{
  int i;
  s->reader.tid = tid;
  for (i = 0; i < s->nevent; i++) s->event[i].e.tid = tid;
  if (tid == s->opt->thread.tid) {
    s->host.stack_lo = s->opt->thread.stack_lo;
    s->host.stack_hi = s->opt->thread.stack_hi;
  } else if (tid == lj_osthread_self()) {
    lj_osthread_stack(&s->host.stack_lo, &s->host.stack_hi);
  }
}

Sampler *lj_samplermem_new(const SessionPlan *plan, size_t size, int tid, uint8_t *buf,
			   size_t *all)
{
  MemParts m = parts_of(plan, size);
  int is_first = (plan->nsession == 0);
  Sampler *s = memory_new(plan->opt, &m, is_first, &buf, all);
  if (!s) return NULL;
  if (is_first) tables_more(s, plan->vm);
  state_init(s, plan);
  lj_samplermem_thread(s, tid);
  lj_sampler_hold(s);
  if (plan->opt->mode != LUAM_SYSPROF_DEFAULT) stream_init(s, buf, m.buffer);
  return s;
}
