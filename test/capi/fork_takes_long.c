/* TIMEOUT: 600
** A fork that takes much longer than the interval. Kernels that restart it when a signal
** comes would never end it: the C library's fork() blocks the clock's signal meanwhile, on
** any kernel. Also a fork without the C library.
*/

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "session.h"

#define MEMORY      ((size_t)192 << 20) /* To be copied page by page. */
#define PAGE        4096
#define FORKS       5
#define INTERVAL_NS 20000

static Sink sink;

static int blocked; /* The clock's signal, at the last fork() of the C library. */

static int is_blocked(void)
{
  sigset_t set;
  REQUIRE(pthread_sigmask(SIG_BLOCK, NULL, &set) == 0);
  return sigismember(&set, CLOCK_SIGNAL);
}

/* Runs after the profiler's, which the start registers later. */
static void before_fork(void)
{
  blocked = is_blocked();
}

static uint64_t now_ns(void)
{
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static pid_t fork_library(void)
{
  return fork();
}

static pid_t fork_kernel(void)
{
  return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* Returns how long the longest took. */
static uint64_t forks(lua_State *L, pid_t (*make)(void))
{
  uint64_t longest = 0;
  int i, status;
  for (i = 0; i < FORKS; i++) {
    uint64_t begin = now_ns(), spent;
    pid_t pid = make();
    REQUIRE(pid >= 0);
    if (pid == 0) _exit(is_blocked());
    spent = now_ns() - begin;
    if (spent > longest) longest = spent;
    CHECK(!is_blocked());
    CHECK_EQ(blocked, make == fork_library);
    blocked = 0;
    while (waitpid(pid, &status, 0) < 0) REQUIRE(errno == EINTR);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    session_run(L, session_samples() + 10);
  }
  return longest;
}

int main(void)
{
  lua_State *L = session_vm();
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  char *mem = (char *)mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  uint64_t samples, by_library, by_kernel;
  char *folded;
  size_t i;
  REQUIRE(mem != MAP_FAILED && pthread_atfork(before_fork, NULL, NULL) == 0);
  madvise(mem, MEMORY, MADV_NOHUGEPAGE);
  for (i = 0; i < MEMORY; i += PAGE) mem[i] = 1;
  opt.clocks = "wall-signal";
  opt.interval_ns = INTERVAL_NS;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  by_library = forks(L, fork_library);
  by_kernel = forks(L, fork_kernel);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  if (fork() == 0) _exit(0);
  CHECK(!blocked && !is_blocked());
  printf("interval %d us, fork took %.0f us, without the C library %.0f us\n",
	 INTERVAL_NS / 1000, (double)by_library / 1000, (double)by_kernel / 1000);
  samples = session_samples();
  CHECK_EQ(session_parse(sink.bytes, sink.len, "", &folded), 0);
  CHECK_EQ(folded_count(folded, ""), samples);
  lua_close(L);
  if (!check_failures && by_kernel <= INTERVAL_NS) {
    printf("a fork is shorter than the interval here: nothing was shown\n");
    return 77;
  }
  return check_status();
}
