/*
** Storm of etc/storms: profiled processes fork into nested pid namespaces, where a child may have
** its parent's number. Each child profiles itself and forks again, by fork() or by clone(), and
** some mount a /proc of their own.
*/

#include "storm.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define DEPTH_MAX  6
#define ROUNDS     4    /* Programs before a child, while it lives, and after it. */
#define SAMPLING_S 0.03 /* At least, in each process. */
#define GIVE_UP_S  30   /* Without a sample. */

/* Of all processes. */
static struct {
  _Atomic uint64_t processes, samples, programs, same_number, cloned, failures;
} * all;

typedef struct Plan {
  int depth, flush_thread, all_threads, on_fork;
  const char *clock;
} Plan;

static int own_namespace; /* Descriptor. */

static void on_stuck(int sig)
{
  static const char text[] = "hang: a process did not end\n";
  (void)sig;
  (void)!write(1, text, sizeof(text) - 1);
  _exit(3);
}

static void rounds(lua_State *L, int n)
{
  for (; n > 0; n--) {
    storm_round(L);
    all->programs++;
  }
}

static Plan plan_make(int depth, uint32_t r)
{
  static const char *const clocks[] = { "task-clock", "ctimer", "wall-signal",
					"itimer",     "cpu",    "cpu,page-faults",
					"wall" };
  Plan p;
  p.depth = depth;
  p.clock = clocks[r % 7];
  p.flush_thread = (int)(r >> 4 & 1);
  p.all_threads = (r >> 5 & 3) == 0;
  p.on_fork = (r >> 7 & 3) == 0;
  return p;
}

static void start(lua_State *L, const Plan *p, uint64_t number)
{
  char options[200];
  snprintf(
    options, sizeof(options),
    "clock = '%s', path = 'namespaces%llu.bin', flush = '%s', threads = '%s', fork = %s",
    p->clock, (unsigned long long)number, p->flush_thread ? "thread" : "vm",
    p->all_threads ? "all" : "own", p->on_fork ? "true" : "false");
  storm_start(L, options);
}

/* A /proc that shows the namespace's own numbers. */
static void mount_proc(void)
{
  if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
      mount("proc", "/proc", "proc", 0, NULL) != 0)
    storm_fail("no /proc of a namespace: %s", strerror(errno));
}

/* Fork into a new namespace. A bare clone() runs no handlers of fork(), and leaves the locks
** of other threads locked: only for a process of one thread.
*/
static pid_t fork_deeper(int by_clone)
{
  pid_t pid;
  if (by_clone) return (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
  REQUIRE(unshare(CLONE_NEWPID) == 0);
  pid = fork();
  if (pid != 0) REQUIRE(setns(own_namespace, CLONE_NEWPID) == 0);
  return pid;
}

static void judge(pid_t pid)
{
  int status;
  while (waitpid(pid, &status, 0) < 0) REQUIRE(errno == EINTR);
  if (status == 0) return;
  all->failures++;
  printf("a child ended with status %d, signal %d\n", WEXITSTATUS(status),
	 WTERMSIG(status));
  fflush(stdout);
}

/* Live as a process, profiled by plan p, and fork as deep as that says. */
static void live(lua_State *L, const Plan *p, uint32_t x)
{
  uint64_t number = all->processes++, samples;
  double end = storm_now() + SAMPLING_S, give_up = end + GIVE_UP_S;
  pid_t before = getpid(), pid;
  alarm(STORM_STUCK_S);
  start(L, p, number);
  rounds(L, ROUNDS);
  if (p->depth > 0) {
    int by_clone = !p->all_threads && !p->flush_thread && (storm_random(&x) & 3) == 0;
    uint32_t seed = storm_random(&x);
    fflush(stdout);
    pid = fork_deeper(by_clone);
    if (pid < 0) storm_fail("fork: %s", strerror(errno));
    if (pid == 0) {
      Plan next = plan_make(p->depth - 1, seed >> 3);
      char code[60];
      if (getpid() == before) all->same_number++;
      if (by_clone) all->cloned++;
      if (seed & 1) mount_proc();
      own_namespace = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
      REQUIRE(own_namespace >= 0);
      rounds(L, 1);
      snprintf(code, sizeof(code), "storm.stop_inherited(%d)", (int)getpid());
      storm_do(L, code);
      live(L, &next, seed);
      fflush(stdout);
      _exit(check_status());
    }
    rounds(L, ROUNDS);
    judge(pid);
  }
  do rounds(L, ROUNDS);
  while (storm_now() < end || (session_samples() == 0 && storm_now() < give_up));
  samples = storm_stop(L);
  if (samples == 0) storm_fail("no sample by %s", p->clock);
  all->samples += samples;
}

/* May this process do all that? */
static int is_allowed(void)
{
  int status;
  pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    if (unshare(CLONE_NEWPID) != 0 || (pid = fork()) < 0) _exit(1);
    if (pid == 0) {
      mount_proc();
      _exit(0);
    }
    _exit(waitpid(pid, &status, 0) != pid || status != 0);
  }
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return status == 0;
}

int main(int argc, char **argv)
{
  lua_State *L = storm_open(argc, argv);
  uint32_t x = 1;
  all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(all != MAP_FAILED);
  if (!is_allowed()) {
    printf("skipped: no pid namespace, or no /proc for it\n");
    return 77;
  }
  signal(SIGALRM,
	 on_stuck); /* The first process of a namespace ignores a default action. */
  while (storm_now() < storm_end) {
    pid_t pid = fork();
    uint32_t r = storm_random(&x);
    REQUIRE(pid >= 0);
    if (pid == 0) {
      Plan p = plan_make((int)(r % (DEPTH_MAX + 1)), r >> 3);
      own_namespace = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
      REQUIRE(own_namespace >= 0);
      live(L, &p, r);
      fflush(stdout);
      _exit(check_status());
    }
    judge(pid);
    if (all->failures) break;
  }
  printf("%llu processes, %llu with their parent's number, %llu by clone(), %llu programs, "
	 "%llu samples\n",
	 (unsigned long long)all->processes, (unsigned long long)all->same_number,
	 (unsigned long long)all->cloned, (unsigned long long)all->programs,
	 (unsigned long long)all->samples);
  lua_close(L);
  return all->failures != 0;
}
