/* TIMEOUT: 600
** A thread of the host is busy in C beside the VM: the VM is not charged for its time.
** With THREADS_ALL the thread is a session of its own, with a host stack only.
*/

#include "cpu_work.h"
#include "stream_sums.h"

#define CPU_US 150000

static _Atomic int done;

__attribute__((noinline)) static void busy_in_c(void)
{
  while (!done) cpu_burn(1000);
}

static void *busy(void *arg)
{
  (void)arg;
  busy_in_c();
  return NULL;
}

static void profile(const char *clock, int threads)
{
  static StreamSums sums;
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  uint64_t before, used;
  int i, nbusy = 0;
  pthread_t thread;
  char *folded;
  session_script(L, "jit.off()");
  done = 0;
  thread = cpu_thread(busy, NULL);
  opt.clocks = clock;
  opt.threads = (uint8_t)threads;
  before = cpu_own_us();
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  cpu_run_lua(L, CPU_US);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  used = cpu_own_us() - before;
  done = 1;
  REQUIRE(pthread_join(thread, NULL) == 0);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "--no-demangle", &folded), 0);
  sums_read(&sums, sink.bytes, sink.len);
  CHECK(sums.fault == NULL);
  CHECK(sums_all_ended(&sums));
  CHECK(folded_count(folded, "work.lua") > 10);
  if (threads == LUAM_SYSPROF_THREADS_OWN) {
    CHECK_EQ(folded_count(folded, "busy_in_c"), 0);
    CHECK_EQ(sums.n, 1);
  } else {
    CHECK(sums.n >= 2);
    CHECK(folded_count(folded, "busy_in_c") > 0);
  }
  for (i = 0; i < sums.n; i++) {
    const SessionSums *s = &sums.s[i];
    CHECK(s->weight[0] - s->others[0] <= s->counter[SUMS_TOTAL(0)]);
    if (s->tid == (uint64_t)getpid()) {
      /* Both are cut to microseconds. Beside others, the profiler may miss the end of a thread. */
      CHECK(s->weight[0] - s->others[0] <= used + 1);
      CHECK_EQ(s->counter[SUMS_LUA_NOT_VM], 0);
    } else { /* All its samples are of C code. */
      CHECK_EQ(s->state[3], s->samples[0]);
      nbusy += s->samples[0] > 0;
    }
  }
  CHECK_EQ(nbusy, threads == LUAM_SYSPROF_THREADS_ALL);
  if (threads == LUAM_SYSPROF_THREADS_ALL) { /* By thread. */
    char option[64];
    char *own;
    snprintf(option, sizeof(option), "--thread=%ld", (long)getpid());
    CHECK_EQ(session_parse(sink.bytes, sink.len, option, &own), 0);
    CHECK_EQ(folded_count(own, "busy_in_c"), 0);
    CHECK(folded_count(own, "work.lua") == folded_count(folded, "work.lua"));
    free(own);
  }
  free(folded);
  lua_close(L);
  sink_free(&sink);
}

int main(void)
{
  static const char *const clocks[] = { "cpu", "wall-signal" };
  int i, threads;
  for (i = 0; i < 2; i++)
    for (threads = 0; threads <= LUAM_SYSPROF_THREADS_ALL; threads++)
      profile(clocks[i], threads);
  return check_status();
}
