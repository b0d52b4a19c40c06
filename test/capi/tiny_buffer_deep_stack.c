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
       "local function deep(n) if n == 0 then spin() else deep(n - 1) end return n end\n"
       /* At random: in turns they might keep step with the clock. */
       "function work() if math.random(2) == 1 then deep(500) else spin() end end");
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  session_run(L, 200);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  samples = session_samples();
  CHECK_EQ(session_parse(sink.bytes, sink.len, "", &folded), 0);
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
