/* TIMEOUT: 300
** The event coroutine-wait in a host program, which makes coroutines, resumes them and yields in C
** functions. Each wait is in the profile once, with its time between two bounds that the program
** measures: with a stop by another thread, an exit without a stop, forks, two VMs on two threads,
** and a VM that is closed.
*/

#include <pthread.h>

#include "session.h"

#define COROUTINES 12
#define SLACK_NS   100 /* Of a wait: two reads of two clocks, each some 25 ns apart. */
#define STREAM     "exit.bin"

typedef struct Coroutine {
  lua_State *L;
  int is_c;
  double t0, s0; /* Just before its yield, and just after. */
} Coroutine;

/* A VM, its coroutines, and what it has measured. */
typedef struct Host {
  lua_State *L;
  Coroutine co[COROUTINES];
  unsigned int random;
  int recording;
  double began_least, began_most; /* The profile began between these. */
  long waits, c_waits;
  double least, most;
} Host;

static __thread Host *host; /* Of this thread. */
static __thread Coroutine *current;

static double now_ns(void)
{
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static unsigned int draw(Host *h, unsigned int n)
{
  h->random = h->random * 1664525u + 1013904223u;
  return (h->random >> 8) % n;
}

/* -- Coroutines -------------------------------------------------------------- */

static int pause_in_c(lua_State *L)
{
  current->t0 = now_ns();
  return lua_yield(L, lua_gettop(L));
}

/* The yield has returned. */
static int goes_on(lua_State *L)
{
  double t0 = current->t0 > host->began_least ? current->t0 : host->began_least;
  (void)L;
  if (host->recording && current->t0 > 0) host->most += now_ns() - t0;
  return 0;
}

/* A Lua function is about to call coroutine.yield. */
static int measure(lua_State *L)
{
  (void)L;
  current->t0 = now_ns();
  return 0;
}

static int c_body(lua_State *L)
{
  current->t0 = now_ns();
  return lua_yield(L, lua_gettop(L));
}

static void coroutine_new(Host *h, Coroutine *co, int i)
{
  co->L = lua_newthread(h->L);
  lua_rawseti(h->L, LUA_REGISTRYINDEX, 1000 + i); /* Replaces the one that has ended. */
  co->is_c = i % 3 == 0;
  co->t0 = 0;
  if (co->is_c) lua_pushcfunction(co->L, c_body);
  else lua_getglobal(co->L, i % 3 == 1 ? "body" : "deep_body");
}

/* Resume a coroutine. It may end. */
static void step(Host *h, int i)
{
  Coroutine *co = &h->co[i];
  int waits = lua_status(co->L) == LUA_YIELD, status;
  double s1;
  current = co;
  s1 = now_ns();
  if (waits && h->recording) {
    double s0 = co->s0 > h->began_most ? co->s0 : h->began_most;
    h->least += s1 - s0;
    h->waits++;
    h->c_waits += co->is_c;
  }
  status = lua_resume(co->L, 0);
  co->s0 = now_ns();
  CHECK(status == LUA_YIELD || status == 0);
  if (waits &&
      co->is_c) { /* Its body has ended: a yield is the last that a C function does. */
    double t0 = co->t0 > h->began_least ? co->t0 : h->began_least;
    if (h->recording) h->most += co->s0 - t0;
  }
  if (status == 0) coroutine_new(h, co, i);
}

/* Most waits are short, some are long. */
static void run(Host *h, int steps)
{
  int i;
  for (i = 0; i < steps; i++) {
    unsigned int kind = draw(h, 30);
    step(h, (int)draw(h, COROUTINES));
    if (kind == 0) usleep(draw(h, 400));
    if (kind == 1) {
      double till = now_ns() + draw(h, 100000);
      while (now_ns() < till)
	;
    }
    if (kind == 2) lua_gc(h->L, LUA_GCCOLLECT, 0);
  }
}

static void host_new(Host *h, unsigned int seed)
{
  int i;
  memset(h, 0, sizeof(*h));
  h->L = session_vm();
  h->random = seed;
  lua_register(h->L, "pause", pause_in_c);
  lua_register(h->L, "goes_on", goes_on);
  lua_register(h->L, "measure", measure);
  session_script(h->L, "function body() for i = 1, 20 do pause(i) goes_on() end end\n"
		       "local function deep(n) if n > 0 then deep(n - 1) end\n"
		       "  pcall(pause) goes_on() coroutine.yield(measure()) goes_on() end\n"
		       "function deep_body() deep(5) end\n");
  host = h;
  for (i = 0; i < COROUTINES; i++) coroutine_new(h, &h->co[i], i);
}

/* -- Profiles ---------------------------------------------------------------- */

static struct luam_Sysprof_Options options(Sink *sink, const char *clocks)
{
  struct luam_Sysprof_Options opt = session_options(sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  opt.clocks = clocks;
  return opt;
}

static void start(Host *h, struct luam_Sysprof_Options *opt)
{
  h->waits = h->c_waits = 0;
  h->least = h->most = 0;
  h->began_least = now_ns();
  CHECK_EQ(luaM_sysprof_start(h->L, opt), PROFILE_SUCCESS);
  h->began_most = now_ns();
  h->recording = 1;
}

static void check_bytes(const Host *h, const uint8_t *bytes, size_t len, const char *what)
{
  double slack = SLACK_NS * (double)h->waits, ns;
  char *text;
  CHECK_EQ(session_parse(bytes, len, "--event=coroutine-wait --weight=waits", &text), 0);
  CHECK_EQ(folded_count(text, ""), h->waits);
  free(text);
  CHECK_EQ(session_parse(bytes, len, "--event=coroutine-wait", &text), 0);
  ns = (double)folded_count(text, "");
  printf("%s: %ld waits, %.3f ms, expected %.3f to %.3f\n", what, h->waits, ns / 1e6,
	 h->least / 1e6, h->most / 1e6);
  CHECK(ns >= h->least - slack && ns <= h->most + slack);
  free(text);
}

static void check(const Host *h, Sink *sink, const char *what)
{
  check_bytes(h, sink->bytes, sink->len, what);
  sink_free(sink);
}

static void exact(Host *h, const char *clocks)
{
  Sink sink;
  struct luam_Sysprof_Options opt = options(&sink, clocks);
  char *text;
  run(h, 100);
  start(h, &opt);
  run(h, 600);
  h->recording = 0;
  CHECK_EQ(luaM_sysprof_stop(h->L), PROFILE_SUCCESS);
  if (strstr(clocks, "=0/")) {
    /* Each has its stack, or its line. */
    CHECK_EQ(
      session_parse(sink.bytes, sink.len, "--event=coroutine-wait --weight=waits", &text),
      0);
    CHECK(folded_count(text, "c_body") <= (uint64_t)h->c_waits);
    CHECK(folded_count(text, "c_body") > 0);
    CHECK(folded_count(text, "body (work.lua:1);") > 0);
    CHECK(folded_count(text, "pcall;") > 0);
    CHECK_EQ(folded_count(text, "[short waits]"), 0);
    free(text);
  }
  check(h, &sink, clocks);
}

static void *stop_it(void *arg)
{
  CHECK_EQ(luaM_sysprof_stop((lua_State *)arg), PROFILE_SUCCESS);
  return NULL;
}

/* Another thread may not read the functions of sums. The next profile is as exact. */
static void stop_by_another_thread(Host *h)
{
  int i;
  for (i = 0; i < 5; i++) {
    Sink sink;
    struct luam_Sysprof_Options opt = options(&sink, "coroutine-wait");
    pthread_t thread;
    start(h, &opt);
    run(h, 300);
    h->recording = 0;
    REQUIRE(pthread_create(&thread, NULL, stop_it, h->L) == 0);
    pthread_join(thread, NULL);
    check(h, &sink, "stop by another thread");
    run(h, 100);
    exact(h, "coroutine-wait");
  }
}

/* -- Other ends -------------------------------------------------------------- */

static FILE *out;
static Sink exit_sink;

static int saving_on_stop(void *ctx, uint8_t *buf)
{
  if (sink_on_stop(ctx, buf) == 0 &&
      fwrite(exit_sink.bytes, 1, exit_sink.len, out) == exit_sink.len)
    return fclose(out);
  return 1;
}

static void exit_without_stop(void)
{
  uint8_t *bytes = (uint8_t *)malloc(SINK_MAX);
  Host *h = (Host *)calloc(1, sizeof(Host)), *result;
  int fd[2], status;
  size_t n;
  pid_t pid;
  REQUIRE(bytes != NULL && h != NULL && pipe(fd) == 0);
  pid = flush_and_fork();
  if (pid == 0) {
    struct luam_Sysprof_Options opt;
    host_new(h, 7);
    opt = options(&exit_sink, "coroutine-wait");
    luaM_sysprof_set_on_stop(saving_on_stop);
    out = fopen(STREAM, "wb");
    REQUIRE(out != NULL);
    start(h, &opt);
    run(h, 500);
    REQUIRE(write(fd[1], h, sizeof(*h)) == sizeof(*h));
    exit(check_status() ? 1 : 42);
  }
  result = (Host *)calloc(1, sizeof(Host));
  REQUIRE(result != NULL && read(fd[0], result, sizeof(*result)) == sizeof(*result));
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
  out = fopen(STREAM, "rb");
  REQUIRE(out != NULL);
  n = fread(bytes, 1, SINK_MAX, out);
  fclose(out);
  check_bytes(result, bytes, n, "exit");
  close(fd[0]);
  close(fd[1]);
  free(bytes);
  free(h);
  free(result);
}

/* A child goes on without the event, and may have its own. */
static void forks(Host *h)
{
  Sink sink;
  struct luam_Sysprof_Options opt = options(&sink, "coroutine-wait");
  int i, status;
  start(h, &opt);
  for (i = 0; i < 4; i++) {
    pid_t pid;
    run(h, 100);
    pid = flush_and_fork();
    if (pid == 0) {
      check_failures = 0;
      h->recording = 0;
      run(h, 200);
      if (i > 1) {
	char folder[] = "childXXXXXX";
	REQUIRE(mkdtemp(folder) != NULL && chdir(folder) == 0);
	exact(h, "coroutine-wait");
	exact(h, "cpu,coroutine-wait/threshold=0/");
      }
      if (i % 2) lua_close(h->L);
      exit(check_status());
    }
    REQUIRE(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  run(h, 100);
  h->recording = 0;
  CHECK_EQ(luaM_sysprof_stop(h->L), PROFILE_SUCCESS);
  check(h, &sink, "forks");
}

/* A VM of its own. */
typedef struct Vm {
  Host h;
  Sink sink;
  int closes;
} Vm;

static pthread_barrier_t begun;

static void *run_vm(void *arg)
{
  Vm *vm = (Vm *)arg;
  struct luam_Sysprof_Options opt = options(&vm->sink, "coroutine-wait/threshold=50000/");
  host_new(&vm->h, (unsigned int)(uintptr_t)arg);
  pthread_barrier_wait(&begun);
  start(&vm->h, &opt);
  run(&vm->h, 800);
  vm->h.recording = 0;
  if (!vm->closes) CHECK_EQ(luaM_sysprof_stop(vm->h.L), PROFILE_SUCCESS);
  lua_close(vm->h.L);
  CHECK_EQ(vm->sink.stops, 1);
  return NULL;
}

static void two_vms(void)
{
  static Vm vm[2];
  pthread_t thread[2];
  int i;
  memset(vm, 0, sizeof(vm));
  vm[1].closes = 1;
  REQUIRE(pthread_barrier_init(&begun, NULL, 2) == 0);
  for (i = 0; i < 2; i++) REQUIRE(pthread_create(&thread[i], NULL, run_vm, &vm[i]) == 0);
  for (i = 0; i < 2; i++) pthread_join(thread[i], NULL);
  for (i = 0; i < 2; i++) check(&vm[i].h, &vm[i].sink, i ? "closed VM" : "one of two VMs");
}

int main(void)
{
  static const char *const clocks[] = { "coroutine-wait", "coroutine-wait/threshold=0/",
					"coroutine-wait/threshold=1000000000/",
					"cpu,coroutine-wait/threshold=0/",
					"wall,coroutine-wait" };
  static Host h;
  size_t i;
  host_new(&h, 1);
  for (i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) exact(&h, clocks[i]);
  stop_by_another_thread(&h);
  exit_without_stop();
  forks(&h);
  two_vms();
  lua_close(h.L);
  return check_status();
}
