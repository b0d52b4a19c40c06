/* TIMEOUT: 300
** Threads that end before anybody samples them: their CPU time stands in `[threads not sampled]`, of the
** thread 0. With it, the weights are the CPU time of the process, less that of the profiler's thread and
** that of this thread since its last tick.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>

#include "cpu_work.h"
#include "stream_sums.h"

#define THREADS        100
#define SHORT_US       3000
#define LONG_US        300000
#define PERIOD_US      10000
#define PERIOD_NS      10000000
#define LONG_PERIOD_NS 100000000000

static StreamSums sums;

static void *burn(void *arg)
{
  cpu_burn(*(const unsigned *)arg);
  return NULL;
}

/* CPU time of the profiler's thread so far. */
static uint64_t profiler_us(void)
{
  DIR *dir = opendir("/proc/self/task");
  const struct dirent *e;
  uint64_t us = 0;
  REQUIRE(dir != NULL);
  while ((e = readdir(dir)) != NULL) {
    char path[300], name[32] = "";
    clockid_t id = (clockid_t)((~(unsigned)atoi(e->d_name) << 3) | 6);
    FILE *f;
    snprintf(path, sizeof(path), "/proc/self/task/%.200s/comm", e->d_name);
    f = fopen(path, "r");
    if (!f) continue;
    if (fgets(name, sizeof(name), f) && strcmp(name, "sysprof\n") == 0) us = cpu_us(id);
    fclose(f);
  }
  closedir(dir);
  return us;
}

static uint64_t process_us(void)
{
  return cpu_us(CLOCK_PROCESS_CPUTIME_ID);
}

/* Threads run one after the other. Returns the weight of the thread 0. */
static uint64_t profile(lua_State *L, const char *clock, unsigned us, int n,
			uint64_t interval_ns)
{
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  struct luam_Sysprof_SelfReport running, stopped;
  uint64_t before = process_us(), inside, after, profiler, sum = 0, others = 0;
  int i, event;
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  opt.clocks = clock;
  opt.interval_ns = interval_ns;
  REQUIRE(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
  inside = process_us();
  for (i = 0; i < n; i++) REQUIRE(pthread_join(cpu_thread(burn, &us), NULL) == 0);
  profiler = profiler_us();
  inside = process_us() - inside;
  CHECK_EQ(luaM_sysprof_selfreport(L, &running, sizeof(running)), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_selfreport(L, &stopped, sizeof(stopped)), PROFILE_SUCCESS);
  after = process_us();
  sums_read(&sums, sink.bytes, sink.len);
  CHECK(sums.fault == NULL);
  CHECK(sums_all_ended(&sums));
  event = sums.s[0].is_count[0]; /* One of the two measures waits. */
  for (i = 0; i < sums.n; i++) {
    sum += sums.s[i].weight[event];
    others += sums.s[i].others[event];
  }
  printf("%s, %d threads of %u us: %llu us in all, %llu of it not sampled, %.1f Hz\n",
	 clock, n, us, (unsigned long long)sum, (unsigned long long)others,
	 stopped.achieved_hz);
  CHECK(profiler != 0);
  CHECK(sum + profiler + PERIOD_US >= inside);
  CHECK(sum <= after - before);
  /* The self-report has them, too. */
  CHECK(stopped.cpu_us + PERIOD_US >= sum && stopped.cpu_us <= after - before);
  CHECK(running.cpu_us + profiler + PERIOD_US >= inside &&
	running.cpu_us <= stopped.cpu_us);
  /* A thread's rest after its last tick is no tick. Of a long period, no tick comes: the first one comes
  ** at a random time of it.
  */
  if (opt.interval_ns == LONG_PERIOD_NS)
    CHECK(stopped.achieved_hz * (double)(sum - others) / 1e6 < 2.5);
  sink_free(&sink);
  return others;
}

int main(void)
{
  lua_State *L = session_vm();
  uint64_t others;
  CHECK(profile(L, "cpu", SHORT_US, THREADS, PERIOD_NS) != 0);
  CHECK(profile(L, "wall", SHORT_US, THREADS, PERIOD_NS) != 0);
  /* The profiler looks for threads every 50 ms. Each also loses the time to its first tick, and since the
  ** last one: 70 ms of 300. On a busy machine, looks are late.
  */
  others = profile(L, "cpu", LONG_US, 3, PERIOD_NS);
  CHECK(others < 3 * LONG_US / 2);
  profile(L, "cpu", LONG_US, 3, LONG_PERIOD_NS);
  lua_close(L);
  return check_status();
}
