/* TIMEOUT: 60
** A process that ends without a chance to complete its profile, by abort, _exit,
** quick_exit, a signal, or by becoming another program: what has been written can be
** read, and the new program is not hit by a signal of the clock.
*/

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "session.h"

#define WRITES	3	/* Chunks with samples are among them. */

static int fd;
static volatile int writes;

static size_t file_writer(const void **data, size_t len, void *ctx)
{
  (void)ctx;
  writes++;
  return write(fd, *data, len) == (ssize_t)len ? len : 0;
}

static int file_on_stop(void *ctx, uint8_t *buf)
{
  (void)ctx;
  (void)buf;
  return 0;
}

static void by_abort(void) { abort(); }
static void by__exit(void) { _exit(3); }
static void by_quick_exit(void) { quick_exit(3); }
static void by_signal(void) { kill(getpid(), SIGKILL); pause(); }
static void by_fault(void) { *(volatile int *)NULL = 0; }

/* The new program uses more CPU time than an interval: it would get the tick. */
static void by_exec(void)
{
  execl("/bin/sh", "sh", "-c",
	"i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; exit 3", (char *)NULL);
  _exit(4);
}

/* Runs in a child. */
static void profile(const char *name, int clock, void (*end)(void))
{
  static const struct rlimit no_core;
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, LUAM_SYSPROF_BUF_MIN);
  time_t deadline = time(NULL) + 30;
  check_failures = 0;
  setrlimit(RLIMIT_CORE, &no_core);
  fd = open(name, O_WRONLY|O_CREAT|O_TRUNC, 0600);
  REQUIRE(fd >= 0);
  opt.clock = (uint8_t)clock;
  CHECK_EQ(luaM_sysprof_set_writer(file_writer), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_set_on_stop(file_on_stop), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  while (writes < WRITES && time(NULL) < deadline) session_work(L);
  CHECK(writes >= WRITES);
  fflush(stdout);
  if (check_failures) _exit(99);
  end();
  _exit(98);
}

static void check(const char *name, int clock, void (*end)(void), int is_signal,
		  int code)
{
  pid_t pid;
  uint8_t *bytes = (uint8_t *)malloc(SINK_MAX);
  uint64_t samples;
  char *folded;
  size_t n;
  FILE *f;
  int status, parsed;
  REQUIRE(bytes != NULL);
  fflush(stdout);
  REQUIRE((pid = fork()) >= 0);
  if (pid == 0) profile(name, clock, end);
  while (waitpid(pid, &status, 0) < 0) REQUIRE(errno == EINTR);
  if (is_signal) {
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), code);
  } else {
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), code);
  }
  f = fopen(name, "rb");
  REQUIRE(f != NULL);
  n = fread(bytes, 1, SINK_MAX, f);
  fclose(f);
  parsed = session_parse(bytes, n, "", &folded);
  samples = folded_count(folded, "");
  printf("%s: status %x, %zu bytes, %llu samples, reader's status %d\n", name,
	 (unsigned)status, n, (unsigned long long)samples, parsed);
  CHECK_EQ(parsed, 3);  /* It says that the end is missing. */
  CHECK(samples > 0);
  CHECK(folded_count(folded, "work.lua") > 0);
  free(folded);
  free(bytes);
}

int main(void)
{
  int clock;
  for (clock = LUAM_SYSPROF_CLOCK_CPU; clock <= LUAM_SYSPROF_CLOCK_WALL; clock++) {
    check("abort.bin", clock, by_abort, 1, SIGABRT);
    check("_exit.bin", clock, by__exit, 0, 3);
    check("quick_exit.bin", clock, by_quick_exit, 0, 3);
    check("signal.bin", clock, by_signal, 1, SIGKILL);
    check("fault.bin", clock, by_fault, 1, SIGSEGV);
    check("exec.bin", clock, by_exec, 0, 3);
  }
  return check_status();
}
