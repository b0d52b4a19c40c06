/*
** A sample that finds the queue full is lost. A sample without a stack stands for the lost ones, before
** the next kept sample or at the end. So the weights add up exactly to the total, and each kept sample
** has its own.
*/

#include "hand_ticks.h"
#include "profile/sample/lj_handover.h"
#include "stream_sums.h"

#define LOST 5

static StreamSums sums;
static Sampler *sampler;
static uint64_t rows; /* Samples for lost ones. */

/* A sample after some CPU time. Returns whether the stream took it. */
static int take(void)
{
  SampleEvent *ev = &sampler->event[0];
  uint64_t lost = sampler->counters[SPF_COUNTER_LOST_QUEUE];
  uint64_t before = sampler->stream.event[0].lost;
  uint64_t total = sampleevent_total(ev);
  static uint64_t thread_us;
  while (clock_ns(CLOCK_THREAD_CPUTIME_ID) / 1000 < thread_us + 2)
    ;
  lj_throttle_rest_ns = 0;
  hand_take(sampler);
  thread_us = clocksource_of(&ev->e)->clock.last / 1000;
  lj_handover_encode(sampler);
  CHECK(sampleevent_total(ev) > total);
  CHECK_EQ(ev->taken, sampleevent_total(ev));
  if (sampler->counters[SPF_COUNTER_LOST_QUEUE] != lost) {
    CHECK_EQ(sampler->stream.event[0].lost, before + sampleevent_total(ev) - total);
    return 0;
  }
  CHECK_EQ(sampler->stream.event[0].lost, 0);
  rows += before != 0;
  return 1;
}

static void fill(void)
{
  int i;
  for (i = 0; take(); i++) REQUIRE(i < 100000);
  for (i = 1; i < LOST; i++) CHECK(!take());
}

static int fill_twice(lua_State *L)
{
  uint64_t samples;
  (void)L;
  fill();
  REQUIRE(lj_chunkqueue_claim(&sampler->queue));
  lj_chunkqueue_drain(&sampler->queue);
  lj_chunkqueue_release(&sampler->queue);
  samples = sampler->event[0].e.counters[SPF_EVENT_SAMPLES];
  CHECK(take());
  CHECK_EQ(sampler->event[0].e.counters[SPF_EVENT_SAMPLES], samples + 2);
  fill(); /* The end tells these. */
  rows++;
  return 0;
}

int main(void)
{
  static Sink sink;
  uint64_t total;
  lua_State *L = session_vm();
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH,
						    LUAM_SYSPROF_FLUSH_BUFFERS * 2048);
  opt.clocks = "cpu";
  opt.flush = LUAM_SYSPROF_FLUSH_VM;
  sampler = hand_start(L, &opt);
  lua_pushcfunction(L, fill_twice);
  REQUIRE(lua_pcall(L, 0, 0, 0) == 0);
  total = sampleevent_total(&sampler->event[0]);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  sums_read(&sums, sink.bytes, sink.len);
  CHECK(sums.fault == NULL);
  CHECK(sums_all_ended(&sums));
  CHECK_EQ(rows, 2);
  CHECK_EQ(sums.s[0].counter[SPF_COUNTER_LOST_QUEUE], 2 * LOST);
  CHECK_EQ(sums.s[0].weight[0], total);
  printf("%llu samples of %llu us\n", (unsigned long long)sums.s[0].samples[0],
	 (unsigned long long)total);
  sink_free(&sink);
  lua_close(L);
  return check_status();
}
