/* Samples leave errno alone, at 10 kHz, in C and through Lua. */

#include "session.h"

int main(void)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 4096);
  struct luam_Sysprof_Counters c;
  time_t deadline = time(NULL) + 200;
  long changed = 0;
  int i;
  opt.interval_ns = 100000;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  do {
    for (i = 0; i < 1000; i++) {
      volatile int spin;
      int value = 1 + i % 130;
      errno = value;
      for (spin = 0; spin < 1000; spin++)
	;
      if (errno != value) changed++;
    }
    luaM_sysprof_report(&c);
  } while (c.samples < 2000 && time(NULL) < deadline);
  CHECK(c.samples >= 2000);
  CHECK(sink.writes > 1); /* The writer was called in the handler. */
  CHECK_EQ(changed, 0);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  lua_close(L);
  return check_status();
}
