/* exit() while profiling, without lua_close(): the stream is complete. */

#include "session.h"

#define STREAM "exit.bin"

static FILE *out;
static Sink sink;

static int saving_on_stop(void *ctx, uint8_t *buf)
{
  if (sink_on_stop(ctx, buf) == 0 && sink.stops == 1 &&
      fwrite(sink.bytes, 1, sink.len, out) == sink.len)
    return fclose(out);
  return 1;
}

int main(void)
{
  pid_t pid = fork();
  uint8_t *bytes = (uint8_t *)malloc(SINK_MAX);
  size_t n;
  char *folded;
  int status;
  REQUIRE(pid >= 0 && bytes != NULL);
  if (pid == 0) {
    lua_State *L = session_vm();
    struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
    luaM_sysprof_set_on_stop(saving_on_stop);
    out = fopen(STREAM, "wb");
    REQUIRE(out != NULL);
    CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
    session_run(L, 20);
    exit(check_status() ? 1 : 42);
  }
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
  out = fopen(STREAM, "rb");
  REQUIRE(out != NULL);
  n = fread(bytes, 1, SINK_MAX, out);
  fclose(out);
  CHECK_EQ(session_parse(bytes, n, "", &folded), 0);
  CHECK(folded_count(folded, "main") >= 15);
  return check_status();
}
