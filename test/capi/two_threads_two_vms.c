/* TIMEOUT: 600
** Two threads with a VM each, profiled at the same time. Each stream has the samples of
** its own thread, and their weights are the thread's CPU time. The test uses both clocks
** and both ways to stop: each thread stops its own profile, or one thread stops both.
*/

#include "cpu_work.h"
#include "stream_sums.h"

#define CPU_US 150000

typedef struct Job {
  lua_State *L;
  Sink sink;
  struct luam_Sysprof_Options opt;
  uint64_t cpu_us; /* From before the start to after the stop. */
  int stops_itself;
} Job;

static void *run(void *arg)
{
  Job *job = (Job *)arg;
  uint64_t before;
  before = cpu_own_us();
  CHECK_EQ(luaM_sysprof_start(job->L, &job->opt), PROFILE_SUCCESS);
  cpu_run_lua(job->L, CPU_US);
  if (job->stops_itself) CHECK_EQ(luaM_sysprof_stop(job->L), PROFILE_SUCCESS);
  job->cpu_us = cpu_own_us() - before;
  return NULL;
}

static void profile(const char *clock, int each_stops)
{
  static StreamSums sums;
  Job job[2];
  pthread_t thread[2];
  int i;
  for (i = 0; i < 2; i++) {
    job[i].L = session_vm();
    session_script(job[i].L, i ? "jit.off()\n\n\nfunction work() for i = 1, 2e5 do end end"
			       : "jit.off() function work() for i = 1, 2e5 do end end");
    job[i].opt = session_options(&job[i].sink, LUAM_SYSPROF_CALLGRAPH, 65536);
    job[i].opt.clocks = clock;
    job[i].stops_itself = each_stops;
  }
  for (i = 0; i < 2; i++) thread[i] = cpu_thread(run, &job[i]);
  for (i = 0; i < 2; i++) REQUIRE(pthread_join(thread[i], NULL) == 0);
  for (i = 0; i < 2; i++) {
    const char *own = i ? "work.lua:4" : "work.lua:1";
    const char *other = i ? "work.lua:1" : "work.lua:4";
    const SessionSums *s = &sums.s[0];
    char *folded;
    uint64_t all;
    if (!each_stops) /* The thread has ended. */
      CHECK_EQ(luaM_sysprof_stop(job[i].L), PROFILE_SUCCESS);
    CHECK_EQ(luaM_sysprof_stop(job[i].L), PROFILE_ERRRUN);
    CHECK_EQ(session_parse(job[i].sink.bytes, job[i].sink.len, "", &folded), 0);
    all = folded_count(folded, "");
    CHECK(folded_count(folded, own) > 0); /* The rest reads the clock. */
    CHECK_EQ(folded_count(folded, other), 0);
    free(folded);
    sums_read(&sums, job[i].sink.bytes, job[i].sink.len);
    CHECK(sums.fault == NULL);
    CHECK(sums_all_ended(&sums));
    CHECK_EQ(sums.n, 1);
    CHECK_EQ(s->samples[0], all);
    CHECK(all >= CPU_US / 10000 / 3);
    /* Not more than the thread has used, and at most an interval less. */
    if (each_stops) {
      CHECK(s->counter[SUMS_TOTAL(0)] <= job[i].cpu_us + 1);
      CHECK(s->counter[SUMS_TOTAL(0)] * 100 >= (uint64_t)CPU_US * 99);
    }
    CHECK(s->weight[0] <= s->counter[SUMS_TOTAL(0)]);
    CHECK_EQ(s->counter[SUMS_LUA_NOT_VM], 0);
    lua_close(job[i].L);
    sink_free(&job[i].sink);
  }
}

int main(void)
{
  static const char *const clocks[] = { "cpu", "wall-signal" };
  int i;
  for (i = 0; i < 2; i++) {
    profile(clocks[i], 1);
    profile(clocks[i], 0);
  }
  return check_status();
}
