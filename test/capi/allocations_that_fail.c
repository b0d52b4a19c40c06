/* TIMEOUT: 600
** The N-th allocation of a program fails, for many N. With the event alloc at a period of 1
** byte, the program sees what it sees without: the same results, errors and faults.
*/

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "session.h"

#define FAIL_MAX 2000
#ifndef STRIDE
#define STRIDE 23 /* From one N to the next. */
#endif
#define TRIES 10

/* The N-th request from now on gets nothing, if it is for more memory. */
typedef struct Failing {
  uint64_t requests, fail_at;
  int failed;
} Failing;

static void *failing_alloc(void *ud, void *p, size_t osize, size_t nsize)
{
  Failing *f = (Failing *)ud;
  void *q;
  if (nsize == 0) {
    free(p);
    return NULL;
  }
  if (++f->requests == f->fail_at && nsize > osize) {
    f->failed = 1;
    return NULL;
  }
  q = realloc(p, nsize);
  REQUIRE(q != NULL);
  return q;
}

/* Each step may fail; its result or error becomes a part of the text. */
static const char program[] =
  "local log = {}\n"
  "local function step(f)\n"
  "  local ok, result = pcall(f)\n"
  "  log[#log + 1] = ok and tostring(result) or 'error: ' .. tostring(result)\n"
  "end\n"
  "local function deep(n) if n > 0 then return 1 + deep(n - 1) end return 0 end\n"
  "function work()\n"
  "  step(function() local t = {} for i = 1, 400 do t[i] = { i, n = tostring(i) } end return #t end)\n"
  "  step(function() local t = {} for i = 1, 400 do t[i * 7] = function() return i end end\n"
  "    return t[49]() end)\n"
  "  step(function() return coroutine.wrap(function() return deep(2000) end)() end)\n"
  "  step(function() return deep(3000) end)\n"
  "  step(function() return #(('x'):rep(5000) .. ('y'):rep(5000)) end)\n"
  "  step(function() return assert(loadstring('local a, b = 1, {} return function() return a end'))()() end)\n"
  "  step(function() local t = {} for i = 1, 100 do t[i] = ('%d'):format(-i) end\n"
  "    table.sort(t) return table.concat(t, ' ') end)\n"
  "  step(function() collectgarbage() return newproxy() and 1 end)\n"
  "  step(function() error({}) end)\n"
  "  for i = 1, #log do log[i] = log[i]:gsub('0x%x+', 'ADDRESS') end\n"
  "  return table.concat(log, '\\n')\n"
  "end\n";

/* What a run shows, as a text, in memory that its process shares with ours. */
#define SEEN_MAX 65536

/* Some failures end a process by a fault in LuaJIT, as they do without us. */
static void run(uint64_t n, int profiled, char *seen)
{
  Failing f = { 0 };
  Sink sink;
  lua_State *L = lua_newstate(failing_alloc, &f);
  const char *text;
  int status;
  REQUIRE(L != NULL);
  luaL_openlibs(L);
  session_script(L, "jit.off()");
  session_script(L, program);
  lua_gc(L, LUA_GCCOLLECT, 0);
  lua_getglobal(L, "work");
  if (profiled) {
    struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
    opt.clocks = "alloc/period=1/";
    REQUIRE(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
  }
  f.requests = 0;
  f.fail_at = n;
  strcpy(seen, "runs");
  status = lua_pcall(L, 0, 1, 0);
  f.fail_at = 0;
  text = lua_tostring(L, -1);
  snprintf(seen, SEEN_MAX, "status %d%s\n%s", status, f.failed ? ", failed" : "",
	   text ? text : "");
  if (profiled) {
    REQUIRE(luaM_sysprof_stop(L) == PROFILE_SUCCESS);
    REQUIRE(sink.len > 0);
  }
  lua_close(L);
}

/* Run in a process of its own. Returns how that ended. */
static int run_apart(uint64_t n, int profiled, char *seen)
{
  int status;
  pid_t pid;
  pid = flush_and_fork();
  if (pid == 0) {
    run(n, profiled, seen);
    _exit(0);
  }
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return status;
}

/* Does the run without us ever end as the one with us? Each VM hashes strings by another seed, so
** the N-th allocation is not always the same.
*/
static int is_same(uint64_t n, int status_on, const char *on, char *bare, int *status)
{
  int i;
  for (i = 0; i < TRIES; i++) {
    *status = run_apart(n, 0, bare);
    if (*status == status_on && strcmp(on, bare) == 0) return 1;
  }
  return 0;
}

int main(void)
{
  uint64_t n, start = (uint64_t)getpid() % STRIDE, runs = 0, failed = 0, faults = 0;
  char *on = mmap(NULL, 2 * SEEN_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		  -1, 0);
  char *bare = on + SEEN_MAX;
  const struct rlimit no_core = { 0, 0 };
  REQUIRE(on != MAP_FAILED);
  setrlimit(RLIMIT_CORE, &no_core);
  for (n = 1 + start; n <= FAIL_MAX; n += STRIDE) {
    int status_on = run_apart(n, 1, on), status;
    int same = is_same(n, status_on, on, bare, &status);
    CHECK(same);
    if (!same)
      printf("allocation %llu\nwithout, ended %d: %s\nwith, ended %d: %s\n",
	     (unsigned long long)n, status, bare, status_on, on);
    runs++;
    failed += strstr(on, ", failed") != NULL || status_on != 0;
    faults += status_on != 0;
  }
  printf(
    "from %llu on: of %llu runs, %llu had a failure, %llu ended by a fault of LuaJIT\n",
    (unsigned long long)start + 1, (unsigned long long)runs, (unsigned long long)failed,
    (unsigned long long)faults);
  CHECK(failed > runs / 2);
  return check_status();
}
