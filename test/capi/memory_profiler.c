/* TIMEOUT: 300
** luaM_memprof_*: a profile of allocations into a file, and exact counts of a function's calls
** against an allocator of the host that counts, whatever the function does to the VM.
*/

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "own_allocator.h"
#include "session.h"

static Host host;  /* Of one VM at a time. */
static Given seen; /* At the last look. */

static int wrap_once(lua_State *L)
{
  static Wrapper w;
  wrap(L, &w);
  return 0;
}

static int replace(lua_State *L)
{
  lua_setallocf(L, host_alloc, &host);
  return 0;
}

static int reset(lua_State *L)
{
  (void)L;
  memset(&given, 0, sizeof(given));
  return 0;
}

static int look(lua_State *L)
{
  (void)L;
  seen = given;
  return 0;
}

static void *keep_on_thread(void *L)
{
  static Given there;
  session_script((lua_State *)L, "keep = {}");
  there = given;
  return &there;
}

/* Another thread runs the VM for a while. */
static int run_elsewhere(lua_State *L)
{
  pthread_t thread;
  void *there;
  REQUIRE(pthread_create(&thread, NULL, keep_on_thread, L) == 0);
  REQUIRE(pthread_join(thread, &there) == 0);
  given.blocks += ((Given *)there)->blocks;
  given.bytes += ((Given *)there)->bytes;
  given.freed += ((Given *)there)->freed;
  return 0;
}

static pid_t child; /* Of fork_here, 0 in it. */

static int fork_here(lua_State *L)
{
  (void)L;
  child = flush_and_fork();
  return 0;
}

static lua_State *vm_new(void)
{
  lua_State *L = lua_newstate(host_alloc, &host);
  REQUIRE(L != NULL);
  luaL_openlibs(L);
  lua_register(L, "wrap", wrap_once);
  lua_register(L, "replace", replace);
  lua_register(L, "reset", reset);
  lua_register(L, "look", look);
  lua_register(L, "run_elsewhere", run_elsewhere);
  lua_register(L, "fork_here", fork_here);
  session_script(L, "function work() keep = {} for i = 1, 300 do\n"
		    "  keep[i] = { i, tostring(i), function() return i end }\n"
		    "  keep['k' .. i] = coroutine.create(print) end end");
  return L;
}

/* All memory returns to the host. */
static void vm_close(lua_State *L)
{
  lua_close(L);
  CHECK_EQ(host.live, 0);
}

static void push(lua_State *L, const char *code)
{
  REQUIRE(luaL_loadstring(L, code) == 0);
}

/* -- Counts ------------------------------------------------------------------ */

/* Count a program from reset() to look(), and compare with the host's allocator. */
static void check_count(const char *code, uint32_t warmup)
{
  struct luam_Memprof_Count c;
  uint64_t allocs = 0, bytes = 0;
  lua_State *L = vm_new();
  int i, top = lua_gettop(L);
  push(L, code);
  CHECK_EQ(luaM_memprof_count(L, 1, warmup, &c, sizeof(c)), PROFILE_SUCCESS);
  CHECK(strcmp(luaM_sysprof_error(), "") == 0);
  CHECK_EQ(lua_gettop(L), top);
  CHECK_EQ(c.all.allocs + c.compiler.allocs, seen.blocks);
  CHECK_EQ(c.all.bytes + c.compiler.bytes, seen.bytes);
  CHECK_EQ(c.freed, seen.freed);
  for (i = 0; i < LUAM_MEMPROF__MAX; i++) {
    allocs += c.type[i].allocs;
    bytes += c.type[i].bytes;
  }
  CHECK_EQ(c.all.allocs, allocs);
  CHECK_EQ(c.all.bytes, bytes);
  CHECK_EQ(c.type[0].allocs, 0);
  CHECK_EQ(c.type[LUAM_MEMPROF_OTHER].allocs, 0);
  printf("%s: %llu blocks\n", code, (unsigned long long)seen.blocks);
  /* The next count is as exact. */
  push(L, "reset() work() look()");
  CHECK_EQ(luaM_memprof_count(L, 1, 0, &c, sizeof(c)), PROFILE_SUCCESS);
  CHECK_EQ(c.all.allocs + c.compiler.allocs, seen.blocks);
  CHECK_EQ(c.all.bytes + c.compiler.bytes, seen.bytes);
  vm_close(L);
}

/* Blocks by their types, in a program without the compiler. */
static void check_types(void)
{
  struct luam_Memprof_Count c;
  lua_State *L = vm_new();
  push(L, "jit.off()");
  lua_call(L, 0, 0);
  push(L, "work()");
  CHECK_EQ(luaM_memprof_count(L, 5, 1, &c, sizeof(c)), PROFILE_SUCCESS);
  CHECK_EQ(c.type[LUAM_MEMPROF_TABLE].allocs, 5 * 301);
  CHECK_EQ(c.type[LUAM_MEMPROF_FUNCTION].allocs, 5 * 300);
  CHECK_EQ(c.type[LUAM_MEMPROF_UPVALUE].allocs, 5 * 300);
  CHECK_EQ(c.type[LUAM_MEMPROF_THREAD].allocs, 5 * 600);
  CHECK(c.type[LUAM_MEMPROF_TABLE_PART].allocs > 5 * 8);
  CHECK_EQ(c.compiler.allocs, 0);
  vm_close(L);
}

/* The caller's struct may be of an older or a newer version. */
static void check_size(void)
{
  struct {
    struct luam_Memprof_Count c;
    uint64_t newer;
  } big;
  struct luam_Memprof_Amount all = { 0, 0 };
  lua_State *L = vm_new();
  big.newer = 1;
  push(L, "work()");
  CHECK_EQ(luaM_memprof_count(L, 1, 1, &big.c, sizeof(big)), PROFILE_SUCCESS);
  CHECK_EQ(big.newer, 0);
  CHECK(big.c.all.allocs > 300);
  push(L, "work()");
  CHECK_EQ(
    luaM_memprof_count(L, 1, 1, (struct luam_Memprof_Count *)(void *)&all, sizeof(all)),
    PROFILE_SUCCESS);
  CHECK_EQ(all.allocs, big.c.all.allocs);
  vm_close(L);
}

/* -- Refusals ---------------------------------------------------------------- */

static void check_refused(void)
{
  struct luam_Memprof_Count c;
  struct luam_Sysprof_Options opt = { 0 };
  lua_State *L = vm_new();
  CHECK_EQ(luaM_memprof_count(NULL, 1, 1, &c, sizeof(c)), PROFILE_ERRUSE);
  CHECK_EQ(luaM_memprof_count(L, 1, 1, NULL, sizeof(c)), PROFILE_ERRUSE);
  CHECK(strcmp(luaM_sysprof_error(), "the argument count is NULL; expected a pointer") ==
	0);
  lua_settop(L, 0);
  CHECK_EQ(luaM_memprof_count(L, 1, 1, &c, sizeof(c)), PROFILE_ERRUSE);
  CHECK(strcmp(luaM_sysprof_error(), "there is no function to call") == 0);
  lua_pushinteger(L, 1);
  CHECK_EQ(luaM_memprof_count(L, 1, 1, &c, sizeof(c)), PROFILE_ERRUSE);
  push(L, "work()");
  CHECK_EQ(luaM_memprof_count(L, 0, 1, &c, sizeof(c)), PROFILE_ERRUSE);
  CHECK(strcmp(luaM_sysprof_error(), "runs is 0; expected at least 1") == 0);
  CHECK_EQ(lua_gettop(L), 2);
  push(L, "replace() work()");
  CHECK_EQ(luaM_memprof_count(L, 1, 0, &c, sizeof(c)), PROFILE_ERRRUN);
  CHECK(strcmp(luaM_sysprof_error(),
	       "the function has replaced the VM's allocator, so "
	       "allocations are missing; count a function that does not") == 0);
  CHECK_EQ(luaM_memprof_stop(NULL), PROFILE_ERRUSE);
  CHECK_EQ(luaM_memprof_stop(L), PROFILE_ERRRUN);
  CHECK_EQ(luaM_memprof_start(NULL, NULL, "a.bin"), PROFILE_ERRUSE);
  CHECK_EQ(luaM_memprof_start(L, NULL, NULL), PROFILE_ERRUSE);
  CHECK(strcmp(luaM_sysprof_error(), "the argument path is NULL; expected a pointer") == 0);
  opt.clocks = "cpu";
  CHECK_EQ(luaM_memprof_start(L, &opt, "a.bin"), PROFILE_ERRUSE);
  CHECK(strcmp(luaM_sysprof_error(),
	       "clocks is cpu; expected NULL: a memory profile samples the event alloc") ==
	0);
  CHECK_EQ(luaM_memprof_start(L, NULL, "no/such/folder"), PROFILE_ERRIO);
  CHECK_EQ(access("a.bin", F_OK), -1);
  vm_close(L);
}

/* -- Profiles ---------------------------------------------------------------- */

static void check_profile(uint64_t period)
{
  struct luam_Sysprof_Options opt = { 0 };
  struct luam_Sysprof_SelfReport report;
  lua_State *L = vm_new();
  opt.period = period;
  CHECK_EQ(luaM_memprof_start(L, period ? &opt : NULL, "memory.bin"), PROFILE_SUCCESS);
  CHECK_EQ(luaM_memprof_start(L, NULL, "other.bin"), PROFILE_ERRRUN);
  given.blocks = 0;
  session_script(L, "work()");
  if (period == 1) {
    CHECK_EQ(luaM_sysprof_selfreport(L, &report, sizeof(report)), PROFILE_SUCCESS);
    CHECK_EQ(report.samples, given.blocks);
    CHECK(strcmp(report.clock, "alloc") == 0);
  }
  CHECK_EQ(luaM_memprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(luaM_memprof_stop(L), PROFILE_ERRRUN);
  CHECK_EQ(access("memory.bin", R_OK), 0);
  /* A profile without the event belongs to luaM_sysprof_stop. */
  CHECK_EQ(luaM_sysprof_start_path(L, NULL, "time.bin"), PROFILE_SUCCESS);
  CHECK_EQ(luaM_memprof_stop(L), PROFILE_ERRRUN);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  vm_close(L);
}

/* -- Cancelled threads ------------------------------------------------------- */

static int nap(lua_State *L)
{
  (void)L;
  usleep(1000);
  return 0;
}

static void *count_without_end(void *arg)
{
  struct luam_Memprof_Count c;
  push((lua_State *)arg, "while true do local t = {} nap() end");
  luaM_memprof_count((lua_State *)arg, 1, 0, &c, sizeof(c));
  return NULL;
}

/* The host cancels a thread within the function, and goes on with the VM. */
static void check_cancelled(void)
{
  int i;
  for (i = 0; i < 10; i++) {
    struct luam_Memprof_Count c;
    pthread_t thread;
    void *result;
    lua_State *L = vm_new();
    lua_register(L, "nap", nap);
    REQUIRE(pthread_create(&thread, NULL, count_without_end, L) == 0);
    usleep(5000);
    CHECK_EQ(pthread_cancel(thread), 0);
    CHECK_EQ(pthread_join(thread, &result), 0);
    CHECK(result == PTHREAD_CANCELED);
    push(L, "work()");
    CHECK_EQ(luaM_memprof_count(L, 3, 1, &c, sizeof(c)), PROFILE_SUCCESS);
    CHECK_EQ(c.type[LUAM_MEMPROF_FUNCTION].allocs, 3 * 300);
    session_script(
      L, "local gone = false\n"
	 "getmetatable(newproxy(true)).__gc = function() gone = true end\n"
	 "for i = 1, 1e6 do local t = { i } keep = t if gone then return end end\n"
	 "error('the collector is stopped')");
    vm_close(L);
  }
}

/* -- Processes --------------------------------------------------------------- */

static int exit_code(pid_t pid)
{
  int status;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The function forks: parent and child count on. */
static void check_fork(void)
{
  check_count("fork_here() reset() work() look()", 0);
  if (child == 0) _exit(check_status());
  CHECK_EQ(exit_code(child), 0);
}

/* The function closes the VM and ends the process. */
static void check_exit(void)
{
  struct luam_Memprof_Count c;
  pid_t pid = flush_and_fork();
  if (pid == 0) {
    lua_State *L = vm_new();
    push(L, "work() os.exit(7, true)");
    luaM_memprof_count(L, 1, 0, &c, sizeof(c));
    _exit(1);
  }
  CHECK_EQ(exit_code(pid), 7);
}

int main(void)
{
  check_count("reset() work() look()", 0);
  check_count("reset() for _ = 1, 20 do work() end look()", 3);
  check_count("reset() collectgarbage() work() collectgarbage() work() look()", 1);
  check_count("wrap() reset() work() look()", 0);
  check_count("reset() work() run_elsewhere() work() look()", 0);
  check_types();
  check_size();
  check_refused();
  check_profile(0);
  check_profile(1);
  check_cancelled();
  check_fork();
  check_exit();
  return check_status();
}
