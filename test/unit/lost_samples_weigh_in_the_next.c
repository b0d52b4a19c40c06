/*
** A sample that finds the queue full is lost, and the next kept one also stands for its
** time. So the weights of the stream add up exactly to the total at the last sample.
*/

#include "hand_ticks.h"
#include "profile/session/lj_handover.h"
#include "stream_sums.h"

#define LOST 5

static StreamSums sums;
static Sampler *sampler;
static uint64_t weighed; /* Total at the last sample that was kept. */

/* A sample after some CPU time. Returns whether the stream took it. */
static int take(void)
{
  SampleEvent *ev = &sampler->event[0];
  uint64_t lost = sampler->counters[SPF_COUNTER_LOST_QUEUE];
  uint64_t carried = sampler->stream.event[0].lost;
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
    CHECK_EQ(sampler->stream.event[0].lost, carried + sampleevent_total(ev) - total);
    return 0;
  }
  CHECK_EQ(sampler->stream.event[0].lost, 0);
  weighed = sampleevent_total(ev);
  return 1;
}

static int fill_and_drain(lua_State *L)
{
  int i;
  (void)L;
  for (i = 0; take(); i++) REQUIRE(i < 100000);
  for (i = 1; i < LOST; i++) CHECK(!take());
  REQUIRE(lj_chunkqueue_claim(&sampler->queue));
  lj_chunkqueue_drain(&sampler->queue);
  lj_chunkqueue_release(&sampler->queue);
  CHECK(take());
  return 0;
}

int main(void)
{
  static Sink sink;
  lua_State *L = session_vm();
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH,
						    LUAM_SYSPROF_FLUSH_BUFFERS * 2048);
  opt.clocks = "cpu";
  opt.flush = LUAM_SYSPROF_FLUSH_VM;
  sampler = hand_start(L, &opt);
  lua_pushcfunction(L, fill_and_drain);
  REQUIRE(lua_pcall(L, 0, 0, 0) == 0);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  sums_read(&sums, sink.bytes, sink.len);
  CHECK(sums.fault == NULL);
  CHECK(sums_all_ended(&sums));
  CHECK_EQ(sums.s[0].counter[29], LOST);
  CHECK_EQ(sums.s[0].weight[0], weighed);
  printf("%llu samples of %llu us\n", (unsigned long long)sums.s[0].samples[0],
	 (unsigned long long)weighed);
  sink_free(&sink);
  lua_close(L);
  return check_status();
}
