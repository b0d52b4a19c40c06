/*
** A writer that waits in the handler. The wall clock goes on during the wait, so a rest
** of the same length follows. The CPU clock stands still, so no rest follows.
*/

#include "hand_ticks.h"

#define WAIT_NS 50000000

static Sampler *sampler;
static int waits;

/* Once the profile has begun. The time is the scene: what a slow disk would take. */
static size_t waiting_writer(const void **data, size_t len, void *ctx)
{
  static const struct timespec wait = { 0, WAIT_NS };
  size_t taken = sink_writer(data, len, ctx);
  if (waits) REQUIRE(nanosleep(&wait, NULL) == 0);
  return taken;
}

static void run(lua_State *L, const char *which, int is_wall)
{
  static Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 2048);
  ClockSource *clock;
  uint64_t end_ns;
  int writes, i;
  opt.clocks = which;
  opt.flush = LUAM_SYSPROF_FLUSH_HANDLER;
  CHECK_EQ(luaM_sysprof_set_writer(waiting_writer), PROFILE_SUCCESS);
  sampler = hand_start(L, &opt);
  clock = clocksource_of(&sampler->event[0].e);
  CHECK_EQ(clock->clock.spec.kind == CLOCK_WALL_SIGNAL, is_wall);
  clock->clock.spec.period = WAIT_NS; /* An interval of as long. */
  writes = sink.writes;
  waits = 1;
  for (i = 0; sink.writes == writes; i++) {
    REQUIRE(i < 100000);
    lj_throttle_rest_ns = 0;
    hand_take(sampler);
  }
  waits = 0;
  end_ns = clock->clock.begin_ns + WAIT_NS;
  if (is_wall) CHECK(lj_throttle_rest_ns >= end_ns + WAIT_NS);
  else CHECK_EQ(lj_throttle_rest_ns, 0);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  sink_free(&sink);
}

int main(void)
{
  lua_State *L = session_vm();
  run(L, "wall-signal", 1);
  run(L, "cpu", 0);
  lua_close(L);
  return check_status();
}
