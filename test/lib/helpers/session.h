/*
** Profiles of a test's own VM by the C API: a sink that collects the stream in memory,
** work until the profile has enough samples, and the reader.
*/

#ifndef SESSION_H
#define SESSION_H

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "lmisclib.h"
#include "check.h"

#define CLOCK_SIGNAL SIGURG /* Of a clock, if the program has no handler for it. */

#define SINK_MAX (32 * 1024 * 1024)

/* Target of a stream. Clear it before use. */
typedef struct Sink {
  uint8_t *buf;   /* Stream buffer. */
  uint8_t *bytes; /* All written bytes. */
  size_t len;
  volatile int writes; /* Calls of the writer. */
  int fail_at;         /* First call that fails; 0: all succeed. */
  int end_at;          /* Call that ends the stream, or 0. */
  int stops;           /* Calls of on_stop. */
  uint8_t *stop_buf;   /* Argument of on_stop. */
  int stop_result;     /* Result of on_stop. */
} Sink;

/* Several threads may write at a time. Like the kernel, this takes one after the other. */
static inline size_t sink_writer(const void **data, size_t len, void *ctx)
{
  Sink *sink = (Sink *)ctx;
  int writes = __atomic_add_fetch(&sink->writes, 1, __ATOMIC_SEQ_CST);
  size_t at;
  if (sink->fail_at && writes >= sink->fail_at) {
    errno = ENOSPC;
    return 0;
  }
  at = __atomic_fetch_add(&sink->len, len, __ATOMIC_SEQ_CST);
  if (at + len > SINK_MAX) {
    __atomic_fetch_sub(&sink->len, len, __ATOMIC_SEQ_CST);
    errno = EFBIG;
    return 0;
  }
  memcpy(sink->bytes + at, *data, len);
  if (writes == sink->end_at) *data = NULL;
  return len;
}

/* While another thread writes. */
static inline int sink_writes(const Sink *sink)
{
  return __atomic_load_n(&sink->writes, __ATOMIC_SEQ_CST);
}

static inline int sink_on_stop(void *ctx, uint8_t *buf)
{
  Sink *sink = (Sink *)ctx;
  sink->stops++;
  sink->stop_buf = buf;
  return sink->stop_result;
}

/* Set the callbacks and fill in options for a profile into sink. */
static inline struct luam_Sysprof_Options session_options(Sink *sink, int mode,
							  size_t buffer_size)
{
  struct luam_Sysprof_Options opt;
  memset(&opt, 0, sizeof(opt));
  memset(sink, 0, sizeof(*sink));
  sink->buf = (uint8_t *)malloc(buffer_size);
  sink->bytes = (uint8_t *)malloc(SINK_MAX);
  REQUIRE(sink->buf != NULL && sink->bytes != NULL);
  opt.mode = (uint8_t)mode;
  opt.buf = sink->buf;
  opt.len = buffer_size;
  opt.ctx = sink;
  opt.clocks = "wall-signal";
  opt.interval_ns = 1000000;
  CHECK_EQ(luaM_sysprof_set_writer(sink_writer), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_set_on_stop(sink_on_stop), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_set_backtracer(NULL), PROFILE_SUCCESS);
  return opt;
}

static inline void sink_free(Sink *sink)
{
  free(sink->buf);
  free(sink->bytes);
}

/* Run Lua code; its functions are work.lua:LINE in the profile. */
static inline void session_script(lua_State *L, const char *code)
{
  if (luaL_loadbuffer(L, code, strlen(code), "@work.lua") != 0 ||
      lua_pcall(L, 0, 0, 0) != 0) {
    printf("FAILED: %s\n", lua_tostring(L, -1));
    exit(1);
  }
}

static inline lua_State *session_vm(void)
{
  lua_State *L = luaL_newstate();
  REQUIRE(L != NULL);
  luaL_openlibs(L);
  session_script(
    L,
    "local function leaf(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end\n"
    "function work() local t = {}\n"
    "  for i = 1, 50 do t[i] = ('x'):rep(i % 9):gsub('x', function(c) leaf(3) return c end) end\n"
    "  return leaf(2000) + #t\n"
    "end\n");
  return L;
}

/* Make work produce many different stacks, so that the buffer fills often. */
static inline void session_deep(lua_State *L)
{
  session_script(
    L, "jit.off() local d = 0\n"
       "local function deep(n) if n > 0 then deep(n - 1) end for i = 1, 2e4 do end end\n"
       "function work() d = (d + 7) % 20 deep(d) end");
}

/* Run the global function work once. */
static inline void session_work(lua_State *L)
{
  lua_getglobal(L, "work");
  if (lua_pcall(L, 0, 0, 0) != 0) {
    CHECK(!"work failed");
    printf("%s\n", lua_tostring(L, -1));
    lua_pop(L, 1);
  }
}

static inline uint64_t session_samples(void)
{
  struct luam_Sysprof_Counters c;
  CHECK_EQ(luaM_sysprof_report(&c), PROFILE_SUCCESS);
  return c.samples;
}

/* Work until the latest profile has n samples. Gives up after minutes. */
static inline void session_run(lua_State *L, uint64_t n)
{
  time_t deadline = time(NULL) + 200;
  while (session_samples() < n) {
    if (time(NULL) > deadline) {
      CHECK(!"too few samples in time");
      return;
    }
    session_work(L);
  }
}

/* Run the reader over a stream. Returns its exit status and its output. */
static inline int session_parse(const uint8_t *bytes, size_t len, const char *options,
				char **output)
{
  char command[1024];
  const char *build = getenv("SYSPROF_BUILD");
  FILE *f = fopen("stream.bin", "wb");
  size_t n = 0, cap = 1 << 20, got;
  char *out = (char *)malloc(cap);
  int status;
  REQUIRE(f != NULL && out != NULL);
  REQUIRE(fwrite(bytes, 1, len, f) == len);
  REQUIRE(fclose(f) == 0);
  snprintf(command, sizeof(command),
	   "%s/bin/luajit-parse-sysprof %s stream.bin 2>messages.txt",
	   build ? build : "build", options);
  f = popen(command, "r");
  REQUIRE(f != NULL);
  while ((got = fread(out + n, 1, cap - 1 - n, f)) > 0) {
    n += got;
    if (n + 1 == cap) {
      cap *= 2;
      out = (char *)realloc(out, cap);
      REQUIRE(out != NULL);
    }
  }
  out[n] = '\0';
  status = pclose(f);
  *output = out;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Sum of the counts of the folded stacks that contain text. */
static inline uint64_t folded_count(const char *folded, const char *text)
{
  uint64_t sum = 0;
  while (*folded) {
    const char *end = strchr(folded, '\n');
    const char *hit = strstr(folded, text), *count;
    if (!end) end = folded + strlen(folded);
    for (count = end; count > folded && count[-1] != ' '; count--)
      ;
    if (hit && hit < end) sum += strtoull(count, NULL, 10);
    folded = *end ? end + 1 : end;
  }
  return sum;
}

#endif
