/* Habits of programs for Tarantool's lmisclib.h: they set no backtracer, use an interval
** of -1ULL, and have a writer that returns more than it got.
*/

#include "session.h"

static Sink sink;

/* It returns the size of its own buffer, which is larger. */
static size_t generous_writer(const void **data, size_t len, void *ctx)
{
  return sink_writer(data, len, ctx) == len ? len + 4096 : 0;
}

/* One that returns what write() does: -1 is an error, not more than len. */
static size_t failing_writer(const void **data, size_t len, void *ctx)
{
  (void)data;
  (void)len;
  (void)ctx;
  errno = ENOSPC;
  return (size_t)-1;
}

static struct luam_Sysprof_Options options(uint8_t *buf, size_t len)
{
  struct luam_Sysprof_Options opt;
  memset(&opt, 0, sizeof(opt));
  opt.mode = LUAM_SYSPROF_CALLGRAPH;
  opt.interval = 1;
  opt.buf = buf;
  opt.len = len;
  opt.ctx = &sink;
  return opt;
}

int main(void)
{
  static const uint64_t longs[] = { ~(uint64_t)0, 86400001,
				    ((uint64_t)1 << 63) / 1000000 * 2 /* Overflows. */ };
  static uint8_t buf[64 * 1024];
  lua_State *L = session_vm();
  struct luam_Sysprof_Options opt = options(buf, sizeof(buf));
  struct luam_Sysprof_SelfReport r;
  char *folded;
  size_t i;
  sink.bytes = (uint8_t *)malloc(SINK_MAX);
  REQUIRE(sink.bytes != NULL);

  CHECK_EQ(luaM_sysprof_set_writer(generous_writer), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_set_on_stop(sink_on_stop), PROFILE_SUCCESS);
  REQUIRE(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
  session_run(L, 20);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(sink.stops, 1);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "", &folded), 0); /* With host stacks: */
  CHECK_EQ(folded_count(folded, ""), session_samples());
  CHECK(folded_count(folded, "lua_pcall") > 0);
  CHECK(folded_count(folded, "work.lua") > 0);
  free(folded);

  /* As long as an interval may be: a day. */
  for (i = 0; i < sizeof(longs) / sizeof(longs[0]); i++) {
    opt.interval = longs[i];
    REQUIRE(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
    CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
    CHECK(r.asked_hz > 0.99 / 86400 && r.asked_hz < 1.01 / 86400);
    CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  }

  CHECK_EQ(luaM_sysprof_set_writer(failing_writer), PROFILE_SUCCESS);
  opt.interval = 1;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_ERRIO);
  CHECK(strstr(luaM_sysprof_error(), "No space left") != NULL);

  lua_close(L);
  free(sink.bytes);
  return check_status();
}
