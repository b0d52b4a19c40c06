/* TIMEOUT: 600
** A VM that its host moves between threads, also by resuming its coroutines there. Only
** the thread that runs the VM reads its Lua stacks. If the host reports the move, the
** profiler samples the new thread. If not, the old thread has host stacks only, and with
** THREADS_ALL the profiler finds the new one.
*/

#include "cpu_work.h"
#include "stream_sums.h"

#define NTHREADS     3
#define ELSEWHERE_US 50000 /* CPU time of a thread that the VM has moved to. */

static lua_State *L, *co;
static int announce, all_threads;
static uint32_t threads_before; /* That were profiled, before the VM has moved. */
static time_t deadline;

/* Has the thread used some CPU time since it was noticed? */
static int used_enough(lua_State *L1)
{
  static __thread uint64_t till;
  struct luam_Sysprof_SelfReport r;
  int noticed;
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  noticed = !all_threads || r.sessions > threads_before;
  if (!noticed && time(NULL) > deadline) {
    CHECK(!"the thread was not noticed in time");
    noticed = 1;
  }
  if (till == 0 && noticed) till = cpu_own_us() + ELSEWHERE_US;
  lua_pushboolean(L1, till != 0 && cpu_own_us() > till);
  return 1;
}

/* Runs on another thread while the first one is busy in C. */
static void *run_moved(void *arg)
{
  (void)arg;
  if (announce) CHECK_EQ(luaM_sysprof_moved(L), PROFILE_SUCCESS);
  lua_getglobal(L, "elsewhere");
  CHECK_EQ(lua_pcall(L, 0, 0, 0), 0);
  return NULL;
}

static void *run_coroutine(void *arg)
{
  (void)arg;
  if (announce) CHECK_EQ(luaM_sysprof_moved(L), PROFILE_SUCCESS);
  CHECK_EQ(lua_resume(co, 0), LUA_YIELD);
  return NULL;
}

static _Atomic int waits;

__attribute__((noinline)) static void host_waits(void)
{
  uint64_t least = cpu_own_us() + ELSEWHERE_US;
  while (waits || cpu_own_us() < least) cpu_burn(1000);
}

static void *done_when_joined(void *arg)
{
  pthread_t *t = (pthread_t *)arg;
  REQUIRE(pthread_join(*t, NULL) == 0);
  waits = 0;
  return NULL;
}

/* Run a function on another thread, while this one is busy. */
static void elsewhere(void *(*f)(void *))
{
  pthread_t t, joiner;
  struct luam_Sysprof_SelfReport r;
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  threads_before = r.sessions;
  deadline = time(NULL) + 200;
  waits = 1;
  t = cpu_thread(f, NULL);
  joiner = cpu_thread(done_when_joined, &t);
  host_waits();
  REQUIRE(pthread_join(joiner, NULL) == 0);
}

static void profile(int threads, int announced)
{
  static StreamSums sums;
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  uint64_t not_vm = 0;
  char *folded;
  int i;
  L = session_vm();
  announce = announced;
  all_threads = threads == LUAM_SYSPROF_THREADS_ALL;
  lua_register(L, "used_enough", used_enough);
  session_script(
    L,
    "local function burn(over) local e = os.clock() + 0.06"
    "  repeat local t = {} for i = 1, 2000 do t[i] = {i} end until os.clock() > e and over() end\n"
    "function here() burn(function() return true end) end\n"
    "function elsewhere() burn(used_enough) local f = load('return 1') f() end\n"
    "function in_coroutine() while true do burn(used_enough) coroutine.yield() end end\n");
  co = lua_newthread(L);
  lua_setglobal(L, "co");
  lua_getglobal(co, "in_coroutine");
  opt.threads = (uint8_t)threads;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  for (i = 0; i < NTHREADS; i++) {
    if (announce) CHECK_EQ(luaM_sysprof_moved(L), PROFILE_SUCCESS);
    lua_getglobal(L, "here");
    CHECK_EQ(lua_pcall(L, 0, 0, 0), 0);
    elsewhere(i == 1 ? run_coroutine : run_moved);
  }
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(sink.stops, 1);
  sums_read(&sums, sink.bytes, sink.len);
  CHECK(sums.fault == NULL);
  CHECK(sums_all_ended(&sums));
  for (i = 0; i < sums.n; i++) {
    const SessionSums *s = &sums.s[i];
    not_vm += s->counter[SUMS_LUA_NOT_VM];
    CHECK(s->weight[0] <= s->counter[SUMS_TOTAL(0)]);
  }
  CHECK_EQ(session_parse(sink.bytes, sink.len, "", &folded), 0);
  CHECK(folded_count(folded, "work.lua:2") > 5);
  /* Before glibc 2.34, ticks come where clone has no unwind information. */
  CHECK_EQ(folded_count(folded, "missing"),
	   folded_count(folded, "missing: no unwind information];__clone "));
  printf("threads %d announced %d: %llu not in the VM, %llu here, %llu elsewhere, "
	 "%llu in the coroutine, %llu waits\n",
	 threads, announced, (unsigned long long)not_vm,
	 (unsigned long long)folded_count(folded, "work.lua:2"),
	 (unsigned long long)folded_count(folded, "work.lua:3"),
	 (unsigned long long)folded_count(folded, "work.lua:4"),
	 (unsigned long long)folded_count(folded, "host_waits"));
  if (threads == LUAM_SYSPROF_THREADS_ALL || announced) {
    CHECK(folded_count(folded, "work.lua:3") > 5);
    CHECK(folded_count(folded, "work.lua:4") > 5);
  } else { /* Only the first thread is sampled, and has nothing of it. */
    CHECK_EQ(folded_count(folded, "work.lua:3"), 0);
    CHECK_EQ(folded_count(folded, "work.lua:4"), 0);
    CHECK(folded_count(folded, "host_waits") > 5);
  }
  /* What waits in C has no Lua function. */
  {
    const char *line = folded;
    while ((line = strstr(line, "host_waits")) != NULL) {
      const char *end = strchr(line, '\n'), *hit = strstr(line, "work.lua");
      CHECK(!hit || (end && hit > end));
      line += 10;
    }
  }
  free(folded);
  lua_close(L);
  sink_free(&sink);
}

int main(void)
{
  int threads, announced;
  for (threads = 0; threads <= LUAM_SYSPROF_THREADS_ALL; threads++)
    for (announced = 0; announced < 2; announced++) profile(threads, announced);
  return check_status();
}
