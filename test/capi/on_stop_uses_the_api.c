/* TIMEOUT: 600
** on_stop runs outside of the handler and may ask for the counters.
*/

#include "session.h"

static uint64_t samples_seen;

static int asking_on_stop(void *ctx, uint8_t *buf)
{
  samples_seen = session_samples();
  return sink_on_stop(ctx, buf);
}

int main(void)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_LEAF, 65536);
  CHECK_EQ(luaM_sysprof_set_on_stop(asking_on_stop), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  session_run(L, 10);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK(samples_seen >= 10);
  CHECK_EQ(session_samples(), samples_seen);
  lua_close(L);
  return check_status();
}
