/* TIMEOUT: 600
** Profiling across fork(). A child of the profiled thread continues into its own stream,
** also as a daemon, and so does its child. A child of another thread is not profiled. The
** parent's stream stays complete. While other threads start and stop profiles, children
** can use the profiler.
*/

#include <fcntl.h>

#include "cpu_work.h"
#include "stream_sums.h"

typedef struct File {
  int fd;
  char path[32];
  uint8_t *buf;
} File;

static int nforks, refuse;

static size_t file_writer(const void **data, size_t len, void *ctx)
{
  File *f = (File *)ctx;
  return write(f->fd, *data, len) == (ssize_t)len ? len : 0;
}

static int file_on_stop(void *ctx, uint8_t *buf)
{
  File *f = (File *)ctx;
  CHECK(buf == f->buf);
  return close(f->fd);
}

static File *file_new(const char *path, uint8_t *buf)
{
  File *f = (File *)malloc(sizeof(File));
  REQUIRE(f != NULL);
  snprintf(f->path, sizeof(f->path), "%s", path);
  f->fd = open(f->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  f->buf = buf;
  REQUIRE(f->fd >= 0);
  return f;
}

static void *on_fork(void *ctx)
{
  File *f = (File *)ctx;
  char path[32];
  nforks++;
  if (refuse) return NULL;
  close(f->fd);
  snprintf(path, sizeof(path), "%.20s.%d", f->path, nforks);
  return file_new(path, f->buf);
}

static struct luam_Sysprof_Options options(const char *path)
{
  struct luam_Sysprof_Options opt;
  memset(&opt, 0, sizeof(opt));
  opt.mode = LUAM_SYSPROF_CALLGRAPH;
  opt.len = 65536;
  opt.buf = (uint8_t *)malloc(opt.len);
  REQUIRE(opt.buf != NULL);
  opt.ctx = file_new(path, opt.buf);
  opt.clocks = "wall-signal";
  opt.interval_ns = 1000000;
  opt.on_fork = on_fork;
  luaM_sysprof_set_writer(file_writer);
  luaM_sysprof_set_on_stop(file_on_stop);
  luaM_sysprof_set_backtracer(NULL);
  return opt;
}

/* A file has one session of this thread, with as many samples as its reader has. */
static void check_file(const char *path, uint64_t at_least, int complete)
{
  static StreamSums sums;
  uint8_t *bytes = (uint8_t *)malloc(SINK_MAX);
  FILE *f = fopen(path, "rb");
  size_t n;
  char *folded;
  REQUIRE(bytes != NULL && f != NULL);
  n = fread(bytes, 1, SINK_MAX, f);
  fclose(f);
  sums_read(&sums, bytes, n);
  CHECK(sums.fault == NULL);
  CHECK_EQ(sums.n, 1);
  CHECK_EQ(sums_all_ended(&sums), complete);
  CHECK(sums.s[0].samples[0] >= at_least);
  CHECK_EQ(session_parse(bytes, n, "", &folded), complete ? 0 : 3);
  CHECK_EQ(folded_count(folded, ""), sums.s[0].samples[0]);
  CHECK(folded_count(folded, "work.lua") > 0);
  free(folded);
  free(bytes);
}

static int wait_for(pid_t pid)
{
  int status;
  while (waitpid(pid, &status, 0) < 0) REQUIRE(errno == EINTR);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static pid_t start_child(void)
{
  pid_t pid;
  pid = flush_and_fork();
  if (pid == 0) check_failures = 0;
  return pid;
}

/* Child and grandchild go on; the one ends by stop, the other by exit. */
static void child_goes_on(lua_State *L)
{
  pid_t pid = start_child();
  if (pid == 0) {
    CHECK_EQ(nforks, 1);
    CHECK(session_samples() < 100);
    session_run(L, 30);
    pid = start_child();
    if (pid == 0) {
      CHECK_EQ(nforks, 2);
      session_run(L, 20);
      exit(check_status());
    }
    session_run(L, 60);
    CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
    CHECK_EQ(luaM_sysprof_stop(L), PROFILE_ERRRUN);
    CHECK_EQ(wait_for(pid), 0);
    _exit(check_status());
  }
  session_run(L, session_samples() + 30);
  CHECK_EQ(wait_for(pid), 0);
  CHECK_EQ(nforks, 0);
  check_file("on.bin.1", 60, 1);
  check_file("on.bin.1.2", 20, 1);
}

/* The child's profile is refused by its host: it can start one. */
static void child_is_refused(lua_State *L)
{
  pid_t pid;
  refuse = 1;
  pid = start_child();
  if (pid == 0) {
    struct luam_Sysprof_Options opt;
    CHECK_EQ(nforks, 1);
    session_work(L);
    opt = options("refused.bin");
    CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
    session_run(L, 20);
    lua_close(L);
    _exit(check_status());
  }
  CHECK_EQ(wait_for(pid), 0);
  refuse = 0;
  check_file("refused.bin", 20, 1);
}

/* A daemon: the parent goes by _exit, the child has a session of its own. */
static void daemon_goes_on(void)
{
  pid_t pid = start_child();
  int fds[2];
  char c = 0;
  if (pid == 0) {
    lua_State *L = session_vm();
    struct luam_Sysprof_Options opt = options("daemon.bin");
    nforks = 0;
    CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
    session_run(L, 20);
    REQUIRE(pipe(fds) == 0);
    pid = fork();
    REQUIRE(pid >= 0);
    if (pid > 0) {
      close(fds[1]);
      CHECK_EQ(read(fds[0], &c, 1), 1);
      _exit(check_status() || c != 'y');
    }
    REQUIRE(setsid() > 0);
    session_run(L, 20);
    CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
    c = check_status() ? 'n' : 'y';
    CHECK_EQ(write(fds[1], &c, 1), 1);
    _exit(check_status());
  }
  CHECK_EQ(wait_for(pid), 0);
  check_file("daemon.bin.1", 20, 1);
}

/* A thread that has no VM forks: its child is not profiled. */
static void *fork_elsewhere(void *arg)
{
  pid_t pid = start_child();
  (void)arg;
  if (pid == 0) {
    CHECK_EQ(nforks, 0);
    CHECK_EQ(luaM_sysprof_stop((lua_State *)arg), PROFILE_ERRRUN);
    exit(check_status());
  }
  CHECK_EQ(wait_for(pid), 0);
  return NULL;
}

static _Atomic int done;

static int no_stop(void *ctx, uint8_t *buf)
{
  (void)ctx;
  (void)buf;
  return 0;
}

static size_t no_writer(const void **data, size_t len, void *ctx)
{
  (void)data;
  (void)ctx;
  return len;
}

/* Starts and stops all the time, of itself or of all threads. */
static void *start_and_stop(void *arg)
{
  static uint8_t bufs[2][4096];
  int all = *(int *)arg;
  lua_State *L = session_vm();
  struct luam_Sysprof_Options opt;
  memset(&opt, 0, sizeof(opt));
  opt.mode = LUAM_SYSPROF_CALLGRAPH;
  opt.buf = bufs[all];
  opt.len = sizeof(bufs[all]);
  opt.interval_ns = 1000000;
  opt.threads = all ? LUAM_SYSPROF_THREADS_ALL : LUAM_SYSPROF_THREADS_OWN;
  while (!done) {
    CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
    session_work(L);
    CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  }
  lua_close(L);
  return NULL;
}

/* Other threads may hold locks of the address sanitizer's allocator in fork. No thread of
** the child releases them.
*/
#ifdef __SANITIZE_ADDRESS__
#define CHILD_ALLOCATES 0
#else
#define CHILD_ALLOCATES 1
#endif

/* LuaJIT's compiler gives up by an error, which needs a lock of libgcc. Another thread may
** have held the lock in fork, so the children do not compile.
*/
static void fork_among_others(void)
{
  static int all[2] = { 0, 1 };
  pthread_t t[2];
  int i;
  luaM_sysprof_set_writer(no_writer);
  luaM_sysprof_set_on_stop(no_stop);
  for (i = 0; i < 2; i++) t[i] = cpu_thread(start_and_stop, &all[i]);
  for (i = 0; i < 20; i++) {
    pid_t pid = start_child();
    if (pid == 0) {
      static uint8_t buf[4096];
      lua_State *L = session_vm();
      struct luam_Sysprof_Options opt;
      session_script(L, "jit.off()");
      memset(&opt, 0, sizeof(opt));
      opt.mode = LUAM_SYSPROF_CALLGRAPH;
      opt.buf = buf;
      opt.len = sizeof(buf);
      opt.interval_ns = 1000000;
      alarm(200);
      CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
      session_work(L);
      if (i & 1) CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
      lua_close(L);
      exit(check_status());
    }
    CHECK_EQ(wait_for(pid), 0);
  }
  done = 1;
  for (i = 0; i < 2; i++) REQUIRE(pthread_join(t[i], NULL) == 0);
}

int main(void)
{
  lua_State *L = session_vm();
  struct luam_Sysprof_Options opt = options("on.bin");
  pthread_t t;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  session_run(L, 20);
  child_goes_on(L);
  child_is_refused(L);
  t = cpu_thread(fork_elsewhere, L);
  session_run(L, session_samples() + 20);
  REQUIRE(pthread_join(t, NULL) == 0);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  check_file("on.bin", 60, 1);
  daemon_goes_on();
  if (CHILD_ALLOCATES) fork_among_others();
  lua_close(L);
  return check_status();
}
