/* exit() during a profile runs the program's own functions before or after the end of the
** profile, in the order of their registration. They may stop the profile, close the VM,
** or start a new profile.
*/

#include "session.h"

#define STREAM "at_exit.bin"

static lua_State *L;
static Sink sink;
static struct luam_Sysprof_Options opt;

/* The stream in memory goes into a file, whenever it ends. */
static int saving_on_stop(void *ctx, uint8_t *buf)
{
  FILE *f = fopen(STREAM, "wb");
  (void)buf;
  if (ctx != &sink || ++sink.stops > 1 || !f) _exit(90);
  if (fwrite(sink.bytes, 1, sink.len, f) != sink.len || fclose(f) != 0) _exit(91);
  return 0;
}

static void is_running(void)
{
  if (sink.stops != 0) _exit(92);
  session_work(L);
}

static void is_over(void)
{
  session_work(L);
  if (sink.stops != 1 || luaM_sysprof_stop(L) != PROFILE_ERRRUN) _exit(93);
}

static void stops(void)
{
  if (luaM_sysprof_stop(L) != PROFILE_SUCCESS || sink.stops != 1) _exit(94);
}

static void closes(void)
{
  lua_close(L);
  if (sink.stops != 1) _exit(95);
}

static void starts_again(void)
{
  struct luam_Sysprof_Options counters = opt;
  counters.mode = LUAM_SYSPROF_DEFAULT;
  if (luaM_sysprof_start(L, &counters) != PROFILE_SUCCESS) _exit(96);
  session_work(L);
}

static void run(void (*before)(void), void (*after)(void))
{
  L = session_vm();
  opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  CHECK_EQ(luaM_sysprof_set_on_stop(saving_on_stop), PROFILE_SUCCESS);
  if (before) REQUIRE(atexit(before) == 0);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  if (after) REQUIRE(atexit(after) == 0);
  session_run(L, 30);
  exit(check_failures ? 97 : 0);
}

int main(void)
{
  /* Registered before the start: runs after the profile's end. */
  static void (*const cases[][2])(void) = {
    { NULL, is_running }, { is_over, NULL },      { is_over, is_running },
    { closes, NULL },     { NULL, stops },        { is_over, stops },
    { NULL, closes },     { starts_again, NULL }, { starts_again, stops },
  };
  uint8_t *bytes = (uint8_t *)malloc(SINK_MAX);
  size_t i;
  REQUIRE(bytes != NULL);
  for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    pid_t pid;
    char *folded;
    size_t n;
    FILE *f;
    int status;
    remove(STREAM);
    fflush(stdout);
    REQUIRE((pid = fork()) >= 0);
    if (pid == 0) run(cases[i][0], cases[i][1]);
    while (waitpid(pid, &status, 0) < 0) REQUIRE(errno == EINTR);
    if (status != 0) printf("case %zu: status %x\n", i, (unsigned)status);
    CHECK_EQ(status, 0);
    f = fopen(STREAM, "rb");
    REQUIRE(f != NULL);
    n = fread(bytes, 1, SINK_MAX, f);
    fclose(f);
    CHECK_EQ(session_parse(bytes, n, "", &folded), 0);
    CHECK(folded_count(folded, "work.lua") > 0);
    free(folded);
  }
  free(bytes);
  return check_status();
}
