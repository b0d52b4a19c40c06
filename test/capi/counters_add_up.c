/* The counters are zero at a start, grow during the profile, and stay after the stop.
** Their sum is the number of samples, in compiled and interpreted code.
*/

#include "session.h"

static uint64_t sum(const struct luam_Sysprof_Counters *c)
{
  return c->vmst_interp + c->vmst_lfunc + c->vmst_ffunc + c->vmst_cfunc + c->vmst_gc +
	 c->vmst_exit + c->vmst_record + c->vmst_opt + c->vmst_asm + c->vmst_trace;
}

static struct luam_Sysprof_Counters profile(lua_State *L, int mode)
{
  struct luam_Sysprof_Counters c, later;
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, mode, 65536);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_report(&c), PROFILE_SUCCESS);
  CHECK(c.samples < 100); /* Without the last profile's. */
  session_run(L, 100);
  CHECK_EQ(luaM_sysprof_report(&c), PROFILE_SUCCESS);
  CHECK(c.samples >= 100);
  CHECK_EQ(sum(&c), c.samples);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_report(&later), PROFILE_SUCCESS);
  CHECK(later.samples >= c.samples);
  CHECK_EQ(sum(&later), later.samples);
  session_work(L);
  CHECK_EQ(session_samples(), later.samples); /* Unchanged. */
  CHECK_EQ(sink.stops, mode != LUAM_SYSPROF_DEFAULT);
  sink_free(&sink);
  return later;
}

int main(void)
{
  lua_State *L = session_vm();
  struct luam_Sysprof_Counters c;
  int mode;
  session_script(L, "function work() local s = 0 "
		    "for i = 1, 1e6 do s = s + i % 3 end return s end");
  for (mode = LUAM_SYSPROF_DEFAULT; mode <= LUAM_SYSPROF_CALLGRAPH; mode++) {
    c = profile(L, mode);
    CHECK(c.vmst_trace > c.samples / 2);
  }
  session_script(L, "jit.off() jit.flush()");
  session_script(L, "function work() local s = 0 "
		    "for i = 1, 1e6 do s = s + i % 3 end return s end");
  for (mode = LUAM_SYSPROF_DEFAULT; mode <= LUAM_SYSPROF_CALLGRAPH; mode++) {
    c = profile(L, mode);
    CHECK_EQ(c.vmst_trace, 0);
    CHECK(c.vmst_lfunc > c.samples / 2);
  }
  session_script(L, "function work() local s = ('x'):rep(1e6) "
		    "for i = 1, 10 do s:reverse() end end");
  c = profile(L, LUAM_SYSPROF_DEFAULT);
  CHECK(c.vmst_ffunc > c.samples / 2);
  session_script(L, "local t = {} for i = 1, 3e5 do t[i] = {} end hold = t "
		    "function work() collectgarbage() end");
  c = profile(L, LUAM_SYSPROF_DEFAULT);
  CHECK(c.vmst_gc > c.samples / 2);
  lua_close(L);
  return check_status();
}
