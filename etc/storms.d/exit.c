/*
** Storm of etc/storms: processes end beside threads that compute, wait, fork and close VMs, and
** beside clients, while all are sampled. Each ends with its status, and leaves a whole profile.
*/

#include "storm.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "live_client.h"

#define STATUS    7 /* Of a process that ends well. */
#define COMPUTERS 2
#define GIVE_UP_S 60
#define SAMPLED_S 0.1 /* At most, before the end. */

enum { END_MAIN, END_THREAD, END_LUA, END_CLOSE, END_FINALIZER, END_KINDS };

typedef struct Plan {
  uint32_t random;
  int end;
  double at; /* When it ends. */
} Plan;

/* Of all processes. */
static struct {
  _Atomic long victim; /* That the client asks; 0: none. */
  _Atomic uint64_t asked;
} * all;

/* A fork while another thread is in exit() gives the child a lock of the C library that nobody frees. */
static pthread_mutex_t ending = PTHREAD_MUTEX_INITIALIZER;

/* -- The process that ends ------------------------------------------------------ */

static void *computes(void *arg)
{
  volatile uint64_t x = (uintptr_t)arg;
  for (;;) x = x * 3 + 1;
  return NULL;
}

/* Its children end by exit(), too, while the parent's threads do not exist in them. */
static void *forks(void *arg)
{
  uint32_t x = *(uint32_t *)arg | 1;
  for (;;) {
    int by_exit = (int)(storm_random(&x) & 1);
    pid_t pid;
    if (by_exit) pthread_mutex_lock(&ending);
    pid = fork();
    if (pid == 0 && by_exit) exit(0);
    if (pid == 0) _exit(0);
    if (by_exit) pthread_mutex_unlock(&ending);
    if (pid > 0) waitpid(pid, NULL, 0);
    storm_nap(storm_random(&x) % 3000 * 1e-6);
  }
  return NULL;
}

static void *opens(void *arg)
{
  for (;;) {
    lua_State *L = luaL_newstate();
    if (!L) return arg;
    luaL_openlibs(L);
    if (luaL_dostring(L, "local t = {} for i = 1, 1e4 do t[i] = tostring(i) end"))
      storm_fail("%s", lua_tostring(L, -1));
    lua_close(L);
  }
  return arg;
}

static void *comes_and_goes(void *arg)
{
  storm_nap(1e-3);
  return arg;
}

static void *starts(void *arg)
{
  for (;;) {
    pthread_t t;
    if (pthread_create(&t, NULL, comes_and_goes, NULL) == 0) pthread_join(t, NULL);
  }
  return arg;
}

static void *ends(void *arg)
{
  const Plan *plan = (const Plan *)arg;
  storm_nap(plan->at - storm_now());
  pthread_mutex_lock(&ending);
  exit(STATUS);
}

/* Ends the process by its plan. */
__attribute__((noreturn)) static void live_and_end(Plan *plan)
{
  static const char *const options[] = {
    "clock = 'task-clock', threads = 'all'", "clock = 'wall-signal', threads = 'all'",
    "clock = 'wall', threads = 'all'",       "clock = 'ctimer,alloc'",
    "clock = 'cpu', flush = 'thread'",       "clock = 'itimer'",
  };
  lua_State *L = luaL_newstate();
  char code[400];
  int i;
  REQUIRE(L != NULL);
  luaL_openlibs(L);
  snprintf(code, sizeof(code),
	   "assert(misc.sysprof.start { mode = 'C', hz = 10000, path = 'exit.bin', %s })",
	   options[storm_random(&plan->random) % 6]);
  storm_do(L, code);
  storm_do(L, "assert(misc.sysprof.live())"); /* A client may record from now on. */
  for (i = 0; i < COMPUTERS; i++) storm_thread(computes, (void *)(uintptr_t)i, 0);
  storm_thread(forks, &plan->random, 0);
  storm_thread(opens, NULL, 0);
  storm_thread(starts, NULL, 0);
  if (plan->end == END_THREAD) storm_thread(ends, plan, 0);
  do {
    storm_do(L, "local s = 0 for i = 1, 1e5 do s = s + #tostring(i) end");
  } while (plan->end == END_THREAD || storm_now() < plan->at);
  pthread_mutex_lock(&ending);
  switch (plan->end) {
  case END_LUA: storm_do(L, "os.exit(7, true)"); break;
  case END_FINALIZER:
    storm_do(L,
	     "KEPT = newproxy(true) getmetatable(KEPT).__gc = function() os.exit(7) end");
    lua_close(L);
    break;
  case END_CLOSE: lua_close(L); break;
  default: break;
  }
  exit(STATUS);
}

/* -- The storm ------------------------------------------------------------------- */

/* The client is a process of its own, which has no thread. */
__attribute__((noreturn)) static void ask(void)
{
  static const char *const requests[] = { "info", "dump", "record\nduration=1ms", "stop" };
  uint32_t x = (uint32_t)getpid() | 1;
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  for (;;) {
    const char *request = requests[storm_random(&x) % 4];
    long pid = all->victim;
    int file = live_file(), fd = pid ? live_connect((pid_t)pid) : -1;
    if (fd >= 0) {
      live_send(fd, request, strlen(request), file, 1);
      if (storm_random(&x) & 1) (void)live_answer(fd);
      close(fd);
      all->asked++;
    }
    close(file);
    storm_nap(storm_random(&x) % 2000 * 1e-6);
  }
}

/* Wait for the end of a process; -1: of any child. Returns its status, or -1 if there is none. */
static int status_of(pid_t pid)
{
  double until = storm_now() + GIVE_UP_S;
  int status;
  pid_t got;
  while ((got = waitpid(pid, &status, WNOHANG)) == 0) {
    if (storm_now() > until) storm_fail("hang: process %d does not end", (int)pid);
    storm_nap(1e-3);
  }
  return got > 0 ? status : -1;
}

/* The children of a process that has ended are ours now. Each ends as it should, too. */
static void reap_orphans(void)
{
  int status;
  while ((status = status_of(-1)) != -1)
    if (status != 0) storm_fail("a child of fork(): status 0x%x", (unsigned)status);
}

int main(int argc, char **argv)
{
  lua_State *L = storm_open(argc, argv);
  uint32_t x = (uint32_t)getpid() | 1;
  uint64_t ended = 0;
  pid_t client;
  all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(all != MAP_FAILED);
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
  client = fork();
  if (client == 0) ask();
  storm_vm = storm_actor("the parent");
  while (storm_now() < storm_end) {
    Plan plan;
    pid_t pid;
    int status;
    plan.random = storm_random(&x) | 1;
    plan.end = (int)(ended % END_KINDS);
    plan.at = storm_now() + storm_random(&x) % 1000 * SAMPLED_S / 1000;
    fflush(stdout);
    pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) live_and_end(&plan);
    all->victim = pid;
    status = status_of(pid);
    all->victim = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != STATUS)
      storm_fail("process %d, end %d: status 0x%x", (int)pid, plan.end, (unsigned)status);
    storm_samples += storm_count(L, "storm.read('exit.bin')");
    storm_nprofile++;
    storm_vm->count++;
    ended++;
  }
  REQUIRE(waitpid(client, NULL, WNOHANG) == 0); /* Each answer came in time. */
  kill(client, SIGKILL);
  (void)status_of(client);
  reap_orphans();
  lua_close(L);
  return storm_close("%llu processes ended, %llu requests", (unsigned long long)ended,
		     (unsigned long long)all->asked);
}
