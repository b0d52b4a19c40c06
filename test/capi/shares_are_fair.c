/* TIMEOUT: 600
** BASE: none, times that the kernel counts; the VM runs a loop, or none
** Ten threads with a VM each do equal work, on fewer processors. Each has its share of
** the samples, and its weights are its CPU time.
**
** The truth is the CPU time of each thread: share p of the sum. If each of n samples
** falls on it with that probability, the share of samples has the standard error sqrt(p
** (1 - p) / n); ticks of a clock are more even. Chance puts a share outside of Z_MAX
** standard errors in one case of 2150, and one of ten shares in one run of 215. So the
** test makes three attempts, each in its own process. All three fail in one of 10 million
** runs.
*/

#include <math.h>

#include "cpu_work.h"
#include "stream_sums.h"

#define NTHREADS 10
#define ROUNDS   60
#define ATTEMPTS 3
#define Z_MAX    3.5

typedef struct Job {
  lua_State *L;
  Sink sink;
  struct luam_Sysprof_Options opt;
  uint64_t cpu_us;
  uint64_t around_us; /* With start and stop. */
} Job;

static Job jobs[NTHREADS];

static void *run(void *arg)
{
  Job *job = (Job *)arg;
  int i;
  job->around_us = cpu_own_us();
  CHECK_EQ(luaM_sysprof_start(job->L, &job->opt), PROFILE_SUCCESS);
  job->cpu_us = cpu_own_us();
  for (i = 0; i < ROUNDS; i++) session_work(job->L);
  job->cpu_us = cpu_own_us() - job->cpu_us;
  CHECK_EQ(luaM_sysprof_stop(job->L), PROFILE_SUCCESS);
  job->around_us = cpu_own_us() - job->around_us;
  return NULL;
}

/* Returns 1 if all shares are within the bound. */
static int attempt(const char *clocks)
{
  static StreamSums sums[NTHREADS];
  pthread_t thread[NTHREADS];
  uint64_t n = 0, cpu = 0;
  double zmax = 0;
  int i;
  for (i = 0; i < NTHREADS; i++) {
    jobs[i].L = session_vm();
    session_script(jobs[i].L, "jit.off() function work()"
			      " local x = 0 for i = 1, 1e6 do x = x + i % 7 end end");
    jobs[i].opt = session_options(&jobs[i].sink, LUAM_SYSPROF_CALLGRAPH, 65536);
    jobs[i].opt.clocks = clocks;
  }
  for (i = 0; i < NTHREADS; i++) thread[i] = cpu_thread(run, &jobs[i]);
  for (i = 0; i < NTHREADS; i++) REQUIRE(pthread_join(thread[i], NULL) == 0);
  for (i = 0; i < NTHREADS; i++) {
    const SessionSums *s = &sums[i].s[0];
    sums_read(&sums[i], jobs[i].sink.bytes, jobs[i].sink.len);
    CHECK(sums[i].fault == NULL && sums[i].n == 1 && s->ended);
    CHECK(s->counter[SUMS_TOTAL(0)] + 1 >= jobs[i].cpu_us); /* Cut to microseconds. */
    CHECK(s->counter[SUMS_TOTAL(0)] <= jobs[i].around_us + 1);
    CHECK(s->weight[0] <= s->counter[SUMS_TOTAL(0)]);
    n += s->samples[0];
    cpu += jobs[i].cpu_us;
  }
  REQUIRE(n > 0);
  for (i = 0; i < NTHREADS; i++) {
    double p = (double)jobs[i].cpu_us / (double)cpu;
    double share = (double)sums[i].s[0].samples[0] / (double)n;
    double z = (share - p) / sqrt(p * (1 - p) / (double)n);
    printf("%s%5.2f %% of %.2f %%, z = %+.2f", i ? "; " : "", 100 * share, 100 * p, z);
    if (fabs(z) > zmax) zmax = fabs(z);
    lua_close(jobs[i].L);
    sink_free(&jobs[i].sink);
  }
  printf("\n%s: %llu samples, largest z %.2f\n", clocks, (unsigned long long)n, zmax);
  return zmax <= Z_MAX;
}

static void judge(const char *clocks)
{
  int i, status;
  for (i = 0; i < ATTEMPTS; i++) {
    pid_t pid;
    fflush(stdout);
    REQUIRE((pid = fork()) >= 0);
    if (pid == 0) {
      int within = attempt(clocks);
      _exit(check_status() ? 1 : within ? 0 : 2);
    }
    while (waitpid(pid, &status, 0) < 0) REQUIRE(errno == EINTR);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) != 1);
    if (WEXITSTATUS(status) == 0) return;
  }
  CHECK(!"shares outside of the bound in each attempt");
}

int main(void)
{
  judge("cpu");
  return check_status();
}
