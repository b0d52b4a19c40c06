/* TIMEOUT: 600
** BASE: none, files, sockets, signals, processes; the VM runs a loop, or none
** WAITS: half of its time
** LONG: 24
** A process that ends before it can complete its profile: by abort, _exit, quick_exit, a
** signal, or exec. The reader reads all data that were written. After exec no signal of
** the clock hits the new program. The timer of the process is the exception: exec keeps
** it armed.
*/

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "session.h"

#define WRITES 4 /* Chunks with samples are among them. */

#define CANNOT 77 /* Status of a child that cannot have the clock. */

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

#ifdef __SANITIZE_ADDRESS__
/* It leaves the signals that it would report to the test. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
  return "handle_segv=0:handle_sigbus=0:handle_sigfpe=0";
}
#endif

static void by_abort(void)
{
  abort();
}
static void by__exit(void)
{
  _exit(3);
}
static void by_quick_exit(void)
{
  quick_exit(3);
}
static void by_signal(void)
{
  kill(getpid(), SIGKILL);
  pause();
}
__attribute__((no_sanitize("undefined"))) static void by_fault(void)
{
  *(volatile int *)NULL = 0;
}

/* The new program uses more CPU time than an interval: it would get the tick. */
static void by_exec(void)
{
  execl("/bin/sh", "sh", "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; exit 3",
	(char *)NULL);
  _exit(4);
}

/* Uses CPU time, and touches new pages: on virtual machines a page takes up to 50 us. */
static void work(lua_State *L)
{
  enum { SIZE = 64 * 1024, PAGE = 4096, TIMES = 8 };
  char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int i;
  for (i = 0; i < TIMES; i++) session_work(L);
  REQUIRE(p != MAP_FAILED);
  for (i = 0; i < SIZE; i += PAGE) p[i] = 1;
  munmap(p, SIZE);
}

/* Runs in a child. */
static void profile(const char *name, const char *clock, void (*end)(void))
{
  static const struct rlimit no_core;
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH,
						    LUAM_SYSPROF_BUF_MIN);
  time_t deadline = time(NULL) + 200;
  check_failures = 0;
  setrlimit(RLIMIT_CORE, &no_core);
  fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  REQUIRE(fd >= 0);
  opt.clocks = clock;
  CHECK_EQ(luaM_sysprof_set_writer(file_writer), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_set_on_stop(file_on_stop), PROFILE_SUCCESS);
  if (luaM_sysprof_start(L, &opt) == PROFILE_ERRIO) {
    printf("%s is left out: %s\n", clock, luaM_sysprof_error());
    fflush(stdout);
    _exit(CANNOT);
  }
  while (writes < WRITES && time(NULL) < deadline) work(L);
  CHECK(writes >= WRITES);
  fflush(stdout);
  if (check_failures) _exit(99);
  end();
  _exit(98);
}

/* Returns 0 if the clock is unavailable. */
static int check(const char *clock, const char *name, void (*end)(void), int is_signal,
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
  if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT) return 0;
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
  printf("%s, %s: status %x, %zu bytes, %llu samples, reader's status %d\n", clock, name,
	 (unsigned)status, n, (unsigned long long)samples, parsed);
  CHECK_EQ(parsed, 3); /* It says that the end is missing. */
  CHECK(samples > 0);
  CHECK(folded_count(folded, "work.lua") > 0);
  free(folded);
  free(bytes);
  return 1;
}

int main(void)
{
  static const char *const clocks[] = {
    "cpu", "ctimer", "wall-signal", "task-clock", "page-faults/period=10/", "itimer"
  };
  size_t i;
  for (i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
    if (!check(clocks[i], "_exit.bin", by__exit, 0, 3)) continue;
    if (strcmp(clocks[i], "itimer") != 0) check(clocks[i], "exec.bin", by_exec, 0, 3);
    if (i > 2) continue; /* The kernel does the same as for the others. */
    check(clocks[i], "abort.bin", by_abort, 1, SIGABRT);
    check(clocks[i], "quick_exit.bin", by_quick_exit, 0, 3);
    check(clocks[i], "signal.bin", by_signal, 1, SIGKILL);
    check(clocks[i], "fault.bin", by_fault, 1, SIGSEGV);
  }
  return check_status();
}
