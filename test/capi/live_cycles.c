/* TIMEOUT: 300
** BASE: none, files, sockets, signals, processes; the VM runs a loop, or none
** WAITS: most of its time
** Live control: clients that come and go leave no descriptor, no timer, no thread and no memory
** behind. The first argument is the number of recordings, 60 by default.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>

#include "count_kept.h"
#include "live_client.h"
#include "session.h"

static _Atomic int is_over;
static int cycles = 60;

#define EVENTS "\nthreads=all\nclock=cpu,alloc/period=4096/,coroutine-wait"

static void record(int how)
{
  const char *request = how % 2 ? "record\nduration=1ms\nthreads=all"
				: "record\nduration=1ms" EVENTS;
  int file = live_file(), fd;
  fd = live_ask(getpid(), request, file);
  if (how > 0) live_answer(fd);
  if (how > 1) live_answer(fd);
  close(fd);
  close(file);
  if (how < 2) live_expect(getpid(), "stop", -1, "ok\n");
}

/* The events of the VM have memory from their first beginning until the VM closes. */
static void begin_events(void)
{
  int file = live_file(), begun = 0;
  while (!begun) {
    int fd = live_ask(getpid(), "record\nduration=100ms" EVENTS, file);
    begun = (strstr(live_answer(fd), "started=1\nwaiting=0") != NULL);
    live_answer(fd);
    close(fd);
  }
  close(file);
}

static void wait_for_end(void)
{
  const char *got;
  do {
    int fd = live_ask(getpid(), "info", -1);
    got = live_answer(fd);
    close(fd);
  } while (strstr(got, "recording=1"));
}

static void *client(void *arg)
{
  int i, files, timers, threads;
  size_t heap;
  (void)arg;
  begin_events();
  for (i = 0; i < 10; i++) record(2);
  wait_for_end();
  live_expect(getpid(), "info", -1, "ok\n"); /* The server has closed the others by now. */
  files = count_entries("/proc/self/fd");
  timers = count_lines("/proc/self/timers");
  threads = count_entries("/proc/self/task");
  heap = heap_bytes();
  for (i = 0; i < cycles; i++) record(i % 3);
  for (i = 0; i < 10 * cycles; i++) live_expect(getpid(), "info", -1, "ok\n");
  wait_for_end();
  live_expect(getpid(), "info", -1, "ok\n");
  CHECK_EQ(live_count("/proc/self/fd", files), files);
  CHECK_EQ(count_lines("/proc/self/timers"), timers);
  CHECK_EQ(live_count("/proc/self/task", threads), threads);
  /* A block in each recording would be 32 bytes a time. */
  CHECK(heap_bytes() < heap + 65536);
  is_over = 1;
  return NULL;
}

int main(int argc, char **argv)
{
  lua_State *L = session_vm();
  pthread_t thread;
  if (argc > 1) cycles = atoi(argv[1]);
  CHECK_EQ(luaM_sysprof_live(L), PROFILE_SUCCESS);
  REQUIRE(pthread_create(&thread, NULL, client, NULL) == 0);
  while (!is_over) {
    session_script(L, "work()");
    usleep(1000);
  }
  pthread_join(thread, NULL);
  lua_close(L);
  return check_status();
}
