/* TIMEOUT: 300
** A writer that hangs on the thread of the profiler loses samples of allocations. Their bytes stand in
** `[lost samples]`, so the weights add up exactly to what the VM allocated.
*/

#include "session.h"
#include "stream_sums.h"

#define LOST 20000

static _Atomic int hang;
static StreamSums sums;

static size_t hanging_writer(const void **data, size_t len, void *ctx)
{
  static const struct timespec ms = { 0, 1000000 };
  while (hang) nanosleep(&ms, NULL);
  return sink_writer(data, len, ctx);
}

static const char *const program =
  "local function f() return {} end\n"
  "for i = 1, 2000 do local t = f(); t.x = tostring(i) end";

/* Allocate until so many samples are lost, and so many kept. */
static void allocate(lua_State *L, uint64_t lost, uint64_t kept)
{
  struct luam_Sysprof_SelfReport r;
  int i;
  for (i = 0; i < 100000; i++) {
    CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
    if (r.lost_queue >= lost && r.samples - r.lost_queue >= kept) return;
    REQUIRE(luaL_dostring(L, program) == 0);
  }
  CHECK(!"too few samples");
}

int main(void)
{
  static Sink sink;
  lua_State *L = session_vm();
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH,
						    LUAM_SYSPROF_FLUSH_BUFFERS * 2048);
  struct luam_Sysprof_SelfReport r;
  const SessionSums *s = &sums.s[0];
  opt.clocks = "alloc/period=1/";
  opt.flush = LUAM_SYSPROF_FLUSH_THREAD;
  luaM_sysprof_set_writer(hanging_writer);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  allocate(L, 0, 1000);
  hang = 1;
  allocate(L, LOST, 0);
  hang = 0;
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  allocate(L, LOST, r.samples - r.lost_queue + 1000);
  hang = 1;
  allocate(L, r.lost_queue + LOST, 0);
  hang = 0; /* The end tells these. */
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  sums_read(&sums, sink.bytes, sink.len);
  CHECK(sums.fault == NULL);
  CHECK(sums_all_ended(&sums));
  CHECK(s->counter[SUMS_LOST_QUEUE] >= 2 * LOST);
  CHECK_EQ(s->weight[0], s->counter[SUMS_TOTAL(0)]);
  printf("%llu samples of %llu bytes, %llu lost\n", (unsigned long long)s->samples[0],
	 (unsigned long long)s->weight[0], (unsigned long long)s->counter[SUMS_LOST_QUEUE]);
  sink_free(&sink);
  lua_close(L);
  return check_status();
}
