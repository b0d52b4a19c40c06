/* The RFC's example: a custom writer, here into memory. The reader reads the stream, also
** if the writer swaps the buffer each time.
*/

#include "session.h"

#define BUFFER_SIZE 8192

static uint8_t *spare;

static size_t swapping_writer(const void **data, size_t len, void *ctx)
{
  const void *full = *data;
  size_t n = sink_writer(data, len, ctx);
  *data = spare;
  spare = (uint8_t *)(uintptr_t)full;
  memset(spare, 0xee, BUFFER_SIZE);
  return n;
}

static void profile(lua_State *L, int mode, int swap)
{
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, mode, BUFFER_SIZE);
  uint64_t samples;
  char *folded;
  spare = (uint8_t *)malloc(BUFFER_SIZE);
  REQUIRE(spare != NULL);
  if (swap) luaM_sysprof_set_writer(swapping_writer);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  session_run(L, 300);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  samples = session_samples();
  CHECK_EQ(sink.stops, 1);
  CHECK(sink.stop_buf == (swap && sink.writes % 2 ? spare : sink.buf) ||
	sink.stop_buf != spare);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "", &folded), 0);
  CHECK_EQ(folded_count(folded, ""), samples); /* No sample is lost. */
  if (mode == LUAM_SYSPROF_CALLGRAPH)
    CHECK(folded_count(folded, "main") > samples * 9 / 10);
  CHECK(folded_count(folded, "work.lua:1") > 0);
  free(folded);
  if (swap) { /* The two have been handed to and fro. */
    free(spare);
    free(sink.stop_buf);
    free(sink.bytes);
  } else {
    free(spare);
    sink_free(&sink);
  }
}

int main(void)
{
  lua_State *L = session_vm();
  int swap;
  session_script(L, "jit.off()");
  for (swap = 0; swap < 2; swap++) {
    profile(L, LUAM_SYSPROF_LEAF, swap);
    profile(L, LUAM_SYSPROF_CALLGRAPH, swap);
  }
  lua_close(L);
  return check_status();
}
