/* TIMEOUT: 600
** A host gives its VM an allocator that counts. At a period of 1 byte, the event alloc has
** each block of it, no more and no less, and the event live each block that is not freed:
** interpreted and compiled, around and below a wrapper, on two threads in turn, beside another
** VM that uses the hook, while the VM is closed, where the host refuses blocks. All memory returns to
** the host.
*/

#define _GNU_SOURCE /* For memmem. */
#include <pthread.h>

#include "own_allocator.h"
#include "session.h"
#include "stream_sums.h"

#define SPF_TOTAL 0 /* Counter of an event, as the format numbers it. */

static const char program[] =
  "local keep\n"
  "local function closure(i) return function() return i end end\n"
  "function work()\n"
  "  local t = {}\n"
  "  for i = 1, 300 do t[i] = { i, tostring(i) } end\n"
  "  for i = 1, 300 do t['k' .. i] = closure(i) end\n"
  "  for i = 1, 20 do t[i] = coroutine.wrap(function() return ('x'):rep(i * 100) end)() end\n"
  "  local function deep(n) if n > 0 then return 1 + deep(n - 1) end return 0 end\n"
  "  coroutine.wrap(deep)(3000)\n"
  "  keep = t\n"
  "end\n";

static lua_State *vm_new(lua_Alloc f, void *ud, const char *code)
{
  lua_State *L = lua_newstate(f, ud);
  REQUIRE(L != NULL);
  luaL_openlibs(L);
  session_script(L, code);
  return L;
}

static void begin(lua_State *L, Sink *sink)
{
  struct luam_Sysprof_Options opt = session_options(sink, LUAM_SYSPROF_CALLGRAPH,
						    1024 * 1024);
  opt.clocks = "alloc/period=1/";
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  left_begin();
}

/* What the host knows when a profile ends. */
typedef struct Known {
  Given given;
  Left left;
} Known;

static Known known_now(void)
{
  Known k;
  k.given = given;
  k.left = left;
  return k;
}

static uint64_t sum_of(const Sink *sink, const char *options)
{
  char *folded;
  uint64_t sum;
  CHECK_EQ(session_parse(sink->bytes, sink->len, options, &folded), 0);
  sum = folded_count(folded, "");
  free(folded);
  return sum;
}

static int contains(const Sink *sink, const char *text)
{
  return memmem(sink->bytes, sink->len, text, strlen(text)) != NULL;
}

/* Check the profile of a VM after its stop. */
static void check(Sink *sink, const Known *known, const char *what)
{
  uint64_t blocks = known->given.blocks, bytes = known->given.bytes;
  static StreamSums sums;
  uint64_t samples = 0, weight = 0, total = 0;
  int i;
  sums_read(&sums, sink->bytes, sink->len);
  CHECK(sums.fault == NULL);
  CHECK(sums_all_ended(&sums));
  for (i = 0; i < sums.n; i++) {
    samples += sums.s[i].samples[0];
    weight += sums.s[i].weight[0];
    total += sums.s[i].counter[SUMS_OF_EVENT(0, SPF_TOTAL)];
    CHECK_EQ(sums.s[i].counter[SUMS_LOST_NESTED], 0);
  }
  printf("%s: %llu blocks, %llu bytes; %llu blocks, %llu bytes are left\n", what,
	 (unsigned long long)blocks, (unsigned long long)bytes,
	 (unsigned long long)known->left.blocks, (unsigned long long)known->left.bytes);
  CHECK_EQ(samples, blocks);
  CHECK_EQ(weight, bytes);
  CHECK_EQ(total, bytes);
  CHECK_EQ(sum_of(sink, "--weight=objects"), blocks);
  CHECK_EQ(sum_of(sink, "--event=live --weight=objects"), known->left.blocks);
  CHECK_EQ(sum_of(sink, "--event=live"), known->left.bytes);
  sink_free(sink);
}

static void end(lua_State *L, Sink *sink, const char *what)
{
  Known known = known_now();
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  check(sink, &known, what);
}

static void work(lua_State *L, int n)
{
  while (n-- > 0) session_work(L);
}

/* Everything that the VM took returns to its host. */
static void vm_close(lua_State *L, const Host *host)
{
  lua_close(L);
  CHECK_EQ(host->live, 0);
}

static void check_exact(int jit)
{
  Host host = { 0 };
  Sink sink;
  lua_State *L = vm_new(host_alloc, &host, program);
  if (!jit) session_script(L, "jit.off()");
  begin(L, &sink);
  work(L, 20);
  end(L, &sink, jit ? "JIT on" : "JIT off");
  begin(L, &sink);
  work(L, 20);
  end(L, &sink, "again");
  vm_close(L, &host);
}

/* -- Wrappers ---------------------------------------------------------------- */

static void check_wrappers(void)
{
  Host host = { 0 };
  Wrapper before, within;
  Sink sink;
  lua_State *L = vm_new(host_alloc, &host, program);
  wrap(L, &before);
  begin(L, &sink);
  work(L, 2);
  wrap(L, &within); /* The hook is below it from here on. */
  work(L, 2);
  end(L, &sink, "wrappers");
  work(L, 1);
  begin(L, &sink);
  work(L, 2);
  end(L, &sink, "again below a wrapper");
  vm_close(L, &host);
}

/* The program takes its own wrapper off. The hook is in front again. */
static void check_wrapper_leaves(void)
{
  Host host = { 0 };
  Wrapper w;
  Given before;
  Sink sink;
  lua_State *L = vm_new(host_alloc, &host, program);
  begin(L, &sink);
  wrap(L, &w);
  work(L, 2);
  before = given;
  /* The hook asks through the wrapper, by a block of its own. */
  lua_setallocf(L, w.f, w.ud);
  given = before;
  work(L, 2);
  end(L, &sink, "a wrapper that leaves");
  vm_close(L, &host);
}

/* The program puts its allocator back in place of the hook. */
static void check_replaced(void)
{
  Host host = { 0 };
  Sink sink;
  Known known;
  lua_State *L = vm_new(host_alloc, &host, program);
  begin(L, &sink);
  work(L, 2);
  known = known_now();
  lua_setallocf(L, host_alloc, &host);
  work(L, 2);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  known.left.blocks = known.left.bytes = 0; /* What is left is not known any more. */
  CHECK(contains(&sink, "the program replaced the VM's allocator"));
  check(&sink, &known, "replaced");
  begin(L, &sink);
  work(L, 2);
  end(L, &sink, "after it was replaced");
  vm_close(L, &host);
}

/* The program replaces the hook, and puts it back before the stop. */
static void check_replaced_for_a_time(void)
{
  Host host = { 0 };
  Sink sink;
  Given before;
  Known known;
  void *ud;
  lua_Alloc f;
  lua_State *L = vm_new(host_alloc, &host, program);
  begin(L, &sink);
  work(L, 2);
  f = lua_getallocf(L, &ud);
  before = given;
  lua_setallocf(L, host_alloc, &host);
  work(L, 2);
  lua_setallocf(L, f, ud);
  before.blocks -= given.blocks;
  before.bytes -= given.bytes;
  work(L, 2);
  known = known_now();
  known.given.blocks += before.blocks;
  known.given.bytes += before.bytes;
  known.left.blocks = known.left.bytes = 0;
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK(contains(&sink, "the program replaced the VM's allocator"));
  check(&sink, &known, "replaced for a time");
  vm_close(L, &host);
}

/* -- Refused blocks ---------------------------------------------------------- */

static const char refused[] =
  "function work()\n"
  "  for i = 1, 20 do\n"
  "    assert(not pcall(string.rep, 'x', 60000 + i))\n"
  "    assert(not pcall(function() local t = {} for i = 1, 1e4 do t[i] = i end end))\n"
  "    assert(not pcall(function() local s = 'x' while true do s = s .. s end end))\n"
  "  end\n"
  "end\n";

/* What the allocator refuses does not count: new blocks, and old ones that do not grow. */
static void check_refused(int jit)
{
  Host host = { 0 };
  Sink sink;
  lua_State *L = vm_new(host_alloc, &host, refused);
  if (!jit) session_script(L, "jit.off()");
  begin(L, &sink);
  host.most = 50000;
  work(L, 1);
  host.most = 0;
  printf("%lld blocks refused\n", (long long)host.refused);
  CHECK(host.refused >= 60);
  end(L, &sink, "refused");
  vm_close(L, &host);
}

/* -- Threads ----------------------------------------------------------------- */

static void *run_elsewhere(void *arg)
{
  static uint64_t got[2];
  work((lua_State *)arg, 3);
  got[0] = given.blocks;
  got[1] = given.bytes;
  return got;
}

/* The host moves the VM to a thread, without telling us, and back. */
static void check_moves(void)
{
  Host host = { 0 };
  Sink sink;
  pthread_t thread;
  uint64_t *there;
  lua_State *L = vm_new(host_alloc, &host, program);
  begin(L, &sink);
  work(L, 2);
  REQUIRE(pthread_create(&thread, NULL, run_elsewhere, L) == 0);
  pthread_join(thread, (void **)&there);
  work(L, 2);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  {
    static StreamSums sums;
    sums_read(&sums, sink.bytes, sink.len);
    CHECK(sums.fault == NULL);
    /* The other thread has no session, so it has no samples; its bytes count. */
    CHECK_EQ(sums.s[0].counter[SUMS_OF_EVENT(0, SPF_TOTAL)], given.bytes + there[1]);
    CHECK_EQ(sums.s[0].samples[0], given.blocks);
  }
  CHECK_EQ(sum_of(&sink, "--event=live"), left.bytes);
  sink_free(&sink);
  vm_close(L, &host);
}

/* With sessions of all threads, the blocks of each count, whichever thread frees them. */
typedef struct Mover {
  lua_State *L;
  pthread_barrier_t barrier;
} Mover;

static void *move_to(void *arg)
{
  Mover *m = (Mover *)arg;
  pthread_barrier_wait(&m->barrier);
  given_mark = left.moment;
  work(m->L, 3);
  pthread_barrier_wait(&m->barrier);
  pthread_barrier_wait(&m->barrier); /* The profile has ended. */
  return NULL;
}

static void check_moves_of_all(void)
{
  Host host = { 0 };
  struct luam_Sysprof_SelfReport report;
  Mover m;
  Sink sink;
  pthread_t thread;
  Left known;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH,
						    1024 * 1024);
  m.L = vm_new(host_alloc, &host, program);
  opt.clocks = "alloc/period=1/";
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  opt.flush = LUAM_SYSPROF_FLUSH_THREAD;
  pthread_barrier_init(&m.barrier, NULL, 2);
  REQUIRE(pthread_create(&thread, NULL, move_to, &m) == 0);
  CHECK_EQ(luaM_sysprof_start(m.L, &opt), PROFILE_SUCCESS);
  left_begin();
  work(m.L, 2);
  do { /* Its session begins. */
    usleep(1000);
    luaM_sysprof_selfreport(m.L, &report, sizeof(report));
  } while (report.sessions < 2);
  pthread_barrier_wait(&m.barrier);
  pthread_barrier_wait(&m.barrier);
  work(m.L, 2);
  lua_gc(m.L, LUA_GCCOLLECT, 0);
  known = left;
  CHECK_EQ(luaM_sysprof_stop(m.L), PROFILE_SUCCESS);
  pthread_barrier_wait(&m.barrier);
  pthread_join(thread, NULL);
  CHECK_EQ(sum_of(&sink, "--event=live"), known.bytes);
  CHECK_EQ(sum_of(&sink, "--event=live --weight=objects"), known.blocks);
  sink_free(&sink);
  vm_close(m.L, &host);
}

typedef struct Other {
  Wrapper of;
  volatile int stop;
  uint64_t rounds;
} Other;

/* Runs a VM of its own on the allocator that lua_getallocf gave. */
static void *run_other_vm(void *arg)
{
  Other *o = (Other *)arg;
  while (!o->stop) {
    lua_State *L = vm_new(o->of.f, o->of.ud, program);
    work(L, 1);
    lua_close(L);
    o->rounds++;
  }
  return NULL;
}

static void check_other_vm(void)
{
  Host host = { 0 };
  Other other = { { NULL, NULL }, 0, 0 };
  Sink sink;
  pthread_t thread;
  Known known;
  lua_State *L = vm_new(host_alloc, &host, program);
  begin(L, &sink);
  other.of.f = lua_getallocf(L, &other.of.ud);
  REQUIRE(pthread_create(&thread, NULL, run_other_vm, &other) == 0);
  work(L, 30);
  known = known_now();
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  lua_close(L);
  usleep(20000); /* The other VM outlives this one. */
  other.stop = 1;
  pthread_join(thread, NULL);
  CHECK(other.rounds > 0);
  CHECK_EQ(host.live, 0);
  check(&sink, &known, "beside another VM");
}

/* -- End --------------------------------------------------------------------- */

static void *close_vm(void *arg)
{
  lua_close((lua_State *)arg);
  return NULL;
}

static void check_close(int elsewhere)
{
  Host host = { 0 };
  Sink sink;
  pthread_t thread;
  Known known;
  lua_State *L = vm_new(host_alloc, &host, program);
  begin(L, &sink);
  work(L, 2);
  known = known_now();
  if (elsewhere) {
    REQUIRE(pthread_create(&thread, NULL, close_vm, L) == 0);
    pthread_join(thread, NULL);
  } else {
    lua_close(L);
  }
  CHECK_EQ(host.live, 0);
  CHECK_EQ(sink.stops, 1);
  check(&sink, &known, elsewhere ? "closed by another thread" : "closed");
}

/* LuaJIT's own allocator: lua_close compares it. */
static void check_own(void)
{
  int i;
  for (i = 0; i < 20; i++) {
    Sink sink;
    lua_State *L = session_vm();
    begin(L, &sink);
    work(L, 2);
    if (i % 2) CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
    lua_close(L);
    CHECK_EQ(sink.stops, 1);
    sink_free(&sink);
  }
}

int main(void)
{
  check_exact(0);
  check_exact(1);
  check_wrappers();
  check_wrapper_leaves();
  check_replaced();
  check_replaced_for_a_time();
  check_refused(0);
  check_refused(1);
  check_moves();
  check_moves_of_all();
  check_other_vm();
  check_close(0);
  check_close(1);
  check_own();
  return check_status();
}
