/*
** Ordinary code takes a sample, and the clock ticks during it. The ticks become one sample
** of the profiler's own work, with all of their weight. No sample is lost, and the weights
** add up to the total of the event. A tick while another thread holds the sampler is
** counted as lost. A tick without registers is lost, too: the next sample does not have its weight.
*/

#include <pthread.h>

#include "hand_ticks.h"
#include "stream_sums.h"

#define TICKS     3    /* Within the sample. */
#define SECONDS   60   /* For ticks of a clock, */
#define PERIOD_US 5000 /* with this period. */

static Sampler *sampler;
static int ticks_by_hand;       /* Of the next sample. */
static uint32_t ticks_by_clock; /* Of the next sample. */

static uint32_t noted(void)
{
  return __atomic_load_n(&sampler->event[0].nested, __ATOMIC_ACQUIRE);
}

static uint64_t samples_of(const SampleEvent *ev)
{
  return ev->e.counters[SPF_EVENT_SAMPLES];
}

/* A part of the sample. */
static void backtracer(void *(*frame)(int frame_no, void *addr))
{
  time_t deadline = time(NULL) + SECONDS;
  int i, n = ticks_by_hand;
  ticks_by_hand = 0;
  for (i = 0; i < n; i++) hand_take(sampler);
  while (noted() < ticks_by_clock && time(NULL) < deadline) {}
  frame(1, (void *)(uintptr_t)&backtracer);
}

/* Take a sample like an allocator: with the registers that a function preserves. total: of
** the event; 0: not known.
*/
static __attribute__((noinline)) void take_here(uint64_t total)
{
  const uintptr_t *frame = (const uintptr_t *)__builtin_frame_address(0);
  SampleEvent *ev = &sampler->event[0];
  SampleHead head = { .time_ns = mono_ns(), .total = total ? total + ev->base : 0 };
  WalkRegs regs;
  memset(&regs, 0, sizeof(regs));
  regs.r[WALKREG_PC] = frame[1];
  regs.r[WALKREG_SP] = (uintptr_t)(frame + 2);
  regs.r[WALKREG_BP] = frame[0];
  regs.valid = (1u << WALKREG_PC) | (1u << WALKREG_SP) | (1u << WALKREG_BP);
  regs.is_return = 1;
  ev->e.take(&ev->e, &head, &regs);
}

static int is_profiler(const FrameList *fr)
{
  return fr->len == 1 && frame_kind(fr->list[0]) == SPF_FRAME_WORK &&
	 frame_payload_lo(fr->list[0]) == SPF_WORK_PROFILER;
}

static void *hold(void *unused)
{
  (void)unused;
  CHECK(lj_sampler_hold(sampler));
  return NULL;
}

static void check_held(void)
{
  const SampleEvent *ev = &sampler->event[0];
  uint64_t lost = sampler->counters[SPF_COUNTER_LOST_NESTED], samples = samples_of(ev);
  pthread_t thread;
  REQUIRE(pthread_create(&thread, NULL, hold, NULL) == 0);
  pthread_join(thread, NULL);
  hand_take(sampler);
  CHECK_EQ(noted(), 0);
  CHECK_EQ(sampler->counters[SPF_COUNTER_LOST_NESTED], lost + 1);
  CHECK_EQ(samples_of(ev), samples);
  lj_sampler_release(sampler);
  hand_take(sampler);
  CHECK_EQ(samples_of(ev), samples + 1);
  CHECK_EQ(ev->taken, sampleevent_total(ev));
}

/* A tick whose stack has no room, then one that has. Totals of the event. */
static void check_without_room(uint64_t total)
{
  SampleEvent *ev = &sampler->event[0];
  SampleHead head = { .time_ns = mono_ns(), .total = ev->base + total };
  uint64_t lost = sampler->stream.event[0].lost, samples = samples_of(ev);
  CHECK_EQ(ev->e.take(&ev->e, &head, NULL), 0);
  CHECK_EQ(samples_of(ev), samples);
  take_here(total + 200);
  CHECK_EQ(samples_of(ev), samples + 1);
  CHECK_EQ(sampler->stream.event[0].lost, lost + 300);
  CHECK_EQ(ev->taken, total + 200);
}

/* A sample with ticks in it, and one without. */
static void check_exact(lua_State *L, int mode)
{
  static Sink sink;
  static StreamSums sums;
  struct luam_Sysprof_Options opt = session_options(&sink, mode, 64 * 1024);
  const SampleEvent *ev;
  uint64_t total;
  REQUIRE(luaM_sysprof_set_backtracer(backtracer) == PROFILE_SUCCESS);
  sampler = hand_start(L, &opt);
  ev = &sampler->event[0];
  ticks_by_hand = TICKS;
  take_here(total = sampleevent_total(ev) + 1000000);
  CHECK_EQ(samples_of(ev), 2);
  CHECK_EQ(ev->e.counters[SPF_EVENT_OVERRUNS], TICKS - 1);
  CHECK(is_profiler(&sampler->lua_frames));
  CHECK_EQ(sampler->host_frames.len, 0);
  take_here(total + 500);
  CHECK_EQ(samples_of(ev), 3);
  CHECK(!is_profiler(&sampler->lua_frames));
  CHECK_EQ(sampleevent_total(ev), total + 500);
  CHECK_EQ(ev->taken, sampleevent_total(ev));
  check_held();
  check_without_room(total + 500 + 300);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  sums_read(&sums, sink.bytes, sink.len);
  CHECK(sums.fault == NULL);
  CHECK_EQ(sums.s[0].samples[0], 6); /* One of them stands for the lost one. */
  CHECK_EQ(sums.s[0].weight[0], total + 1000);
  CHECK_EQ(sums.s[0].counter[SUMS_LOST_NESTED], 2); /* One had no room. */
  CHECK_EQ(sums.s[0].counter[SUMS_OVERRUNS(0)], TICKS - 1);
  sink_free(&sink);
}

/* Signals of a clock interrupt the sample of ordinary code. */
static void check_clock(lua_State *L)
{
  static Sink sink;
  static StreamSums sums;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH,
						    64 * 1024);
  const SampleEvent *ev;
  REQUIRE(luaM_sysprof_set_backtracer(backtracer) == PROFILE_SUCCESS);
  opt.clocks = "cpu";
  opt.interval_ns = PERIOD_US * 1000;
  REQUIRE(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
  sampler = &profile_first(lj_registry_of(G(L)))->sm;
  ev = &sampler->event[0];
  ticks_by_clock = TICKS;
  take_here(0);
  ticks_by_clock = 0;
  CHECK(samples_of(ev) >= 2);
  CHECK(ev->e.counters[SPF_EVENT_OVERRUNS] >= TICKS - 1);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  sums_read(&sums, sink.bytes, sink.len);
  CHECK(sums.fault == NULL);
  CHECK_EQ(sums.s[0].counter[SUMS_LOST_NESTED], 0);
  CHECK(sums.s[0].weight[0] <= sums.s[0].counter[SUMS_TOTAL(0)]);
  /* The first tick comes after a random part of the period, the others after half of it at least. */
  CHECK(sums.s[0].weight[0] >= (TICKS - 1) * PERIOD_US / 2);
  sink_free(&sink);
}

int main(void)
{
  lua_State *L = session_vm();
  check_exact(L, LUAM_SYSPROF_CALLGRAPH);
  check_exact(L, LUAM_SYSPROF_LEAF);
  check_clock(L);
  lua_close(L);
  return check_status();
}
