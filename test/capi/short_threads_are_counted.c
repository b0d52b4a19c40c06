/* TIMEOUT: 300
** BASE: none, times that the kernel counts; the VM runs a loop, or none
** Threads that end before anybody samples them: their CPU time stands in `[threads not sampled]`, of the
** thread 0. With it, the weights are the CPU time of the process, less that of the profiler's thread. The
** rest of a thread that had a tick stands in a row of that thread.
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
#define RESTS          4         /* Threads that stay: */
#define RESTS_US       300000    /* so long they run, */
#define RESTS_NS       200000000 /* with this period: the mean rest is a third of it. */

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

static pthread_barrier_t together;

static void *burn_and_wait(void *unused)
{
  (void)unused;
  pthread_barrier_wait(&together);
  cpu_burn(RESTS_US);
  pthread_barrier_wait(&together);
  pthread_barrier_wait(&together);
  return NULL;
}

/* Threads that live from before the start until after the stop have all of their time. */
static void rests(lua_State *L)
{
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  struct luam_Sysprof_SelfReport r;
  pthread_t t[RESTS];
  uint64_t sum = 0, others = 0, no_tick;
  char *folded;
  int i;
  REQUIRE(pthread_barrier_init(&together, NULL, RESTS + 1) == 0);
  for (i = 0; i < RESTS; i++) t[i] = cpu_thread(burn_and_wait, NULL);
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  opt.clocks = "cpu";
  opt.interval_ns = RESTS_NS;
  REQUIRE(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
  pthread_barrier_wait(&together);
  pthread_barrier_wait(&together);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  pthread_barrier_wait(&together);
  for (i = 0; i < RESTS; i++) REQUIRE(pthread_join(t[i], NULL) == 0);
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  sums_read(&sums, sink.bytes, sink.len);
  CHECK(sums.fault == NULL);
  for (i = 0; i < sums.n; i++) {
    sum += sums.s[i].weight[0];
    others += sums.s[i].others[0];
    if (sums.s[i].number != 0) CHECK(sums.s[i].weight[0] >= RESTS_US * 9 / 10);
  }
  CHECK_EQ(session_parse(sink.bytes, sink.len, "", &folded),
	   0); /* By time: much has no place. */
  no_tick = folded_count(folded, "[stack unknown: no tick came]");
  printf("%llu us in all, %llu of it not sampled, %llu without a tick; report: %llu us\n",
	 (unsigned long long)sum, (unsigned long long)others, (unsigned long long)no_tick,
	 (unsigned long long)r.cpu_us);
  CHECK(sum >= RESTS * RESTS_US * 9 / 10);
  CHECK(others < sum / 10);
  CHECK(no_tick > sum / 10 && no_tick < sum);
  CHECK_EQ(folded_count(folded, ""), sum);
  CHECK(r.cpu_us + PERIOD_US >= sum);
  free(folded);
  sink_free(&sink);
}

int main(void)
{
  lua_State *L = session_vm();
  uint64_t others;
  CHECK(profile(L, "cpu", SHORT_US, THREADS, PERIOD_NS) != 0);
  CHECK(profile(L, "wall", SHORT_US, THREADS, PERIOD_NS) != 0);
  /* The profiler looks for threads every 50 ms. Each also loses the time since the last look: 50 ms of 300. On a busy machine, looks are late.
  */
  others = profile(L, "cpu", LONG_US, 3, PERIOD_NS);
  CHECK(others < 3 * LONG_US / 2);
  profile(L, "cpu", LONG_US, 3, LONG_PERIOD_NS);
  rests(L);
  lua_close(L);
  return check_status();
}
