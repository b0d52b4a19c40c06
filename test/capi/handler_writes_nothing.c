/* TIMEOUT: 600
** A profile into a file: the handler makes no system call that writes, opens or waits,
** whatever thread writes the chunks. Still, all chunks are written. This program defines
** these functions itself, so that the library's calls come here. Its own handler around
** the profiler's marks when the profiler's runs.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "session.h"

static __thread volatile int in_handler __attribute__((tls_model("initial-exec")));
static int in, out, ticks; /* Calls in the handler and elsewhere. */

static void note(void)
{
  __atomic_fetch_add(in_handler ? &in : &out, 1, __ATOMIC_RELAXED);
}

ssize_t write(int fd, const void *p, size_t n)
{
  note();
  return syscall(SYS_write, fd, p, n);
}

int fstat(int fd, struct stat *st)
{
  note();
  return (int)syscall(SYS_fstat, fd, st);
}

int ftruncate64(int fd, off_t n)
{
  note();
  return (int)syscall(SYS_ftruncate, fd, n);
}

int nanosleep(const struct timespec *ts, struct timespec *left)
{
  note();
  return (int)syscall(SYS_nanosleep, ts, left);
}

int sched_yield(void)
{
  note();
  return (int)syscall(SYS_sched_yield);
}

static int profile_signal;
static void (*profiler)(int, siginfo_t *, void *);

static void around(int sig, siginfo_t *info, void *uc)
{
  in_handler++;
  __atomic_fetch_add(&ticks, 1, __ATOMIC_RELAXED);
  profiler(sig, info, uc);
  in_handler--;
}

static void set_around(int on)
{
  struct sigaction sa;
  REQUIRE(sigaction(profile_signal, NULL, &sa) == 0);
  if (on) profiler = sa.sa_sigaction;
  sa.sa_sigaction = on ? around : profiler;
  REQUIRE(sigaction(profile_signal, &sa, NULL) == 0);
}

/* Work in ever new stacks, so that chunks are soon full, until some were written. */
static void work(lua_State *L, int writes)
{
  time_t deadline = time(NULL) + 200;
  int before = __atomic_load_n(&out, __ATOMIC_RELAXED);
  while (__atomic_load_n(&out, __ATOMIC_RELAXED) < before + writes) {
    session_work(L);
    if (time(NULL) > deadline) {
      CHECK(!"nothing was written in time");
      break;
    }
  }
}

static void check_file(uint64_t samples)
{
  char *folded;
  CHECK_EQ(system("$SYSPROF_BUILD/bin/luajit-parse-sysprof all.bin >folded 2>messages"), 0);
  FILE *f = fopen("folded", "rb");
  size_t n;
  REQUIRE(f != NULL);
  folded = (char *)calloc(1, SINK_MAX);
  REQUIRE(folded != NULL);
  n = fread(folded, 1, SINK_MAX - 1, f);
  fclose(f);
  CHECK(n > 0);
  CHECK_EQ(folded_count(folded, ""), samples);
  free(folded);
}

/* By the Lua API. */
static void profile_file(lua_State *L, const char *options)
{
  struct luam_Sysprof_SelfReport r;
  char code[256];
  snprintf(code, sizeof(code),
	   "assert(misc.sysprof.start{ mode = 'C', hz = 5000,"
	   " clock = 'wall-signal', path = 'all.bin', signal = %d, %s })",
	   profile_signal, options);
  session_script(L, code);
  set_around(1);
  in = ticks = 0;
  work(L, 2); /* A chunk is as many calls. */
  set_around(0);
  CHECK(ticks > 100);
  CHECK_EQ(in, 0);
  session_script(L, "assert(misc.sysprof.stop())");
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  check_file(r.samples - r.lost_queue - r.lost_buffer);
  printf("%s: %d ticks, %llu lost\n", options, ticks, (unsigned long long)r.lost_queue);
}

/* A writer of the C API that writes: the test must notice its calls. */
static size_t writing_writer(const void **data, size_t len, void *ctx)
{
  static int fd = -1;
  if (fd < 0) fd = (int)syscall(SYS_memfd_create, "stream", 0);
  return write(fd, *data, len) == (ssize_t)len ? sink_writer(data, len, ctx) : 0;
}

static void profile_classic(lua_State *L)
{
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 4096);
  opt.signo = profile_signal;
  luaM_sysprof_set_writer(writing_writer);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  set_around(1);
  in = 0;
  while (in == 0 && !check_failures && sink.writes < 50) session_work(L);
  CHECK(in > 0);
  set_around(0);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  sink_free(&sink);
}

int main(void)
{
  lua_State *L = session_vm();
  profile_signal = SIGUSR1;
  session_script(
    L, "local f = {}\n"
       "for i = 1, 60 do f[i] = assert(loadstring(('\\n'):rep(i) .. [[\n"
       "  local f, random = ...\n"
       "  return function(n)\n"
       "    if n == 0 then local s = 0 for i = 1, 30 do s = s + i % 3 end return s end\n"
       "    local g = f[random(60)]\n"
       "    return 1 + g(n - 1)\n"
       "  end]], '=deep'))(f, math.random) end\n"
       "function work() for i = 1, 100 do f[1](60 + i % 30) end end\n");
  profile_classic(L);
  profile_file(L, "flush = 'vm'");
  profile_file(L, "flush = 'thread'");
  profile_file(L, "threads = 'all'");
  lua_close(L);
  return check_status();
}
