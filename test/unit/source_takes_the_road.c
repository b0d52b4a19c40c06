/* TIMEOUT: 600
** A source of samples of a VM, in ordinary code, beside a clock at 10 kHz: each sample that
** the session counts comes out, with its weight, objects, labels and the things that ended.
** Compiled code takes them, two threads that run the VM in turn, and a thread beside stops
** the profile while they are taken.
*/

#include <pthread.h>

#include "session.h"
#include "stream_sums.h"
#include "../lib/hosts/road_source.c"

#define TAKES  20000
#define STOPS  40 /* Profiles that another thread stops. */
#define THINGS 64
#define LABELS 50

static lua_State *L;

/* What the VM has taken, and what became of it. */
static struct {
  uint64_t samples, bytes, objects, ended, marks, labelled[LABELS];
  uint32_t session[THINGS + 1];
} did;

static uint32_t seed = 7;

static uint32_t any(uint32_t n)
{
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % n;
}

/* Take a sample of a random size, which begins a thing or ends the last one of its number. */
static __attribute__((noinline)) int take(lua_State *L1)
{
  uint32_t bytes = 1 + any(5000), objects = 1 + any(3), thing = 1 + any(THINGS);
  uint32_t labels = any(3) ? any(LABELS) : 0, session;
  (void)L1;
  if (did.session[thing] && any(2) && road_end(did.session[thing], thing, any(9))) {
    did.ended++;
    did.session[thing] = 0;
  }
  if (any(100) == 0) did.marks += road_mark(SPF_MARK_LABELS, 1);
  session = road_take(bytes, objects, thing, any(70), labels);
  if (!session) return 0;
  did.samples++;
  did.bytes += bytes;
  did.objects += objects;
  did.labelled[labels] += bytes;
  did.session[thing] = session;
  return 0;
}

static void begin(struct luam_Sysprof_Options *opt)
{
  memset(&did, 0, sizeof(did));
  CHECK_EQ(luaM_sysprof_start(L, opt), PROFILE_SUCCESS);
}

/* Samples of an event, in all sessions. */
static uint64_t sum_of(const StreamSums *sums, int counter)
{
  uint64_t n = 0;
  int i;
  for (i = 0; i < sums->n; i++) n += sums->s[i].counter[SUMS_OF_EVENT(0, counter)];
  return n;
}

/* Sum of the folded stacks of an event with some options. */
static uint64_t folded_sum(const Sink *sink, const char *options, const char *text)
{
  char *folded;
  uint64_t sum;
  CHECK_EQ(session_parse(sink->bytes, sink->len, options, &folded), 0);
  sum = folded_count(folded, text);
  free(folded);
  return sum;
}

static void check(Sink *sink, int is_exact)
{
  static StreamSums sums;
  char options[80];
  int i;
  sums_read(&sums, sink->bytes, sink->len);
  CHECK(sums.fault == NULL);
  CHECK(sums_all_ended(&sums));
  CHECK_EQ(sum_of(&sums, SPF_EVENT_SAMPLES), did.samples);
  CHECK_EQ(sum_of(&sums, SPF_EVENT_TOTAL), did.bytes);
  CHECK_EQ(sum_of(&sums, SPF_EVENT_LOST_ENDS), 0);
  if (!is_exact) return;
  CHECK_EQ(folded_sum(sink, "--event=road --weight=event", ""), did.bytes);
  CHECK_EQ(folded_sum(sink, "--event=road --weight=objects", ""), did.objects);
  CHECK(folded_sum(sink, "--event=road --weight=event", "work.lua:3") == did.bytes);
  for (i = 1; i < LABELS; i += 7) {
    snprintf(options, sizeof(options), "--event=road --weight=event --label=request=r%d",
	     i);
    CHECK_EQ(folded_sum(sink, options, ""), did.labelled[i]);
  }
}

static struct luam_Sysprof_Options options(Sink *sink)
{
  struct luam_Sysprof_Options opt = session_options(sink, LUAM_SYSPROF_CALLGRAPH,
						    1024 * 1024);
  opt.clocks = "road,cpu";
  opt.interval_ns = 100000;
  return opt;
}

static void run(int n)
{
  lua_getglobal(L, "work");
  lua_pushinteger(L, n);
  if (lua_pcall(L, 1, 0, 0) != 0) printf("FAILED: %s\n", lua_tostring(L, -1)), exit(1);
}

static void check_exact(void)
{
  static Sink sink;
  struct luam_Sysprof_Options opt = options(&sink);
  begin(&opt);
  run(TAKES);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(did.samples, TAKES);
  CHECK(did.ended > TAKES / 10 && did.marks > TAKES / 1000);
  check(&sink, 1);
  sink_free(&sink);
}

/* -- Another thread stops ---------------------------------------------------- */

static int stopped;

static void *stop(void *arg)
{
  nanosleep((const struct timespec *)arg, NULL);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  __atomic_store_n(&stopped, 1, __ATOMIC_SEQ_CST);
  return NULL;
}

static void check_stops(void)
{
  uint64_t samples = 0;
  int i;
  for (i = 0; i < STOPS; i++) {
    static Sink sink;
    struct luam_Sysprof_Options opt = options(&sink);
    struct timespec wait = { 0, 1000 * (long)(1 + any(9000)) };
    pthread_t thread;
    __atomic_store_n(&stopped, 0, __ATOMIC_SEQ_CST);
    begin(&opt);
    REQUIRE(pthread_create(&thread, NULL, stop, &wait) == 0);
    while (!__atomic_load_n(&stopped, __ATOMIC_SEQ_CST)) run(20);
    pthread_join(thread, NULL);
    run(20); /* Nothing records it. */
    CHECK_EQ(road_take(1, 1, 1, 1, 1), 0);
    check(&sink, i == 0);
    samples += did.samples;
    sink_free(&sink);
  }
  printf("%llu samples until other threads stopped\n", (unsigned long long)samples);
  CHECK(samples > STOPS);
}

/* -- Two threads run the VM in turn ------------------------------------------ */

static uint32_t session_elsewhere;

static void *run_here(void *arg)
{
  time_t deadline = time(NULL) + 100;
  (void)arg;
  CHECK_EQ(luaM_sysprof_moved(L), PROFILE_SUCCESS);
  /* The scan has found this thread. */
  while (!(session_elsewhere = road_take(0, 0, 0, 0, 0)) && time(NULL) < deadline) {}
  did.samples++;
  run(TAKES / 10);
  return NULL;
}

static void check_threads(void)
{
  static StreamSums sums;
  static Sink sink;
  struct luam_Sysprof_Options opt = options(&sink);
  int i;
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  opt.flush = LUAM_SYSPROF_FLUSH_THREAD;
  begin(&opt);
  run(TAKES / 10);
  for (i = 0; i < 3; i++) {
    pthread_t thread;
    uint32_t here;
    REQUIRE(pthread_create(&thread, NULL, run_here, NULL) == 0);
    pthread_join(thread, NULL);
    CHECK_EQ(luaM_sysprof_moved(L), PROFILE_SUCCESS);
    here = road_take(0, 0, 0, 0, 0);
    did.samples++;
    CHECK(here != 0 && session_elsewhere != 0 && here != session_elsewhere);
    run(TAKES / 10);
  }
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  sums_read(&sums, sink.bytes, sink.len);
  CHECK(sums.fault == NULL);
  CHECK_EQ(sum_of(&sums, SPF_EVENT_SAMPLES), did.samples);
  CHECK_EQ(sum_of(&sums, SPF_EVENT_TOTAL), did.bytes);
  sink_free(&sink);
}

int main(void)
{
  L = session_vm();
  lua_register(L, "take", take);
  session_script(
    L, "local take, d = take, 0\n"
       "local function deep(n) if n > 0 then return (deep(n - 1)) end take() end\n"
       "function work(n) for i = 1, n do d = (d + 7) % 20 deep(d) end end\n");
  check_exact();
  check_stops();
  check_threads();
  lua_close(L);
  return check_status();
}
