/* TIMEOUT: 600
** No other handler runs on top of ours: neither one of the program, which could leave it
** by siglongjmp(), nor the C library's for pthread_cancel(). This also holds when a
** handler of the program calls ours. Faults and the setuid() of another thread get
** through, also to the profiler's own thread.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>

#include "cpu_work.h"

#define SETXID     33
#define BIT(signo) (1ull << ((signo)-1))

/* All signals but those that the kernel never blocks. */
static const uint64_t all = ~(BIT(SIGKILL) | BIT(SIGSTOP));
static const uint64_t let_through = BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGILL) |
				    BIT(SIGTRAP) | BIT(SIGSYS) | BIT(SETXID);

static volatile int in_handler, wrong, right, jumps, called;

static uint64_t own_mask(void)
{
  uint64_t mask = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &mask, sizeof(mask));
  return mask;
}

/* Runs in the profiler's handler. */
static void backtracer(void *(*frame_writer)(int frame_no, void *addr))
{
  (void)frame_writer;
  in_handler = 1;
  if (own_mask() == (all & ~let_through)) right++;
  else wrong++;
  in_handler = 0;
}

static void check_samples(lua_State *L)
{
  right = 0;
  session_run(L, session_samples() + 20);
  CHECK(right >= 20);
  CHECK_EQ(wrong, 0);
}

static struct sigaction ours;

static void calling(int signo, siginfo_t *info, void *uc)
{
  called++;
  ours.sa_sigaction(signo, info, uc);
  if (own_mask() & BIT(32)) wrong++; /* The program's mask again. */
}

/* A handler of the program, installed over ours. */
static void check_called(lua_State *L)
{
  struct sigaction sa;
  memset(&sa, 0, sizeof(sa));
  sa.sa_sigaction = calling;
  sa.sa_flags = SA_SIGINFO | SA_RESTART;
  REQUIRE(sigaction(CLOCK_SIGNAL, &sa, &ours) == 0);
  called = 0;
  check_samples(L);
  CHECK(called >= 20);
  REQUIRE(sigaction(CLOCK_SIGNAL, &ours, NULL) == 0);
}

static sigjmp_buf back;

static void jump_out(int signo)
{
  (void)signo;
  if (in_handler) wrong++;
  jumps++;
  siglongjmp(back, 1);
}

/* Jumps out of the interrupted code, at about the rate of the samples. */
static void check_jumps(lua_State *L)
{
  time_t deadline = time(NULL) + 200;
  struct sigevent ev;
  struct itimerspec it = { { 0, 370000 }, { 0, 370000 } };
  timer_t timer;
  jumps = right = 0;
  signal(SIGALRM, jump_out);
  memset(&ev, 0, sizeof(ev));
  ev.sigev_notify = SIGEV_SIGNAL;
  ev.sigev_signo = SIGALRM;
  REQUIRE(timer_create(CLOCK_MONOTONIC, &ev, &timer) == 0);
  sigsetjmp(back, 1);
  if (jumps == 0) REQUIRE(timer_settime(timer, 0, &it, NULL) == 0);
  while ((jumps < 200 || right < 200) && time(NULL) < deadline) cpu_burn(10);
  timer_delete(timer);
  signal(SIGALRM, SIG_IGN);
  CHECK(jumps >= 200);
  CHECK(right >= 200);
  CHECK_EQ(wrong, 0);
  session_work(L);
}

/* The line of a thread's status that begins with key, as a number in base 16. */
static uint64_t status_of(const char *tid, const char *key)
{
  char path[300], line[256];
  uint64_t value = 0;
  FILE *f;
  snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
  f = fopen(path, "r");
  while (f && fgets(line, sizeof(line), f))
    if (strncmp(line, key, strlen(key)) == 0)
      value = strtoull(line + strlen(key), NULL, 16);
  if (f) fclose(f);
  return value;
}

/* The profiler's thread blocks all signals, except the C library's own. */
static void check_thread(void)
{
  DIR *dir = opendir("/proc/self/task");
  struct dirent *d;
  int found = 0;
  REQUIRE(dir != NULL);
  while ((d = readdir(dir)) != NULL) {
    char path[300], name[32] = "";
    FILE *f;
    snprintf(path, sizeof(path), "/proc/self/task/%s/comm", d->d_name);
    f = fopen(path, "r");
    if (f && fgets(name, sizeof(name), f) && strcmp(name, "sysprof\n") == 0) {
      uint64_t mask = status_of(d->d_name, "SigBlk:");
      found++;
      CHECK_EQ(mask | BIT(32) | BIT(SETXID), all);
      CHECK_EQ(mask & BIT(SETXID), 0);
    }
    if (f) fclose(f);
  }
  closedir(dir);
  CHECK_EQ(found, 1);
}

static _Atomic int reads, done;

static void *reads_for_ever(void *arg)
{
  int *fds = (int *)arg;
  char c;
  reads++;
  for (;;) (void)!read(fds[0], &c, 1);
  return NULL;
}

static void *sets_user(void *arg)
{
  (void)arg;
  while (!done) REQUIRE(setuid(getuid()) == 0);
  return NULL;
}

/* setuid() waits for an answer of each thread. Even without the profiler, glibc 2.36 waits
** for ever if a thread ends then. Here no thread ends.
*/
static void check_setuid(lua_State *L)
{
  pthread_t t = cpu_thread(sets_user, NULL);
  session_run(L, session_samples() + 100);
  done = 1;
  REQUIRE(pthread_join(t, NULL) == 0);
}

/* Threads are cancelled while they are sampled; the VM, stop and fork do not wait. */
static void check_cancelled(lua_State *L)
{
  uint64_t end = session_samples() + 100;
  int fds[2], round, i;
  REQUIRE(pipe(fds) == 0);
  for (round = 0; round < 10 || session_samples() < end; round++) {
    pthread_t t[4];
    reads = 0;
    for (i = 0; i < 4; i++) t[i] = cpu_thread(reads_for_ever, fds);
    while (reads < 4) session_work(L);
    session_run(L, session_samples() + 20);
    for (i = 0; i < 4; i++) REQUIRE(pthread_cancel(t[i]) == 0);
    session_script(
      L, "for i = 1, 100 do coroutine.wrap(function() end)() end collectgarbage()");
    for (i = 0; i < 4; i++) REQUIRE(pthread_join(t[i], NULL) == 0);
  }
  close(fds[0]);
  close(fds[1]);
}

int main(void)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  alarm(200);
  CHECK_EQ(luaM_sysprof_set_backtracer(backtracer), PROFILE_SUCCESS);
  opt.clocks = "wall-signal";
  opt.interval_ns = 500000;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  check_samples(L);
  check_called(L);
  alarm(0);
  check_jumps(L);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  sink_free(&sink);
  opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  CHECK_EQ(luaM_sysprof_set_backtracer(NULL), PROFILE_SUCCESS);
  opt.clocks = "wall-signal";
  opt.interval_ns = 500000;
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  signal(SIGALRM, SIG_DFL);
  alarm(200);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  check_thread();
  check_setuid(L);
  check_cancelled(L);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  sink_free(&sink);
  lua_close(L);
  return check_status();
}
