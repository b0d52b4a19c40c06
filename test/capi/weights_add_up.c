/* TIMEOUT: 600
** BASE: none, times that the kernel counts; the VM runs a loop, or none
** The weights of a thread's samples, and its use since the last sample, add up to its CPU
** time. One thread is busy, one sleeps half of the time. The intervals are 10 ms, 1 ms
** and 100 us, whatever rate the clock reaches. With two clocks, each one's weights add
** up. Start and stop use a part of the time.
**
** A clock on the kernel's tick sees only the thread that runs at the tick. Beside many
** other threads, the thread may run between ticks for long. Then the test tries again.
*/

#include "cpu_work.h"
#include "stream_sums.h"

#define CPU_US   200000
#define SLEEP_US 2000  /* After as much CPU time. */
#define END_US   60000 /* Without sleep at the end. */
#define TICKS_US 40000 /* Some ticks of the kernel. */
#define TRIES    20

static void run(lua_State *L, int sleeps)
{
  uint64_t end = cpu_own_us() + CPU_US;
  while (cpu_own_us() < end) {
    cpu_run_lua(L, SLEEP_US);
    if (sleeps) cpu_sleep_us(SLEEP_US);
  }
  /* A clock of CPU time misses a thread that always sleeps at the kernel's tick. */
  if (sleeps) cpu_run_lua(L, END_US);
}

/* Returns 0 if what has no sample yet at the end is more than an interval and some
** ticks.
*/
static int profile(lua_State *L, const char *clocks, uint64_t interval_ns, int sleeps)
{
  static StreamSums sums;
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  uint64_t begin, end, around, limit = interval_ns / 1000;
  const SessionSums *s = &sums.s[0];
  int e, ok = 1, n = strchr(clocks, ',') ? 2 : 1;
  opt.clocks = clocks;
  opt.interval_ns = interval_ns;
  around = cpu_own_us();
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  begin = cpu_own_us();
  run(L, sleeps);
  end = cpu_own_us();
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  around = cpu_own_us() - around;
  sums_read(&sums, sink.bytes, sink.len);
  CHECK(sums.fault == NULL);
  CHECK_EQ(sums.n, 1);
  CHECK_EQ(s->ended, 1);
  for (e = 0; e < n; e++) {
    uint64_t total = s->counter[SUMS_TOTAL(e)];
    printf("%s[%d] %llu ns, %s: %llu samples, weights %llu, total %llu us of %llu\n",
	   clocks, e, (unsigned long long)interval_ns, sleeps ? "sleeps" : "busy",
	   (unsigned long long)s->samples[e], (unsigned long long)s->weight[e],
	   (unsigned long long)total, (unsigned long long)(end - begin));
    /* At most the time around the profile, at least the time within. */
    CHECK(total <= around);
    CHECK(total >= end - begin);
    CHECK(s->weight[e] <= total);
    ok &= s->samples[e] > 0 && total - s->weight[e] <= limit + TICKS_US;
  }
  sink_free(&sink);
  return ok;
}

static void check(lua_State *L, const char *clocks, uint64_t interval_ns, int sleeps)
{
  int i;
  for (i = 0; i < TRIES && !profile(L, clocks, interval_ns, sleeps); i++)
    ;
  CHECK(i < TRIES);
}

int main(void)
{
  static const uint64_t intervals[] = { 10000000, 1000000, 100000 };
  lua_State *L = session_vm();
  int i, sleeps;
  for (i = 0; i < 3; i++)
    for (sleeps = 0; sleeps < 2; sleeps++) {
      check(L, "cpu", intervals[i], sleeps);
      check(L, "wall-signal", intervals[i], sleeps);
    }
  check(L, "ctimer,wall-signal", 1000000, 0);
  lua_close(L);
  return check_status();
}
