/* TIMEOUT: 600
** Odd ends of a profiled thread and of its profile: pthread_exit and a return during the
** profile; a stop or an exit by another thread while the VM runs; a stop in a callback of
** Lua; vfork.
*/

#include "cpu_work.h"
#include "stream_sums.h"

static Sink sink;
static lua_State *L;
static _Atomic int running, finish;

static void check_stream(uint64_t at_least)
{
  static StreamSums sums;
  char *folded;
  sums_read(&sums, sink.bytes, sink.len);
  CHECK(sums.fault == NULL);
  CHECK_EQ(sums.n, 1);
  CHECK(sums_all_ended(&sums));
  CHECK(sums.s[0].samples[0] >= at_least);
  CHECK(sums.s[0].weight[0] <= sums.s[0].counter[SUMS_TOTAL(0)]);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "", &folded), 0);
  CHECK_EQ(folded_count(folded, ""), sums.s[0].samples[0]);
  if (at_least) CHECK(folded_count(folded, "work.lua") > 0);
  free(folded);
}

static const char *const clocks[] = { "cpu", "wall-signal" };

static void start(const char *clock)
{
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  opt.clocks = clock;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
}

static void *start_and_end(void *arg)
{
  start(clocks[*(int *)arg & 1]);
  session_run(L, 5);
  if (*(int *)arg & 2) pthread_exit(NULL);
  return NULL;
}

/* The thread is gone; the profile waits for its stop or for the VM's end. */
static void ends_while_running(int how)
{
  pthread_t t;
  L = session_vm();
  t = cpu_thread(start_and_end, &how);
  REQUIRE(pthread_join(t, NULL) == 0);
  session_work(L); /* Is not sampled: nobody said that the VM has moved. */
  if (how & 4) {
    CHECK_EQ(luaM_sysprof_moved(L), PROFILE_SUCCESS);
    session_run(L, session_samples() + 5);
  }
  if (how & 8) CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  lua_close(L);
  CHECK_EQ(sink.stops, 1);
  check_stream(5);
  sink_free(&sink);
}

static void *run_until_finish(void *arg)
{
  start((const char *)arg);
  session_run(L, 5);
  running = 1;
  while (!finish) session_work(L);
  return NULL;
}

/* Another thread stops it while the VM runs, and starts it again. */
static void stopped_by_another(const char *clock)
{
  pthread_t t;
  int i;
  L = session_vm();
  session_script(L, "function work() local t = {} for i = 1, 2000 do t[i] = {} end"
		    " load('local function f() return 1 end return f')()() end");
  running = finish = 0;
  t = cpu_thread(run_until_finish, (void *)clock);
  while (!running) cpu_sleep_us(1000);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_ERRRUN);
  check_stream(5);
  sink_free(&sink);
  for (i = 0; i < 20; i++) { /* Of a thread that does not run the VM. */
    start(clock);
    cpu_burn(5000);
    CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
    check_stream(0);
    sink_free(&sink);
  }
  finish = 1;
  REQUIRE(pthread_join(t, NULL) == 0);
  lua_close(L);
}

/* exit() by another thread than the one that runs the VM. */
static int saved_on_stop(void *ctx, uint8_t *buf)
{
  FILE *f = fopen("exit.bin", "wb");
  (void)buf;
  REQUIRE(f != NULL && ctx == &sink);
  REQUIRE(fwrite(sink.bytes, 1, sink.len, f) == sink.len);
  return fclose(f);
}

static void *exit_soon(void *arg)
{
  (void)arg;
  while (session_samples() < 5) cpu_sleep_us(1000);
  exit(0);
}

static void exit_by_another(const char *clock)
{
  pid_t pid;
  int status;
  pid = flush_and_fork();
  if (pid == 0) {
    struct luam_Sysprof_Options opt;
    L = session_vm();
    running = finish = 0;
    opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
    opt.clocks = clock;
    luaM_sysprof_set_on_stop(saved_on_stop);
    CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
    cpu_thread(exit_soon, NULL);
    for (;;) session_work(L);
  }
  while (waitpid(pid, &status, 0) < 0) REQUIRE(errno == EINTR);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  sink.bytes = (uint8_t *)malloc(SINK_MAX);
  sink.buf = NULL;
  {
    FILE *f = fopen("exit.bin", "rb");
    REQUIRE(f != NULL && sink.bytes != NULL);
    sink.len = fread(sink.bytes, 1, SINK_MAX, f);
    fclose(f);
  }
  check_stream(5);
  sink_free(&sink);
}

/* Lua code stops the profile that it is in, deep in callbacks, and starts one. */
static int stop_here(lua_State *L1)
{
  CHECK_EQ(luaM_sysprof_stop(L1), PROFILE_SUCCESS);
  return 0;
}

static void stopped_in_a_callback(void)
{
  L = session_vm();
  lua_register(L, "stop_here", stop_here);
  start("wall-signal");
  session_run(L, 20);
  session_script(
    L,
    "local co = coroutine.wrap(function() pcall(function()"
    " ('x'):gsub('x', function() table.sort({ 2, 1 }, function(a, b)"
    " if stop_here then stop_here() stop_here = nil end return a < b end) end) end) end) co()");
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_ERRRUN);
  check_stream(20);
  sink_free(&sink);
  start("wall-signal");
  session_run(L, 5);
  lua_close(L);
  check_stream(5);
  sink_free(&sink);
}

/* A child of vfork() runs on this thread's memory while the thread waits. */
static void vfork_while_running(const char *clock)
{
  uint64_t samples;
  int i, status;
  L = session_vm();
  start(clock);
  for (i = 0; i < 20; i++) {
    pid_t pid = vfork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      if (i & 1) execl("/bin/true", "true", (char *)NULL);
      _exit(0);
    }
    while (waitpid(pid, &status, 0) < 0) REQUIRE(errno == EINTR);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    session_work(L);
  }
  samples = session_samples();
  session_run(L, samples + 5); /* It goes on. */
  lua_close(L);
  check_stream(5);
  sink_free(&sink);
}

int main(void)
{
  int i;
  for (i = 0; i < 16; i++) ends_while_running(i);
  for (i = 0; i < 2; i++) {
    stopped_by_another(clocks[i]);
    exit_by_another(clocks[i]);
    vfork_while_running(clocks[i]);
  }
  stopped_in_a_callback();
  return check_status();
}
