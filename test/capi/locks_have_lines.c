/* TIMEOUT: 300
** Two threads with a VM each contend for a mutex and wait for a condition, by C functions and by
** the FFI. Each wait shows the system call futex, the function of pthreads, and the Lua line that
** called it, with the number and the time that the program has measured.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>

#include "wait_checks.h"

#define ROUNDS    20
#define NAP_US    5000 /* At least: far above the threshold. And so much more at most. */
#define NAP_MORE  7000
#define SLACK_NS  1e6 /* Another program may run between a call and the clock. */
#define EACH_NS   1e5 /* Switches of threads count for both sides. */
#define LOOKS_NS  2e7 /* Without records, a wait is as exact as a look. */
#define LINES_MAX 5

/* Ways to wait, by line of the script. */
static const struct {
  const char *caller, *function;
} ways[LINES_MAX] = {
  { "mutex_by_c (work.lua:6)", "pthread_mutex_lock" },
  { "mutex_by_ffi (work.lua:9)", "pthread_mutex_lock" },
  { "cond_by_c (work.lua:12)", "pthread_cond_wait" },
  { "cond_by_ffi (work.lua:15)", "pthread_cond_wait" },
  { "meet (work.lua:18)", "pthread_barrier_wait" }, /* Waits as long as the other thread. */
};
#define MEETS 4

static const char script[] =
  "local ffi = require('ffi')\n"
  "ffi.cdef 'int pthread_mutex_lock(void *); int pthread_cond_wait(void *, void *);'\n"
  "local C, m, c = ffi.C, ffi.cast('void *', mutex), ffi.cast('void *', cond)\n"
  "local function measured(n, f) local t0 = now() f() report(n, now() - t0) end\n"
  "function mutex_by_c()\n"
  "  take()\n"
  "end\n"
  "function mutex_by_ffi()\n"
  "  C.pthread_mutex_lock(m)\n"
  "end\n"
  "function cond_by_c()\n"
  "  wait_for_signal()\n"
  "end\n"
  "function cond_by_ffi()\n"
  "  C.pthread_cond_wait(c, m)\n"
  "end\n"
  "function meet()\n"
  "  wait_for_other()\n"
  "end\n"
  "local function meets() measured(5, meet) end\n"
  "local function hold() take() meets() nap() give() end\n"
  "local function wait(n, f) meets() measured(n, f) give() end\n"
  "local function signal() meets() nap() send() end\n"
  "local function listen(n, f)\n"
  "  take() meets() while not sent() do measured(n, f) end give()\n"
  "end\n"
  "function rounds(count, odd)\n"
  "  local mutexes, conds = { mutex_by_c, mutex_by_ffi }, { cond_by_c, cond_by_ffi }\n"
  "  for i = odd, count + odd - 1 do\n"
  "    for n = 1, 2 do\n"
  "      if i % 2 == 0 then hold() else wait(n, mutexes[n]) end\n"
  "      meets()\n"
  "      if i % 2 == 0 then signal() else listen(n + 2, conds[n]) end\n"
  "      meets()\n"
  "    end\n"
  "  end\n"
  "end\n";

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both;
static int is_sent; /* Under the mutex. */

/* -- What Lua calls ---------------------------------------------------------- */

static int take(lua_State *L)
{
  lua_pushinteger(L, pthread_mutex_lock(&mutex));
  return 1;
}

static int give(lua_State *L)
{
  lua_pushinteger(L, pthread_mutex_unlock(&mutex));
  return 1;
}

static int wait_for_signal(lua_State *L)
{
  lua_pushinteger(L, pthread_cond_wait(&cond, &mutex));
  return 1;
}

static int wait_for_other(lua_State *L)
{
  lua_pushinteger(L, pthread_barrier_wait(&both));
  return 1;
}

/* The listener then finds the mutex free. */
static int send(lua_State *L)
{
  pthread_mutex_lock(&mutex);
  is_sent = 1;
  pthread_mutex_unlock(&mutex);
  lua_pushinteger(L, pthread_cond_signal(&cond));
  return 1;
}

static int sent(lua_State *L)
{
  lua_pushboolean(L, is_sent);
  is_sent = 0;
  return 1;
}

/* A tick on the way into the call ends it before it sleeps. */
static int nap(lua_State *L)
{
  double till = real_ns() + 1e3 * (double)(NAP_US + random() % NAP_MORE), left;
  while ((left = till - real_ns()) > 0) usleep((useconds_t)(left / 1e3) + 1);
  lua_pushboolean(L, 1);
  return 1;
}

static int now(lua_State *L)
{
  lua_pushnumber(L, real_ns());
  return 1;
}

/* -- A thread ------------------------------------------------------------------ */

/* What a thread has measured. */
typedef struct Truth {
  int n;
  double ns, longest;
} Truth;

typedef struct Job {
  lua_State *L;
  Sink sink;
  struct luam_Sysprof_Options opt;
  int odd; /* It waits in odd rounds, not in even ones; or the other way round. */
  Truth of[LINES_MAX];
} Job;

/* A function of a thread's VM, with the job as upvalue. */
static int report(lua_State *L)
{
  Job *job = (Job *)lua_touserdata(L, lua_upvalueindex(1));
  Truth *t = &job->of[lua_tointeger(L, 1) - 1];
  double ns = lua_tonumber(L, 2);
  t->n++;
  t->ns += ns;
  if (ns > t->longest) t->longest = ns;
  return 0;
}

static void *run(void *arg)
{
  Job *job = (Job *)arg;
  CHECK_EQ(luaM_sysprof_start(job->L, &job->opt), PROFILE_SUCCESS);
  lua_getglobal(job->L, "rounds");
  lua_pushinteger(job->L, ROUNDS);
  lua_pushinteger(job->L, job->odd);
  if (lua_pcall(job->L, 2, 0, 0) != 0) {
    printf("%s\n", lua_tostring(job->L, -1));
    exit(1); /* The other thread would wait forever. */
  }
  CHECK_EQ(luaM_sysprof_stop(job->L), PROFILE_SUCCESS);
  return NULL;
}

static void job_init(Job *job, const char *clock, int odd)
{
  static const luaL_Reg functions[] = {
    { "take", take },
    { "give", give },
    { "send", send },
    { "sent", sent },
    { "nap", nap },
    { "now", now },
    { "wait_for_signal", wait_for_signal },
    { "wait_for_other", wait_for_other },
  };
  size_t i;
  memset(job, 0, sizeof(*job));
  job->odd = odd;
  job->L = session_vm();
  for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
    lua_register(job->L, functions[i].name, functions[i].func);
  lua_pushlightuserdata(job->L, job);
  lua_pushcclosure(job->L, report, 1);
  lua_setglobal(job->L, "report");
  lua_pushlightuserdata(job->L, &mutex);
  lua_setglobal(job->L, "mutex");
  lua_pushlightuserdata(job->L, &cond);
  lua_setglobal(job->L, "cond");
  session_script(job->L, script);
  job->opt = session_options(&job->sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  job->opt.clocks = clock;
  job->opt.interval_ns = 5000000;
}

/* -- Its profile --------------------------------------------------------------- */

/* Sum of the folded stacks that contain all texts of a list, one leafward of the other. */
static double sum_of(const char *folded, const char *const *texts)
{
  double sum = 0;
  while (*folded) {
    const char *end = strchr(folded, '\n'), *at = folded, *count;
    int i;
    if (!end) end = folded + strlen(folded);
    for (i = 0; at && texts[i]; i++) {
      at = strstr(at, texts[i]);
      at = at && at < end ? at + strlen(texts[i]) : NULL;
    }
    for (count = end; count > folded && count[-1] != ' '; count--)
      ;
    if (at) sum += atof(count);
    folded = *end ? end + 1 : end;
  }
  return sum;
}

/* Row of a table of waits, in nanoseconds; all 0 without one. */
typedef struct Row {
  double ns, waits, longest;
} Row;

static Row row_of(const char *table, const char *text)
{
  Row row = { 0, 0, 0 };
  const char *at = strstr(table, text), *line;
  if (!at) return row;
  for (line = at; line > table && line[-1] != '\n'; line--)
    ;
  CHECK_EQ(sscanf(line, "%lf %*f %lf %lf", &row.ns, &row.waits, &row.longest), 3);
  row.ns *= 1e6;
  row.longest *= 1e6;
  return row;
}

static void check_within(const char *caller, const char *what, double got, double least,
			 double most)
{
  if (got >= least && got <= most) return;
  CHECK(!"the profile has something else than the program");
  printf("%s: %s: %.0f, expected %.0f to %.0f\n", caller, what, got, least, most);
}

static char *parsed(const Job *job, const char *options)
{
  char *text;
  CHECK_EQ(session_parse(job->sink.bytes, job->sink.len, options, &text), 0);
  return text;
}

static void check_job(const Job *job)
{
  char *times = parsed(job, "--event=offcpu --lines");
  char *counts = parsed(job, "--event=offcpu --lines --weight=waits");
  char *table = parsed(job, "--format=top --by=syscall");
  char *blocking = parsed(job, "--blocking --limit=0");
  int by_records = strstr(table, "by switch-records") != NULL;
  /* Waits without a stack could be of any line. Without records, a wait may count as a short one. */
  double unseen = folded_sum(counts, "[stack unknown", "") +
		  (by_records ? 0 : folded_sum(counts, "[short waits]", ""));
  double elsewhere = folded_sum(times, "[stack unknown", "") +
		     folded_sum(times, "[runnable]", "") +
		     folded_sum(times, "[short waits]", "");
  double all_ns = 0, all_waits = 0;
  Row row;
  int i;
  for (i = 0; i < LINES_MAX; i++) {
    const Truth *t = &job->of[i];
    const char *const whole[] = { ways[i].caller, ways[i].function, "[waiting: futex]",
				  NULL };
    const char *const line[] = { ways[i].caller, "[waiting: ", NULL };
    double slack = SLACK_NS + t->n * (by_records ? EACH_NS : LOOKS_NS);
    double ns = sum_of(times, whole), waits = sum_of(counts, whole);
    /* A barrier may find the other thread there. */
    int known = (i != MEETS);
    check_within(ways[i].caller, "time", ns, known ? t->ns - elsewhere - slack : 0,
		 t->ns + slack);
    check_within(ways[i].caller, "waits", waits, known ? t->n - unseen : 0, t->n);
    CHECK(sum_of(times, line) == ns); /* The line waits for nothing else. */
    row = row_of(blocking, ways[i].caller);
    check_within(ways[i].caller, "time that blocks", row.ns, ns - 1e3, ns + 1e3);
    CHECK_EQ(row.waits, waits);
    check_within(ways[i].caller, "longest", row.longest,
		 known ? t->longest - elsewhere - slack : 0, t->longest + slack);
    if (known) CHECK(t->n >= ROUNDS / 2);
    all_ns += ns;
    all_waits += waits;
  }
  row = row_of(table, "[waiting: futex]");
  check_within("[waiting: futex]", "time", row.ns, all_ns - 1e3, all_ns + 1e3);
  CHECK_EQ(row.waits, all_waits);
  CHECK(all_waits > 0);
  printf("%.0f waits for locks, %.3f ms; %.0f waits without a stack\n", all_waits,
	 all_ns / 1e6, unseen);
  if (check_failures) printf("%s%s%s%s", times, counts, table, blocking);
  free(times);
  free(counts);
  free(table);
  free(blocking);
}

static void contend(const char *clock)
{
  static Job job[2];
  pthread_t thread[2];
  int i;
  REQUIRE(pthread_barrier_init(&both, NULL, 2) == 0);
  for (i = 0; i < 2; i++) job_init(&job[i], clock, i);
  for (i = 0; i < 2; i++) thread[i] = cpu_thread(run, &job[i]);
  for (i = 0; i < 2; i++) REQUIRE(pthread_join(thread[i], NULL) == 0);
  for (i = 0; i < 2; i++) {
    check_job(&job[i]);
    lua_close(job[i].L);
    sink_free(&job[i].sink);
  }
  pthread_barrier_destroy(&both);
}

int main(void)
{
  contend("offcpu");
  contend("wall");
  return check_status();
}
