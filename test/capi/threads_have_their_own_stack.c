/* The profiler's thread has a stack for its work, whatever the default size is, and however much
** thread-local storage the program has: the C library takes that from a stack.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>

#include "live_client.h"
#include "session.h"

#define TLS_SIZE   (700 * 1024)
#define WRITER_USE (300 * 1024) /* A writer of the program may use so much. */

static __thread char storage[TLS_SIZE];
static _Atomic int writes, is_over;

/* Touches its stack from the top down: stacks grow so. */
static __attribute__((noinline)) void use_stack(void)
{
  char bytes[WRITER_USE];
  size_t i;
  for (i = WRITER_USE; i > 0; i -= 1024) *(volatile char *)&bytes[i - 1] = 1;
}

static size_t write_deep(const void **data, size_t len, void *ctx)
{
  (void)data;
  (void)ctx;
  use_stack();
  writes++;
  return len;
}

static int stop_writer(void *ctx, uint8_t *buf)
{
  (void)ctx;
  (void)buf;
  return 0;
}

static void *client(void *arg)
{
  int file = live_file(), fd;
  (void)arg;
  fd = live_ask(getpid(), "record\nduration=200ms\nclock=cpu,offcpu,alloc\nthreads=all",
		file);
  CHECK(strncmp(live_answer(fd), "ok\n", 3) == 0);
  CHECK(strncmp(live_answer(fd), "done", 4) == 0);
  close(fd);
  fd = live_ask(getpid(), "perf-map", file);
  CHECK(strncmp(live_answer(fd), "ok\n", 3) == 0);
  close(fd);
  fd = live_ask(getpid(), "dump", file);
  CHECK(strncmp(live_answer(fd), "ok\n", 3) == 0);
  close(fd);
  close(file);
  is_over = 1;
  return NULL;
}

int main(void)
{
  lua_State *L = session_vm();
  static uint8_t buf[LUAM_SYSPROF_BUF_MIN * LUAM_SYSPROF_FLUSH_BUFFERS];
  struct luam_Sysprof_Options opt = { .mode = LUAM_SYSPROF_CALLGRAPH,
				      .interval = 1,
				      .buf = buf,
				      .len = sizeof(buf),
				      .flush = LUAM_SYSPROF_FLUSH_THREAD };
  pthread_attr_t small, usual;
  pthread_t thread;
  int (*get_default)(pthread_attr_t *);
  int (*set_default)(const pthread_attr_t *);
  *(void **)&get_default = dlsym(RTLD_DEFAULT, "pthread_getattr_default_np");
  *(void **)&set_default = dlsym(RTLD_DEFAULT, "pthread_setattr_default_np");
  if (!get_default || !set_default) {
    puts("skipped: this C library has no default of threads, which glibc 2.18 added");
    return 77;
  }
  storage[0] = 1;
  REQUIRE(pthread_attr_init(&small) == 0 && pthread_attr_init(&usual) == 0);
  REQUIRE(get_default(&usual) == 0);
  REQUIRE(pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN) == 0);
  if (set_default(&small) != 0) { /* The C library wants more for its own part. */
    REQUIRE(pthread_attr_setstacksize(&small, TLS_SIZE + 2 * PTHREAD_STACK_MIN) == 0);
    REQUIRE(set_default(&small) == 0);
  }
  luaM_sysprof_set_writer(write_deep);
  luaM_sysprof_set_on_stop(stop_writer);
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  while (writes < 2) session_script(L, "work()");
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_live(L), PROFILE_SUCCESS);
  REQUIRE(pthread_create(&thread, &usual, client, NULL) == 0);
  while (!is_over) session_script(L, "work()");
  pthread_join(thread, NULL);
  lua_close(L);
  return check_status();
}
