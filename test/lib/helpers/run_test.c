/* Runs a test, and ends all its processes with it, also if ctest kills the test.
**
** run_test COMMAND [ARG...]
**
** ctest kills only the process that it started, when the time of a test is over. That
** process here only waits for its child, the guardian. The guardian starts the test, and
** is the subreaper: it inherits daemons and all others that lose their parent. When the
** test or ctest's process ends, it kills all that is left. The test keeps its process
** group, session, signals, limits and files. Its status is the status of run_test.
*/

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_MAX 3000 /* A process can be late to die: the kernel may be busy with it. */
#define ROUND_NS   10000000

static void die(const char *what)
{
  fprintf(stderr, "run_test: %s: %s\n", what, strerror(errno));
  _exit(125);
}

/* Ends like a child with this status, but without a second core. */
static void end_like(int status)
{
  if (WIFSIGNALED(status)) {
    struct rlimit none = { 0, 0 };
    sigset_t set;
    setrlimit(RLIMIT_CORE, &none);
    signal(WTERMSIG(status), SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, WTERMSIG(status));
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(WTERMSIG(status));
  }
  _exit(WEXITSTATUS(status));
}

/* -- Processes that are left ------------------------------------------------ */

/* Kills a process if it is our child, and tells its name. */
static void kill_child(const char *pid, int tell)
{
  char path[64], text[512];
  const char *end;
  pid_t parent;
  ssize_t n;
  int fd;
  snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
  fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return; /* It has ended. */
  n = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (n <= 0) return;
  text[n] = '\0';
  end = strrchr(text, ')'); /* The name before may contain anything. */
  if (!end || sscanf(end + 1, " %*c %d", &parent) != 1 || parent != getpid()) return;
  if (tell) {
    fprintf(stderr, "run_test: the test left a process: %.*s\n", (int)(end + 1 - text),
	    text);
  }
  kill((pid_t)atoi(pid), SIGKILL);
}

/* Kills our children, then theirs, which become ours, and so on. */
static void kill_all(const sigset_t *child_ends, int tell)
{
  static const struct timespec round = { 0, ROUND_NS };
  int i;
  for (i = 0; i < ROUNDS_MAX; i++) {
    pid_t pid;
    DIR *dir;
    struct dirent *entry;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {}
    if (pid < 0) return; /* No child. */
    dir = opendir("/proc");
    if (!dir) die("/proc");
    while ((entry = readdir(dir)) != NULL)
      if (isdigit((unsigned char)entry->d_name[0]))
	kill_child(entry->d_name, tell && i == 0);
    closedir(dir);
    sigtimedwait(child_ends, NULL, &round);
  }
  fprintf(stderr, "run_test: a process of the test does not end\n");
}

/* -- Processes -------------------------------------------------------------- */

/* Starts the test and waits for it, or for the end of our parent. */
static void guard(char **command, pid_t parent, const struct sigaction *chld)
{
  sigset_t awaited, child_ends, old;
  pid_t test, pid;
  int status;
  sigemptyset(&child_ends);
  sigaddset(&child_ends, SIGCHLD);
  awaited = child_ends;
  sigaddset(&awaited, SIGTERM);
  sigaddset(&awaited, SIGINT);
  sigaddset(&awaited, SIGHUP);
  sigaddset(&awaited, SIGQUIT);
  sigprocmask(SIG_BLOCK, &awaited, &old);
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) die("PR_SET_CHILD_SUBREAPER");
  if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) die("PR_SET_PDEATHSIG");
  if (getppid() != parent) _exit(125); /* It ended before. */
  test = fork();
  if (test < 0) die("fork");
  if (test == 0) {
    sigaction(SIGCHLD, chld, NULL);
    sigprocmask(SIG_SETMASK, &old, NULL);
    execvp(command[0], command);
    die(command[0]);
  }
  for (;;) {
    int sig = sigwaitinfo(&awaited, NULL);
    if (sig < 0) continue; /* Stopped and continued. */
    if (sig != SIGCHLD) {
      kill_all(&child_ends, 0);
      _exit(125);
    }
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
      if (pid == test) {
	kill_all(&child_ends, 1);
	end_like(status);
      }
  }
}

int main(int argc, char **argv)
{
  struct sigaction usual, old;
  pid_t self = getpid(), guardian;
  int status;
  if (argc < 2) {
    fprintf(stderr, "usage: run_test COMMAND [ARG...]\n");
    return 125;
  }
  prctl(PR_SET_PDEATHSIG, SIGTERM); /* Should ctest itself be killed. */
  memset(&usual, 0, sizeof(usual));
  usual.sa_handler = SIG_DFL; /* Ignored, it would lose the status. */
  sigaction(SIGCHLD, &usual, &old);
  guardian = fork();
  if (guardian < 0) die("fork");
  if (guardian == 0) guard(argv + 1, self, &old);
  while (waitpid(guardian, &status, 0) < 0)
    if (errno != EINTR) die("waitpid");
  end_like(status);
}
