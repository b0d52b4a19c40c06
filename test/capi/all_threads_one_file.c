/* TIMEOUT: 600
** threads = "all" by the Lua API: the sessions of all threads write whole chunks into one
** file. Two VMs share it, and threads come and go.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>

#include "session.h"

#define THREADS 3

static _Atomic int over;

/* A host thread without a VM. */
__attribute__((noinline)) static void *busy_host_thread(void *arg)
{
  volatile uint64_t *n = (volatile uint64_t *)arg;
  while (!over) (*n)++;
  return NULL;
}

/* Ends soon. */
static void *short_thread(void *arg)
{
  volatile uint64_t *n = (volatile uint64_t *)arg;
  int i;
  for (i = 0; i < 2000000; i++) (*n)++;
  return NULL;
}

static void run(lua_State *L, const char *code)
{
  if (luaL_loadstring(L, code) != 0 || lua_pcall(L, 0, 0, 0) != 0) {
    printf("%s\n", lua_tostring(L, -1));
    CHECK(!"Lua code failed");
    lua_settop(L, 0);
  }
}

static void start(lua_State *L, const char *more)
{
  char code[256];
  snprintf(code, sizeof(code),
	   "assert(misc.sysprof.start{ mode = 'C', interval = 0.5,"
	   " clock = 'wall-signal', path = 'all.bin', threads = 'all'%s })",
	   more);
  run(L, code);
}

static void stop(lua_State *L, int sessions)
{
  struct luam_Sysprof_SelfReport r;
  run(L, "assert(misc.sysprof.stop())");
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  CHECK(r.sessions >= (uint32_t)sessions);
  CHECK_EQ(r.lost_writer, 0);
}

/* Read the file; the sum of all samples. */
static uint64_t check_file(const char *option)
{
  static uint8_t bytes[SINK_MAX];
  FILE *f = fopen("all.bin", "rb");
  char *folded;
  uint64_t n;
  size_t len;
  REQUIRE(f != NULL);
  len = fread(bytes, 1, sizeof(bytes), f);
  fclose(f);
  CHECK_EQ(session_parse(bytes, len, option, &folded), 0);
  CHECK(folded_count(folded, "busy_host_thread") > 0);
  CHECK(folded_count(folded, "work.lua") > 0);
  n = folded_count(folded, "");
  free(folded);
  return n;
}

static uint64_t samples_of(lua_State *L)
{
  struct luam_Sysprof_SelfReport r;
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  return r.samples - r.lost_buffer - r.lost_queue - r.lost_writer;
}

int main(void)
{
  static uint64_t counts[THREADS + 1];
  lua_State *A = session_vm(), *B = session_vm();
  pthread_t threads[THREADS], passing;
  uint64_t samples;
  int i;
  for (i = 0; i < THREADS; i++)
    REQUIRE(pthread_create(&threads[i], NULL, busy_host_thread, &counts[i]) == 0);

  start(A, "");
  session_run(A, 100);
  for (i = 0; i < 20; i++) {
    REQUIRE(pthread_create(&passing, NULL, short_thread, &counts[THREADS]) == 0);
    session_work(A);
    REQUIRE(pthread_join(passing, NULL) == 0);
  }
  stop(A, THREADS + 1);
  samples = samples_of(A);
  CHECK_EQ(check_file(""), samples);

  /* Two profiles: each thread has two sessions. */
  REQUIRE(remove("all.bin") == 0);
  start(A, ", shared = true");
  start(B, ", shared = true, signal = 'SIGUSR2'");
  session_run(B, 100);
  session_work(A);
  stop(B, THREADS + 1);
  session_work(A);
  stop(A, THREADS + 1);
  samples = samples_of(A) + samples_of(B);
  CHECK_EQ(check_file(""), samples);

  over = 1;
  for (i = 0; i < THREADS; i++) REQUIRE(pthread_join(threads[i], NULL) == 0);
  lua_close(A);
  lua_close(B);
  return check_status();
}
