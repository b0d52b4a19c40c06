/* Another thread holds the session while a coroutine goes on. Each wait counts once: it is lost, or it
** stands in a sum that is taken later. The report does not blame the limit of 2 %.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "hand_ticks.h"
#include "profile/coroutine/lj_cowait.h"
#include "wait_checks.h"

#define ROUNDS    100
#define LONG_NS   300000 /* Above the threshold. */
#define CREDIT_NS 1000000000

static long waits;

static void resume(lua_State *L, long ns)
{
  struct timespec ts = { 0, ns };
  G2GG(G(L))->cowait->credit_ns = CREDIT_NS; /* A busy machine takes it all. */
  if (ns) nanosleep(&ts, NULL);
  REQUIRE(luaL_dostring(L, "assert(coroutine.resume(co))") == 0);
  waits++;
}

/* Resume twice. The hold is that of a thread that writes. flush: the sums are due, too. */
static void resume_held(lua_State *L, Sampler *s, int flush)
{
  REQUIRE(lj_sampler_hold(s));
  if (flush) G2GG(G(L))->cowait->flush_at = 0;
  resume(L, 0);
  resume(L, LONG_NS);
  lj_sampler_release(s);
}

int main(void)
{
  static Sink sink;
  lua_State *L = session_vm();
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  struct luam_Sysprof_SelfReport r;
  Sampler *s;
  uint64_t begin_ns = mono_ns();
  char *counts, *times, *top;
  int i;
  REQUIRE(luaL_dostring(L, "co = coroutine.create(function()\n"
			   "  while true do coroutine.yield() end end)\n"
			   "assert(coroutine.resume(co))") == 0);
  opt.clocks = "coroutine-wait";
  s = hand_start(L, &opt);
  for (i = 0; i < ROUNDS; i++) {
    resume(L, 0);
    resume(L, i % 10 ? 0 : LONG_NS);
    resume_held(L, s, i % 2);
  }
  CHECK(s->counters[SPF_COUNTER_LOST_NESTED] > 0);
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  CHECK(strstr(r.limit, "2 %") == NULL);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "--format=folded --weight=waits", &counts),
	   0);
  CHECK_EQ((long)folded_sum(counts, "", ""), waits);
  CHECK(folded_sum(counts, "[lost samples]", "") >= ROUNDS);
  /* The profiler's own total. */
  CHECK_EQ(session_parse(sink.bytes, sink.len, "--format=folded", &times), 0);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "--format=top", &top), 0);
  CHECK(strstr(top, "(100.0%) waited") != NULL);
  CHECK(folded_sum(times, "", "") <= (double)(mono_ns() - begin_ns));
  if (check_failures) printf("%ld waits, %s\n%s%s%s", waits, r.limit, counts, times, top);
  free(counts);
  free(times);
  free(top);
  sink_free(&sink);
  lua_close(L);
  return check_status();
}
