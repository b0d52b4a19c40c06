/* TIMEOUT: 600
** A writer that hangs on the thread of the profiler, like on a disk that does not answer.
** The program goes on. Samples that find no buffer are lost and counted. Reports, other
** profiles and fork go on, too. When the writer answers again, the profile goes on. A
** process that ends while the writer hangs has a complete stream.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <pthread.h>

#include "session.h"
#include "stream_sums.h"

#define BUF_SIZE (LUAM_SYSPROF_FLUSH_BUFFERS * 2048)

static _Atomic int hang, hanging, out = -1;
static StreamSums sums;

static size_t hanging_writer(const void **data, size_t len, void *ctx)
{
  static const struct timespec ms = { 0, 1000000 };
  while (hang) {
    hanging = 1;
    nanosleep(&ms, NULL);
  }
  hanging = 0;
  if (out >= 0 && write(out, *data, len) != (ssize_t)len) return 0;
  return sink_writer(data, len, ctx);
}

static struct luam_Sysprof_SelfReport report(lua_State *L)
{
  struct luam_Sysprof_SelfReport r;
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  return r;
}

/* Work until so many more samples are lost, and so many kept. Samples that wait in the batch
** may still get lost. So without a number of kept ones, theirs may even fall.
*/
static void work(lua_State *L, uint64_t lost, uint64_t kept)
{
  struct luam_Sysprof_SelfReport r = report(L);
  time_t deadline = time(NULL) + 200;
  lost += r.lost_queue;
  if (kept) kept += r.samples - r.lost_queue;
  do {
    session_work(L);
    r = report(L);
    if (time(NULL) > deadline) {
      CHECK(!"too few samples in time");
      return;
    }
  } while (r.lost_queue < lost || r.samples - r.lost_queue < kept);
}

static struct luam_Sysprof_Options begin(lua_State *L, Sink *sink)
{
  struct luam_Sysprof_Options opt = session_options(sink, LUAM_SYSPROF_CALLGRAPH, BUF_SIZE);
  opt.interval_ns = 200000;
  opt.flush = LUAM_SYSPROF_FLUSH_THREAD;
  luaM_sysprof_set_writer(hanging_writer);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  return opt;
}

static void check_stream(const uint8_t *bytes, size_t len, uint64_t samples)
{
  sums_read(&sums, bytes, len);
  CHECK(sums.fault == NULL);
  if (sums.fault) puts(sums.fault);
  CHECK(sums_all_ended(&sums));
  CHECK_EQ(sums.n, 1);
  if (samples) CHECK_EQ(sums.s[0].samples[0], samples);
}

/* While another VM's writer hangs. */
static void use_another(void)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 4096);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  work(L, 0, 20);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  check_stream(sink.bytes, sink.len, report(L).samples);
  lua_close(L);
  sink_free(&sink);
}

static void fork_and_use(void)
{
  int status;
  pid_t pid;
  pid = flush_and_fork();
  if (pid == 0) {
    use_another();
    exit(check_status()); /* With the parent's profile, which is not written. */
  }
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK_EQ(status, 0);
}

static void test_hangs(lua_State *L)
{
  Sink sink;
  struct luam_Sysprof_SelfReport r;
  time_t deadline = time(NULL) + 200;
  int writes;
  begin(L, &sink);
  work(L, 0, 200);
  hang = 1;
  work(L, 50, 0);
  /* The writer's thread may get a processor later. */
  while (!hanging && time(NULL) <= deadline) session_work(L);
  CHECK(hanging);
  writes = sink_writes(&sink);
  use_another();
  fork_and_use();
  work(L, 50, 0);
  CHECK_EQ(sink_writes(&sink), writes);
  hang = 0;
  work(L, 0, 1000);
  CHECK(sink_writes(&sink) > writes);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  r = report(L);
  check_stream(sink.bytes, sink.len, r.samples - r.lost_queue - r.lost_buffer);
  CHECK_EQ(sums.s[0].counter[SUMS_LOST_QUEUE], r.lost_queue);
  CHECK(r.lost_queue >= 100);
  CHECK_EQ(r.lost_writer, 0);
  CHECK(sums.s[0].weight[0] <= sums.s[0].counter[SUMS_TOTAL(0)]);
  printf("%llu samples, %llu lost\n", (unsigned long long)r.samples,
	 (unsigned long long)r.lost_queue);
  sink_free(&sink);
}

/* Lets the writer go on when the process ends. */
static void *let_go(void *arg)
{
  static const struct timespec ms = { 0, 50000000 };
  (void)arg;
  nanosleep(&ms, NULL);
  hang = 0;
  return NULL;
}

/* exit(), or the end of the VM, waits for the writer that hangs. */
static void test_exit(int close)
{
  static uint8_t bytes[SINK_MAX];
  int status, fd = open("exit.bin", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
  ssize_t n;
  pid_t pid;
  REQUIRE(fd >= 0);
  pid = flush_and_fork();
  if (pid == 0) {
    Sink sink;
    pthread_t t;
    lua_State *L = session_vm();
    out = fd;
    begin(L, &sink);
    hang = 1;
    work(L, 50, 0);
    REQUIRE(pthread_create(&t, NULL, let_go, NULL) == 0);
    REQUIRE(pthread_detach(t) == 0);
    if (close) lua_close(L);
    exit(check_status());
  }
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK_EQ(status, 0);
  n = pread(fd, bytes, sizeof(bytes), 0);
  REQUIRE(n > 0);
  check_stream(bytes, (size_t)n, 0);
  CHECK(sums.s[0].counter[SUMS_LOST_QUEUE] >= 50);
  REQUIRE(unlink("exit.bin") == 0);
}

/* The disk comes back with an error. */
static size_t failing_writer(const void **data, size_t len, void *ctx)
{
  Sink *sink = (Sink *)ctx;
  if (__atomic_load_n(&sink->writes, __ATOMIC_SEQ_CST) == 0)
    return sink_writer(data, len, ctx);
  __atomic_add_fetch(&sink->writes, 1, __ATOMIC_SEQ_CST);
  errno = ENOSPC;
  return 0;
}

static void test_fails(lua_State *L, int flush)
{
  Sink sink;
  struct luam_Sysprof_SelfReport r;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH,
						    BUF_SIZE);
  opt.interval_ns = 200000;
  opt.flush = (uint8_t)flush;
  luaM_sysprof_set_writer(failing_writer);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  session_run(L, 1200);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_ERRIO);
  CHECK_EQ(errno, ENOSPC);
  CHECK_EQ(sink_writes(&sink), 2); /* Not asked again. */
  r = report(L);
  CHECK_EQ(r.lost_writer + r.lost_queue + r.lost_buffer, r.samples);
  sink_free(&sink);
}

int main(void)
{
  lua_State *L = session_vm();
  test_exit(0); /* Forks, which is simpler before there is a thread. */
  test_exit(1);
  test_hangs(L);
  test_fails(L, LUAM_SYSPROF_FLUSH_VM);
  test_fails(L, LUAM_SYSPROF_FLUSH_THREAD);
  lua_close(L);
  return check_status();
}
