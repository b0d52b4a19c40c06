/* TIMEOUT: 600
** BASE: none, files, sockets, signals, processes; the VM runs a loop, or none
** A profile of all threads, in a program that starts and ends threads all the time. Each
** thread that lives long enough has its own session, which ends in order. The totals of
** all are the CPU time of the process. No thread, descriptor or memory leaks.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "count_kept.h"
#include "cpu_work.h"
#include "stream_sums.h"

#define ROUNDS   3
#define NTHREADS 4
#define CPU_US   60000

static void *in_c(void *arg)
{
  (void)arg;
  cpu_burn(CPU_US);
  cpu_sleep_us(150000); /* So long that it is noticed. */
  return NULL;
}

/* A thread with a VM of its own that is not profiled. */
static void *in_lua(void *arg)
{
  lua_State *L = session_vm();
  (void)arg;
  session_script(L, "function work() for i = 1, 1e5 do end end");
  cpu_run_lua(L, CPU_US);
  cpu_sleep_us(150000);
  lua_close(L);
  return NULL;
}

static void profile(lua_State *L, int mode)
{
  static StreamSums sums;
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, mode, 65536);
  struct luam_Sysprof_Counters c;
  uint64_t before, after, inside, sum = 0, total = 0, samples = 0;
  const int all = 1 + ROUNDS * NTHREADS;
  int i, r, files = count_entries("/proc/self/fd"), in_order = 0, named = 0;
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  opt.session = 7;
  before = cpu_us(CLOCK_PROCESS_CPUTIME_ID);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  inside = cpu_us(CLOCK_PROCESS_CPUTIME_ID);
  for (r = 0; r < ROUNDS; r++) {
    pthread_t t[NTHREADS];
    for (i = 0; i < NTHREADS; i++) t[i] = cpu_thread(i & 1 ? in_lua : in_c, NULL);
    cpu_run_lua(L, CPU_US);
    for (i = 0; i < NTHREADS; i++) REQUIRE(pthread_join(t[i], NULL) == 0);
  }
  inside = cpu_us(CLOCK_PROCESS_CPUTIME_ID) - inside;
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  after = cpu_us(CLOCK_PROCESS_CPUTIME_ID);
  CHECK_EQ(sink.stops, mode != LUAM_SYSPROF_DEFAULT);
  CHECK_EQ(luaM_sysprof_report(&c), PROFILE_SUCCESS);
  CHECK_EQ(count_entries("/proc/self/fd"), files);
  /* A thread that was joined may be listed for a moment; with . and .. */
  for (i = 0; i < 1000 && count_entries("/proc/self/task") > 3; i++) cpu_sleep_us(10000);
  CHECK_EQ(count_entries("/proc/self/task"), 3);
  if (mode != LUAM_SYSPROF_DEFAULT) {
    sums_read(&sums, sink.bytes, sink.len);
    CHECK(sums.fault == NULL);
    CHECK(sums_all_ended(&sums));
    for (i = 0; i < sums.n; i++) {
      const SessionSums *s = &sums.s[i];
      sum += s->weight[0];
      total += s->counter[SUMS_TOTAL(0)];
      samples += s->samples[0];
      in_order += s->number >= 7 && s->number < 7 + (uint32_t)sums.n;
      named += s->tid == (uint64_t)getpid() && strcmp(s->thread, "with_vm") == 0;
      CHECK(s->weight[0] <= s->counter[SUMS_TOTAL(0)]);
      if (s->tid != (uint64_t)getpid()) CHECK_EQ(s->state[3], s->samples[0]);
    }
    printf("%d sessions, %llu samples, weights %llu, totals %llu of %llu us\n", sums.n,
	   (unsigned long long)samples, (unsigned long long)sum, (unsigned long long)total,
	   (unsigned long long)inside);
    CHECK_EQ(in_order, sums.n);
    CHECK_EQ(samples, c.samples);
    /* On a very busy machine a thread may end before the test counts it. */
    CHECK(sums.n <= all && sums.n > all / 2);
    CHECK_EQ(named, 1);
    /* The helper and the last moments of the threads are missing. */
    CHECK(total <= after - before);
    CHECK(total * (uint64_t)all * 100 >= inside * (uint64_t)sums.n * 85);
  }
  sink_free(&sink);
}

int main(void)
{
  lua_State *L = session_vm();
  int mode;
  pthread_setname_np(pthread_self(), "with_vm");
  for (mode = LUAM_SYSPROF_DEFAULT; mode <= LUAM_SYSPROF_CALLGRAPH; mode++)
    profile(L, mode);
  lua_close(L);
  return check_status();
}
