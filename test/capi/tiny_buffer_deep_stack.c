/* With the smallest buffer and deep stacks, samples that do not fit count as lost. The
** stream stays readable, and keeps samples of shallow stacks.
*/

#include "session.h"

int main(void)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH,
						    LUAM_SYSPROF_BUF_MIN);
  uint64_t samples, kept, lost = 0;
  char *folded, message[256];
  FILE *f;
  session_script(
    L, "jit.off()\n"
       "local function spin() for i = 1, 1e5 do end end\n"
       /* Many functions: a recursion of one would be a run, which fits. */
       "local fs, call = {}, 'local fs, n = ... return function() fs[n]() return n end'\n"
       "for n = 1, 500 do fs[n] = loadstring(call)(fs, n + 1) end fs[501] = spin\n"
       /* At random: in turns they might keep step with the clock. */
       "function work() if math.random(2) == 1 then fs[1]() else spin() end end");
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  session_run(L, 200);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  samples = session_samples();
  CHECK_EQ(session_parse(sink.bytes, sink.len, "--weight=samples", &folded), 0);
  kept = folded_count(folded, "");
  f = fopen("messages.txt", "r");
  REQUIRE(f != NULL);
  while (fgets(message, sizeof(message), f)) {
    const char *p = strstr(message, "samples lost: ");
    if (p) lost = strtoull(p + 14, NULL, 10);
  }
  fclose(f);
  CHECK(kept > samples / 10);
  CHECK(lost > samples / 10);
  CHECK_EQ(kept + lost, samples);
  free(folded);
  sink_free(&sink);
  lua_close(L);
  return check_status();
}
