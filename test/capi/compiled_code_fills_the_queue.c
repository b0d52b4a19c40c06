/* TIMEOUT: 600
** A compiled loop that never returns to the interpreter.
**
** If the VM writes, the buffers fill up, and samples are lost and counted. After the loop
** the profile keeps samples again. If a thread writes, it writes chunks during the loop,
** more than all buffers hold. The samples in the stream and the lost ones add up to all
** samples, and the weights add up to the time.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>

#include "session.h"
#include "stream_sums.h"

#define BUF_SIZE (LUAM_SYSPROF_FLUSH_BUFFERS * 2048)
#define TRIES    10

static StreamSums sums;
static lua_State *L;
static Sink sink;
static _Atomic int go, over;
static uint64_t lost_at_least, samples_at_least;
static int writes_at_least;

/* Called by the loop: how often it has run, is it over? */
int loop_is_over(double n)
{
  if (n == 10000) go = 1;
  return over;
}

/* Ends the loop when it has run for long enough, or for minutes. */
static void *watch(void *arg)
{
  time_t deadline = time(NULL) + 200;
  static const struct timespec ms = { 0, 1000000 };
  (void)arg;
  while (!go) nanosleep(&ms, NULL);
  for (;;) {
    struct luam_Sysprof_SelfReport r;
    luaM_sysprof_selfreport(L, &r, sizeof(r));
    if (r.lost_queue >= lost_at_least && r.samples >= samples_at_least &&
	__atomic_load_n(&sink.writes, __ATOMIC_SEQ_CST) >= writes_at_least)
      break;
    if (time(NULL) > deadline) {
      CHECK(!"the loop has run for minutes");
      break;
    }
    nanosleep(&ms, NULL);
  }
  over = 1;
  return NULL;
}

/* The compiled loop. */
static void loop(void)
{
  pthread_t t;
  go = over = 0;
  REQUIRE(pthread_create(&t, NULL, watch, NULL) == 0);
  lua_getglobal(L, "loop");
  REQUIRE(lua_pcall(L, 0, 0, 0) == 0);
  REQUIRE(pthread_join(t, NULL) == 0);
}

static struct luam_Sysprof_Options begin(int flush)
{
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH,
						    BUF_SIZE);
  opt.interval_ns = 100000;
  opt.flush = (uint8_t)flush;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  CHECK_EQ(sink.writes, 1);
  return opt;
}

/* Returns the number of samples that were lost. */
static uint64_t end(void)
{
  struct luam_Sysprof_SelfReport r;
  const SessionSums *s = &sums.s[0];
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  CHECK(sink.stop_buf == sink.buf);
  sums_read(&sums, sink.bytes, sink.len);
  CHECK(sums.fault == NULL);
  CHECK(sums_all_ended(&sums));
  CHECK_EQ(sums.n, 1);
  CHECK_EQ(s->samples[0] + r.lost_queue + r.lost_buffer, r.samples);
  CHECK_EQ(s->counter[SUMS_LOST_QUEUE], r.lost_queue);
  CHECK_EQ(r.lost_writer, 0);
  CHECK(s->weight[0] <= s->counter[SUMS_TOTAL(0)]);
  printf("%llu samples, %llu in the stream, %llu lost, %d chunks\n",
	 (unsigned long long)r.samples, (unsigned long long)s->samples[0],
	 (unsigned long long)r.lost_queue, sink.writes);
  sink_free(&sink);
  return r.lost_queue;
}

/* The VM writes: not before the loop has ended. */
static void by_the_vm(void)
{
  struct luam_Sysprof_SelfReport r;
  uint64_t kept, weight;
  int writes;
  begin(LUAM_SYSPROF_FLUSH_VM);
  session_run(L, 10);
  lost_at_least = 100;
  samples_at_least = 0;
  writes_at_least = 0;
  loop();
  writes = sink.writes;
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  CHECK(r.lost_queue >= 100);
  kept = r.samples - r.lost_queue;
  session_run(L, r.samples + 3000);
  CHECK(sink.writes > writes);
  end();
  CHECK(sums.s[0].samples[0] > kept + 100); /* Kept again. */
  /* The lost time is in the weights: only the time after the last sample is missing. */
  weight = sums.s[0].counter[SUMS_TOTAL(0)] - sums.s[0].weight[0];
  CHECK(weight < sums.s[0].counter[SUMS_TOTAL(0)] / 4);
}

/* A thread writes, while the loop runs: more than all buffers hold. */
static uint64_t by_a_thread(void)
{
  begin(LUAM_SYSPROF_FLUSH_THREAD);
  lost_at_least = 0;
  samples_at_least = 2000;
  writes_at_least = 3 * LUAM_SYSPROF_FLUSH_BUFFERS;
  loop();
  return end();
}

int main(void)
{
  int i;
  L = session_vm();
  session_script(L, "local ffi = require('ffi')\n"
		    "ffi.cdef('int loop_is_over(double);')\n"
		    "function loop()\n"
		    "  local i = 0\n"
		    "  repeat i = i + 1 until ffi.C.loop_is_over(i) ~= 0\n"
		    "end\n");
  by_the_vm();
  /* On a machine that lets the thread wait for long, some may be lost: most are not. */
  for (i = 0; i < TRIES; i++) {
    uint64_t lost = by_a_thread();
    if (lost < sums.s[0].samples[0]) break;
  }
  CHECK(i < TRIES);
  lua_close(L);
  return check_status();
}
